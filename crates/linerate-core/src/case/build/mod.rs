//! From the description of a path to its resources and flows.

mod host;
mod net;
mod storage;

use super::packet::packet;
use super::{Case, CaseError};
use crate::ceiling::{Bounds, Cost, Demand, Flow, Input, Packet, Path, Resource, Source, bond};
use crate::path::{Direction, Place, Side, Stage};

pub(super) use host::{channels, express};
pub(super) use net::link_capacity;

/// Streams at the upper end where nobody says how many there are.
const MANY: u32 = 1024;

/// The path that a case describes.
pub(super) fn path(case: &Case) -> Result<Path, CaseError> {
    let mut builder = Builder {
        case,
        packet: packet(case)?,
        links: links(case),
        path: Path::default(),
    };
    builder.flows();
    builder.host(Side::Near, &case.near);
    builder.wire();
    builder.limits();
    builder.host(Side::Far, &case.far);
    builder.storage();
    Ok(builder.path)
}

/// Links that carry data.
fn links(case: &Case) -> u32 {
    let there = case.near.port.links().min(case.far.port.links());
    case.storage
        .policy
        .map_or(there, |policy| policy.used(there))
}

/// Where an input stands, its value, and whether it was given.
fn input<T: ToString>(key: &str, given: Option<T>, assumed: &str) -> Input {
    let source = if given.is_some() {
        Source::Given
    } else {
        Source::Assumed
    };
    Input {
        key: key.to_owned(),
        value: given.map_or_else(|| assumed.to_owned(), |value| value.to_string()),
        source,
    }
}

struct Builder<'a> {
    case: &'a Case,
    packet: Packet,
    links: u32,
    path: Path,
}

impl Builder<'_> {
    /// One flow for each direction and link; their index follows from both.
    fn flows(&mut self) {
        let streams = self.case.streams;
        let low = bond::spread(streams.unwrap_or(1), self.links);
        let high = bond::spread(streams.unwrap_or(MANY), self.links);
        let operation = self.case.storage.operation.map_or(1, |size| size.0);
        for direction in Direction::ALL {
            for (low, high) in low.iter().zip(&high) {
                self.path.flows.push(Flow {
                    direction,
                    streams: Bounds::new(f64::from(*low), f64::from(*high)),
                    packet: self.packet.payload,
                    operation: Bounds::exact(operation as f64),
                    demands: Vec::new(),
                });
            }
        }
    }

    fn add(&mut self, name: &str, (stage, side): (Stage, Place), capacity: Bounds) -> usize {
        self.path.resources.push(Resource {
            name: name.to_owned(),
            stage,
            side,
            capacity,
            inputs: Vec::new(),
        });
        self.path.resources.len() - 1
    }

    fn note(&mut self, resource: usize, inputs: Vec<Input>) {
        self.path.resources[resource].inputs = inputs;
    }

    /// Lets the flow of `way` over `link` use a resource.
    fn ask(&mut self, way: Direction, link: u32, resource: usize, cost: Cost, formula: &str) {
        let first = if way == Direction::Forward {
            0
        } else {
            self.links
        };
        let flow = self.path.flows.get_mut((first + link) as usize);
        if let Some(flow) = flow {
            flow.demands.push(Demand {
                resource,
                cost,
                formula: formula.to_owned(),
            });
        }
    }

    /// Lets every flow of `way` use a resource.
    fn ask_all(&mut self, way: Direction, resource: usize, cost: Cost, formula: &str) {
        for link in 0..self.links {
            self.ask(way, link, resource, cost, formula);
        }
    }

    /// Lets every flow of both directions use a resource.
    fn ask_both(&mut self, resource: usize, cost: Cost, formula: &str) {
        for way in Direction::ALL {
            self.ask_all(way, resource, cost, formula);
        }
    }
}
