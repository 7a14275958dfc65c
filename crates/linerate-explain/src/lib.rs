//! What results show that other programs measured: the verdict of the judge, tables by size, and remarks.
//!
//! All results describe one path. Transfers become a model, which the judge reads in the same way as the model of a
//! run. Results that are no transfer, and claims about results, are read by [`rule`]s. All of it is derived anew from
//! the outputs each time. Case files describe a path and such results ([`case`]); two results are compared by [`diff`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod case;
pub mod diff;

mod best;
mod claim;
mod facts;
mod hardware;
mod headline;
pub mod rule;
mod summary;
mod table;

pub use best::Best;
pub use claim::{Claim, ClaimError, Kind, Said};
pub use hardware::{Hardware, Part};
pub use headline::{Answered, Headline};
pub use rule::{Answer, Next, RULES, Remark, Rule, Run};
pub(crate) use summary::load as load_figures;
pub use table::Table;

use linerate_facts::finding::Finding;
use linerate_facts::infiniband::IbDevice;
use linerate_facts::nic::Nic;
use linerate_facts::odd;
use linerate_facts::{Inventory, host_of};
use linerate_judge::figure::Summary;
use linerate_judge::model::{Model, Reported, reported};
use linerate_judge::verdict::{Verdict, judge};
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{Disk, Measured, Outcome, Source, Transfer};

/// Results and facts about one path.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// Title of all results together; empty if they have none.
    pub title: String,
    /// The outputs of programs, in the order in which they were given.
    pub sources: Vec<Source>,
    /// Facts of the client's host, as far as they are known.
    pub near: Inventory,
    /// Facts of the server's host, as far as they are known.
    pub far: Inventory,
    /// The ports that carry the path, near and far, where the user named them.
    pub ports: [Option<String>; 2],
    /// Claims about the results.
    pub claims: Vec<Claim>,
    /// The hardware of the path, as a case file describes it.
    pub hardware: Hardware,
}

impl Material {
    /// Whether there are any results, and not only facts.
    pub(crate) fn has_results(&self) -> bool {
        self.runs().next().is_some()
    }

    /// All results with their outputs, in the order of the input.
    pub fn runs(&self) -> impl Iterator<Item = (&Source, &Outcome)> {
        let each = self.sources.iter();
        each.flat_map(|source| source.results.iter().map(move |result| (source, result)))
    }

    /// All transfers with their outputs.
    pub fn transfers(&self) -> impl Iterator<Item = (&Source, &Transfer)> {
        self.all(|measured| match measured {
            Measured::Transfer(one) => Some(&**one),
            _ => None,
        })
    }

    /// Whether any result is a table of sizes.
    pub(crate) fn has_tables(&self) -> bool {
        let tables = self.all(|measured| matches!(measured, Measured::Sizes(_)).then_some(()));
        tables.count() > 0
    }

    /// The transfer that represents a direction: of those that loaded this direction alone, the first one with the
    /// fewest streams.
    pub(crate) fn base(&self, direction: Direction) -> Option<&Transfer> {
        let of = |(_, one): &(_, &Transfer)| one.direction == direction && !one.both;
        let all = self.transfers().filter(of);
        all.map(|(_, one)| one).min_by_key(|one| one.streams)
    }

    /// The facts of both hosts.
    pub fn hosts(&self) -> [(Side, &Inventory); 2] {
        [(Side::Near, &self.near), (Side::Far, &self.far)]
    }

    /// The network ports of both hosts.
    pub(crate) fn nics(&self) -> impl Iterator<Item = (Side, &Nic)> {
        let hosts = self.hosts().into_iter();
        hosts.flat_map(|(side, host)| host.network.nics.iter().map(move |nic| (side, nic)))
    }

    /// The devices of InfiniBand and RoCE of both hosts.
    pub(crate) fn rdma_devices(&self) -> impl Iterator<Item = (Side, &IbDevice)> {
        let hosts = self.hosts().into_iter();
        hosts.flat_map(|(side, host)| {
            let devices = host.infiniband.devices.iter();
            devices.map(move |device| (side, device))
        })
    }

    /// The model of the transfers and both hosts. It has no direction if there are no transfers over TCP or UDP.
    pub fn model(&self) -> Model {
        let transfers: Vec<_> = self.transfers().map(|(source, one)| (&source.tool, one)).collect();
        let host = |side: Side, inventory: &Inventory, port: &Option<String>| {
            host_of(inventory, side_name(side), port.as_deref())
        };
        reported(Reported {
            transfers: &transfers,
            near: &host(Side::Near, &self.near, &self.ports[0]),
            far: &host(Side::Far, &self.far, &self.ports[1]),
        })
    }

    /// All results of disks with their outputs.
    pub fn disks(&self) -> impl Iterator<Item = (&Source, &Disk)> {
        self.all(|measured| match measured {
            Measured::Disk(one) => Some(one),
            _ => None,
        })
    }

    fn all<'a, T: 'a>(
        &'a self,
        of: impl Fn(&'a Measured) -> Option<T> + Copy,
    ) -> impl Iterator<Item = (&'a Source, T)> {
        self.sources.iter().flat_map(move |source| {
            let measured = source.results.iter().map(|result| &result.measured);
            measured.filter_map(move |one| Some((source, of(one)?)))
        })
    }
}

/// What the results of one path show.
#[derive(Debug)]
pub struct Explained<'a> {
    /// The results and facts.
    pub material: &'a Material,
    /// The model of the transfers; `None` without transfers over TCP or UDP.
    pub model: Option<Model>,
    /// The judge's verdict on the transfers.
    pub verdict: Verdict,
    /// The tables by message size, each with its fit.
    pub tables: Vec<Table<'a>>,
    /// The answer to read first; `None` if there are only facts.
    pub headline: Option<Headline>,
    /// What rules show beside the verdict, the findings first.
    pub remarks: Vec<Remark>,
    /// Oddities of the near and the far host, by their facts.
    pub oddities: [Vec<Finding>; 2],
    /// The figures of the results: goodput, loss, latency.
    pub summary: Summary,
}

/// Derives all conclusions from the results. Pure: the same material gives the same conclusions.
pub fn explain(material: &Material) -> Explained<'_> {
    let model = Some(material.model()).filter(|model| !model.directions.is_empty());
    let verdict = model.as_ref().map(judge).unwrap_or_default();
    let tables = Table::all(material);
    let mut explained = Explained {
        material,
        summary: summary::of(material, &tables),
        model,
        verdict,
        tables,
        headline: None,
        remarks: Vec::new(),
        oddities: [&material.near, &material.far].map(odd::find),
    };
    explained.remarks = rule::remarks(&explained);
    explained.headline = Headline::of(&explained);
    explained
}

/// The name of an end in a test of another program: near is the client, far the server.
pub const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Near => "client",
        Side::Far => "server",
    }
}

#[cfg(test)]
mod tests;
