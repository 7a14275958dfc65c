//! The names of both hosts, and of the directions between them.

use linerate_judge::model::Model;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Feature;

use super::document::width_of;

/// Longest name that is repeated in sentences: a third of a page of 80 columns.
const LONGEST: usize = 26;

/// The names of both hosts, as pages show them.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// The words used for the hosts in sentences; near first.
    called: [String; 2],
    /// The names of the hosts; `None` if they are not known or equal.
    hosts: Option<[String; 2]>,
    /// Whether the far end is a disk, which is read and written.
    disk: bool,
}

impl Names {
    /// Uses the names of the hosts if they differ and are short enough for a sentence; else `near` and `far`.
    pub(super) fn of_hosts(model: &Model) -> Self {
        if model.directions.iter().any(|one| one.base.has(Feature::Disk)) {
            return Self { disk: true, ..Self::called(["this host", "the disk"]) };
        }
        let name = |side| model.host(side).map_or("", |host| host.facts.name.as_str());
        let hosts = [Side::Near, Side::Far].map(name);
        if hosts[0] == hosts[1] || hosts.contains(&"") {
            return Self::sides();
        }
        let is_long = hosts.iter().any(|name| width_of(name) > LONGEST);
        let hosts = hosts.map(str::to_owned);
        Self {
            called: if is_long { Self::sides().called } else { hosts.clone() },
            hosts: Some(hosts),
            disk: false,
        }
    }

    /// Uses other words for hosts whose names are not known; near first.
    pub(super) fn called(words: [&str; 2]) -> Self {
        Self { called: words.map(str::to_owned), hosts: None, disk: false }
    }

    /// Uses `near` and `far`, for hosts whose names are not known.
    pub(super) fn sides() -> Self {
        Self::called([Side::Near, Side::Far].map(Side::name))
    }

    /// Whether the names are too long for sentences: then they are shown once, and `near` and `far` are used
    /// elsewhere.
    pub(super) fn are_long(&self) -> bool {
        let called = self.hosts.as_ref();
        called.is_some_and(|hosts| *hosts != self.called)
    }

    /// Lines that explain `near`, `far` and `forward` for these hosts.
    pub(super) fn explained(&self) -> Vec<String> {
        const FORWARD: &str = "forward: from near to far";
        match &self.hosts {
            None => vec![format!("near: where linerate ran, far: the other end; {FORWARD}")],
            Some([near, far]) if self.are_long() => {
                vec![format!("near: {near}"), format!("far: {far}"), FORWARD.to_owned()]
            }
            Some([near, far]) => vec![format!("near: {near}, far: {far}; {FORWARD}")],
        }
    }

    /// The words for the hosts of a direction, from sender to receiver: `ripple -> brook`; `read` and `write` of a disk.
    pub(super) fn way(&self, direction: Direction) -> String {
        if self.disk {
            return direction.access().to_owned();
        }
        let [from, to] = [direction.sender(), direction.receiver()].map(|side| self.of(side));
        format!("{from} -> {to}")
    }

    /// The word for what is between both ends.
    pub(super) fn path(&self) -> &'static str {
        if self.disk { "the disk" } else { "network" }
    }

    pub(super) fn of(&self, side: Side) -> &str {
        &self.called[usize::from(side == Side::Far)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_name_of_more_than_a_third_of_a_page_is_told_once() {
        let (_, mut model, _) = sample::healthy();
        for (columns, way) in [
            (LONGEST, format!("ripple -> {}", "b".repeat(LONGEST))),
            (LONGEST + 1, "near -> far".to_owned()),
        ] {
            let far = "b".repeat(columns);
            model.hosts[1].facts.name.clone_from(&far);
            let names = Names::of_hosts(&model);
            assert_eq!(names.way(Direction::Forward), way);
            assert_eq!(names.are_long(), columns > LONGEST);
            assert_eq!(names.explained().concat().matches(&far).count(), 1);
        }
    }
}
