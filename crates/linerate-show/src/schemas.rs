//! The published schemas of the documents.

use super::{bw, diff, fabric, flows, guide, host, import, json, lat, list, stream, study, whatif};

/// A published schema.
pub struct Schema {
    /// Its name.
    pub name: &'static str,
    /// The commands that print the documents that the schema describes.
    pub of: &'static str,
    /// The schema as JSON.
    pub text: &'static str,
}

/// All published schemas.
pub const SCHEMAS: [Schema; 16] = [
    Schema { name: "run", of: "linerate run --json, linerate show --json", text: json::SCHEMA },
    Schema {
        name: "study",
        of: "linerate run --repeat N --json, linerate run --layers --json, linerate bw or lat --sweep WHAT --json, \
             linerate lat --op read,write --json, linerate lat --engine tcp,udp --json",
        text: study::SCHEMA,
    },
    Schema {
        name: "stream",
        of: "linerate run, bw or lat --stream-json, each line",
        text: stream::SCHEMA,
    },
    Schema { name: "list", of: "linerate list --json", text: list::SCHEMA },
    Schema { name: "diff", of: "linerate diff --json", text: diff::SCHEMA },
    Schema { name: "bw", of: "linerate bw --json", text: bw::SCHEMA },
    Schema { name: "lat", of: "linerate lat --json", text: lat::SCHEMA },
    Schema { name: "host", of: "linerate host --json", text: host::SCHEMA },
    Schema { name: "flows", of: "linerate flows --json", text: flows::SCHEMA },
    Schema { name: "fabric", of: "linerate fabric --json", text: fabric::SCHEMA },
    Schema { name: "fabric-ping", of: "linerate fabric ping --json", text: fabric::PING_SCHEMA },
    Schema { name: "fabric-route", of: "linerate fabric route --json", text: fabric::ROUTE_SCHEMA },
    Schema { name: "guide", of: "linerate guide ib --json", text: guide::SCHEMA },
    Schema { name: "import", of: "linerate import --json", text: import::SCHEMA },
    Schema { name: "whatif", of: "linerate whatif --json", text: whatif::SCHEMA },
    Schema {
        name: "whatif-compare",
        of: "linerate whatif --compare --json",
        text: whatif::compare::SCHEMA,
    },
];
