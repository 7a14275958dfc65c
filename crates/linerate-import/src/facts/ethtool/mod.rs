//! `ethtool`: the settings of network ports.

mod counters;
mod driver;
mod features;
mod parameters;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use counters::COUNTERS;
pub(crate) use driver::DRIVER;
pub(crate) use features::FEATURES;
pub(crate) use parameters::PARAMETERS;
pub(crate) use settings::{SETTINGS, is_speed};

use linerate_facts::nic::Nic;

use crate::facts::lines::Reading;
use crate::format::Section;
use crate::reading::MOST;

const PROGRAM: &str = "ethtool";
const VERSIONS: &str = "ethtool 3.0 to 6.15";

/// The name of the port in a line such as `Settings for eth0:`.
fn named<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let name = line.strip_prefix(start)?.strip_suffix(':')?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    is_name.then_some(name)
}

/// The port with this name, added if it is new; `None` if there are too many ports.
fn port<'a>(reading: &'a mut Reading<'_>, name: &str) -> Option<&'a mut Nic> {
    super::port(&mut reading.facts.network, name)
}

/// The lines of an output, without errors about values that only root may read or that the driver does not have.
fn reading<'a>(section: &Section<'a>) -> Reading<'a> {
    const REFUSED: [&str; 2] = ["netlink error: ", "Cannot get "];
    let mut reading = Reading::of(section);
    reading.lines.retain(|line| !REFUSED.iter().any(|start| line.text.starts_with(start)));
    reading
}

impl Reading<'_> {
    /// Whether another port may be added to the facts.
    fn has_room(&self) -> bool {
        self.facts.network.nics.len() < MOST
    }
}
