//! Reads the output of `Get-NetAdapterRdma`.

use super::{VERSIONS, table};
use crate::format::{Format, Found, Section};

pub(crate) static RDMA: Format = Format {
    id: "get-netadapterrdma",
    label: "Get-NetAdapterRdma, table or list",
    versions: VERSIONS,
    evidence: "published: a table of Windows Server 2016 in Microsoft's documentation of converged NICs",
    unknown: "No fact of linerate holds this: whether RDMA is on is told in words.",
    starts: |at| table::begins(at.text, &["Name", "InterfaceDescription", "Enabled"]),
    read,
    ..Format::FACTS
};

fn read(section: &Section<'_>) -> Result<Found, String> {
    table::read(section, "Get-NetAdapterRdma", |reading, row| {
        let name = row.get("Name").unwrap_or("an adapter without a name");
        let works = match (row.get("Enabled"), row.get("Operational")) {
            (Some("True"), Some("False")) => "is enabled, but does not work",
            (Some("True"), _) => "is enabled",
            (Some("False"), _) => "is disabled",
            _ => "is in a state that is not understood",
        };
        reading.notes.at(row.line, format!("{name}: RDMA {works}"));
    })
}
