//! Readers of programs that show RDMA devices: `ibstat`, `ibstatus`, `ibv_devinfo` and others.

mod counters;
mod ibstat;
mod ibstatus;
mod ibv;
mod mlxlink;
#[cfg(test)]
mod tests;

pub(crate) use counters::{IBQUERYERRORS, PERFQUERY};
pub(crate) use ibstat::IBSTAT;
pub(crate) use ibstatus::IBSTATUS;
pub(crate) use ibv::IBV_DEVINFO;
pub(crate) use mlxlink::MLXLINK;

use linerate_facts::infiniband::{
    Gid, Guid, IbDevice, IbPort, IbRate, Layer, LinkState, PhysicalState,
};
use linerate_units::Rate;

use crate::facts::lines::Reading;
use crate::format::Found;
use crate::reading::{Line, MOST, lookup, named};

/// Rates of one lane, in tenths of Gb/s, as the kernel counts them.
//= torvalds/linux, drivers/infiniband/core/sysfs.c, rate_show; ib_verbs.h, enum ib_port_speed
const LANES: [(&str, u64); 9] = [
    ("SDR", 25),
    ("DDR", 50),
    ("QDR", 100),
    ("FDR10", 100),
    ("FDR", 140),
    ("EDR", 250),
    ("HDR", 500),
    ("NDR", 1_000),
    ("XDR", 2_000),
];
/// Possible numbers of lanes of a link.
//= include/rdma/ib_verbs.h, enum ib_port_width
const WIDTHS: [u32; 5] = [1, 2, 4, 8, 12];

/// The rate of `width` lanes with this speed; `None` if the speed has an unknown name.
fn lane_rate(speed: &str, width: u32) -> Option<IbRate> {
    let tenths = lookup(&LANES, speed)?;
    let rate = Rate(tenths * 100_000_000 * u64::from(width));
    Some(IbRate { rate, width, speed: speed.to_owned() })
}

/// The rate that is printed as a whole number of Gb/s; `None` if no link has it. Width and speed stay unknown if
/// several links have this rate: 40 is QDR or FDR10.
fn rate_of(gigabits: u64) -> Option<IbRate> {
    let all = LANES.iter().flat_map(|(name, lane)| {
        WIDTHS.iter().map(move |width| (*name, *width, lane * u64::from(*width)))
    });
    // Programs truncate the rate: 2.5 is printed as 2.
    let mut fits = all.filter(|(_, _, tenths)| tenths / 10 == gigabits);
    let (speed, width, tenths) = fits.next()?;
    let is_only = fits.next().is_none();
    Some(IbRate {
        rate: Rate(tenths * 100_000_000),
        width: if is_only { width } else { 0 },
        speed: if is_only { speed.to_owned() } else { String::new() },
    })
}

/// The GIDs of a port of which only the GUID is known. The upper half, the subnet prefix, is set to zeros.
fn gids_of(guid: Guid) -> Vec<Gid> {
    let digits = format!("{:016x}", guid.0);
    let groups = [&digits[..4], &digits[4..8], &digits[8..12], &digits[12..]];
    vec![Gid {
        index: 0,
        gid: format!("0000:0000:0000:0000:{}", groups.join(":")),
        kind: String::new(),
        netdev: String::new(),
    }]
}

/// The state of a link from its name, as any of these programs writes it.
fn state(name: &str) -> Option<LinkState> {
    let known = [
        ("down", LinkState::Down),
        ("initializing initialize init", LinkState::Initializing),
        ("armed", LinkState::Armed),
        ("active", LinkState::Active),
        ("activedefer active_defer", LinkState::ActiveDefer),
    ];
    named(&known, &name.to_ascii_lowercase())
}

/// The state of the wire from its name, as any of these programs writes it.
fn physical(name: &str) -> Option<PhysicalState> {
    let known = [
        ("sleep", PhysicalState::Sleep),
        ("polling", PhysicalState::Polling),
        ("disabled", PhysicalState::Disabled),
        // The second name is ibv_devinfo's spelling.
        ("portconfigurationtraining portconfigurationtrainning", PhysicalState::Training),
        ("linkup", PhysicalState::LinkUp),
        ("linkerrorrecovery", PhysicalState::ErrorRecovery),
        ("phytest", PhysicalState::PhyTest),
    ];
    named(&known, &name.to_ascii_lowercase().replace(['_', ' '], ""))
}

/// The link layer from its name; `None` if it is unspecified, an error if the name is not understood.
fn layer(name: &str) -> Result<Option<Layer>, ()> {
    match name {
        "InfiniBand" | "IB" => Ok(Some(Layer::InfiniBand)),
        "Ethernet" => Ok(Some(Layer::Ethernet)),
        "Unspecified" | "Unknown" | "" => Ok(None),
        _ => Err(()),
    }
}

/// Collects devices and ports from lines.
struct Devices<'a> {
    reading: Reading<'a>,
    /// The line and the text of the last port's rate.
    rate_line: Option<(u64, String)>,
}

/// Whether an RDMA device is made by software, by its name: drivers and guides use rxe0 and siw_eth0.
pub(crate) fn is_software(name: &str) -> bool {
    ["rxe", "siw"].iter().any(|driver| name.starts_with(driver))
}

impl<'a> Devices<'a> {
    fn new(reading: Reading<'a>) -> Self {
        Self { reading, rate_line: None }
    }

    fn begin(&mut self, name: &str) {
        self.end_port();
        let devices = &mut self.reading.facts.infiniband.devices;
        if devices.len() < MOST {
            devices.push(IbDevice {
                name: name.to_owned(),
                software: is_software(name),
                ..IbDevice::default()
            });
        }
    }

    fn device(&mut self) -> Option<&mut IbDevice> {
        self.reading.facts.infiniband.devices.last_mut()
    }

    fn begin_port(&mut self, number: u32) {
        self.end_port();
        let Some(device) = self.device().filter(|d| d.ports.len() < MOST) else {
            return;
        };
        // If a port is shown twice, its facts are merged, and the later ones count.
        let same = device.ports.iter().position(|port| port.number == number);
        let port = match same {
            Some(at) => device.ports.remove(at),
            None => IbPort { number, ..IbPort::default() },
        };
        device.ports.push(port);
    }

    fn port(&mut self) -> Option<&mut IbPort> {
        self.device()?.ports.last_mut()
    }

    /// Removes the rate of a port that is down, and width and speed of an Ethernet port.
    fn end_port(&mut self) {
        let Some((line, words)) = self.rate_line.take() else {
            return;
        };
        let Some(device) = self.device() else { return };
        let name = device.name.clone();
        let Some(port) = device.ports.last_mut() else {
            return;
        };
        let number = port.number;
        if port.state == Some(LinkState::Down) {
            port.rate = None;
            self.reading.notes.at(
                line,
                format!("{name} port {number} is down: its rate of {words} is no rate of a link, and is left out"),
            );
        } else if let Some(rate) =
            port.rate.as_mut().filter(|_| port.layer == Some(Layer::Ethernet))
        {
            (rate.width, rate.speed) = (0, String::new());
        }
    }

    /// Reads all lines with `take`; a line for which it returns `None` gets a note. It is an error if no device was
    /// found.
    fn read(
        mut self,
        tool: &str,
        mut take: impl FnMut(&mut Self, Line<'a>) -> Option<()>,
    ) -> Result<Found, String> {
        for line in std::mem::take(&mut self.reading.lines) {
            if take(&mut self, line).is_none() {
                self.reading.strange(line);
            }
        }
        self.end_port();
        let devices = &self.reading.facts.infiniband.devices;
        if devices.iter().all(|device| device.ports.is_empty() && device.model.is_empty()) {
            return Err("it ends before anything about a port".to_owned());
        }
        self.reading.found(tool)
    }
}
