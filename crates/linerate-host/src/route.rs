//! The route to the other end.

use std::io;

use linerate_facts::Gap;
use linerate_facts::parse::route::{self, Route};

use super::{Machine, Query, Toward, invalid, unreadable};

/// Queries the kernel for the route to the other end.
pub(super) fn route_toward(machine: &dyn Machine, toward: Toward) -> io::Result<Route> {
    let reply = machine.query(&Query::Route(toward))?;
    route::parse(&reply).map_err(invalid)
}

/// Makes the gap for a route that could not be read.
pub(super) fn no_route(what: &str, toward: Toward, error: &io::Error) -> Gap {
    let Toward { peer, own } = toward;
    let from = own.map_or(String::new(), |own| format!(" from {own}"));
    unreadable(what, &format!("the route to {peer}"), error, &format!("ip route get {peer}{from}"))
}
