//! Reads the output of `ibv_devinfo`.

use linerate_facts::infiniband::{Gid, Guid, IbPort, IbRate};

use super::{Devices, WIDTHS, lane_rate, layer, physical, state};
use crate::facts::lines::{Reading, understood};
use crate::format::{Format, Found, Section};
use crate::reading::{Line, MOST, lookup, small};

pub(crate) static IBV_DEVINFO: Format = Format {
    id: "ibv-devinfo",
    label: "ibv_devinfo, plain and with -v",
    versions: "libibverbs 1.1 to rdma-core 60, MLNX_OFED",
    evidence: "published: deepseek-ai/DeepEP issue 60 (plain, RoCE); with -v a listing of a card for HDR in \
        files of public repositories, shortened, with a second port after a listing of a card for FDR",
    unknown: "Without -v it has no rate and no state of the wire, and it never has the slot of the card; the rate of a \
              port that is down is left out.",
    starts: |at| at.line.starts_with("hca_id:"),
    read,
    ..Format::FACTS
};

/// Numbers of the speeds of a lane in the output, with their names.
//= include/rdma/ib_verbs.h, enum ib_port_speed
const SPEEDS: [(u32, &str); 9] = [
    (1, "SDR"),
    (2, "DDR"),
    (4, "QDR"),
    (8, "FDR10"),
    (16, "FDR"),
    (32, "EDR"),
    (64, "HDR"),
    (128, "NDR"),
    (256, "XDR"),
];

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut last = Last::default();
    Devices::new(Reading::of(section)).read("ibv_devinfo", |devices, line| last.take(devices, line))
}

/// The device or port that the lines read so far were about.
#[derive(Default)]
struct Last {
    /// Number of lanes of the last port.
    width: Option<u32>,
    /// Whether the lines are about a port, and not about its device.
    in_port: bool,
}

impl Last {
    /// Reads a line; `None` if it is not understood. With `-v` some 80 further lines have limits of the device, which
    /// are not used.
    fn take(&mut self, devices: &mut Devices<'_>, line: Line<'_>) -> Option<()> {
        let passed = line.is_indented().then_some(());
        let Some((key, value)) = line.pair() else {
            return passed;
        };
        match key {
            "hca_id" => {
                self.in_port = false;
                devices.begin(value);
            }
            "port" => {
                let number = small(value)?;
                (self.in_port, self.width) = (true, None);
                devices.begin_port(number);
            }
            "active_width" if self.in_port => {
                self.width = value.split('X').next().and_then(small);
                return self.width.filter(|width| WIDTHS.contains(width)).map(|_| ());
            }
            "active_speed" if self.in_port => {
                devices.rate_line = Some((line.number, value.to_owned()));
                let rate = self.width.and_then(|width| rate(width, value));
                return understood(&mut devices.port()?.rate, rate);
            }
            _ if self.in_port => return of_port(devices.port()?, key, value, passed),
            _ => return of_device(devices, key, value).or(passed),
        }
        Some(())
    }
}

fn of_device(devices: &mut Devices<'_>, key: &str, value: &str) -> Option<()> {
    let device = devices.device()?;
    match key {
        "fw_ver" => value.clone_into(&mut device.firmware),
        "board_id" => value.clone_into(&mut device.board),
        "node_guid" => device.node_guid = guid(value),
        _ => return None,
    }
    Some(())
}

/// Reads a value of a port; `None` if it is not understood. Returns `passed` if the value is not used.
fn of_port(port: &mut IbPort, key: &str, value: &str, passed: Option<()>) -> Option<()> {
    let name = value.split(" (").next().unwrap_or_default();
    let has_room = port.gids.len() < MOST;
    match key {
        "state" => understood(&mut port.state, state(name.strip_prefix("PORT_").unwrap_or(name))),
        "phys_state" => understood(&mut port.physical, physical(name)),
        "max_mtu" => understood(&mut port.mtu_max, small(name)),
        "active_mtu" => understood(&mut port.mtu, small(name)),
        "sm_lid" => understood(&mut port.sm_lid, small(value).map(u64::from)),
        "port_lid" => understood(&mut port.lid, small(value).map(u64::from)),
        "link_layer" => {
            let known = layer(value);
            port.layer = known.unwrap_or_default();
            known.ok().map(|_| ())
        }
        _ if key.starts_with("GID[") => {
            gid(key, value).map(|gid| port.gids.extend(Some(gid).filter(|_| has_room)))
        }
        _ => passed,
    }
}

/// The rate of `width` lanes, each with a speed such as `14.0 Gbps (16)`.
fn rate(width: u32, value: &str) -> Option<IbRate> {
    let number = value.rsplit_once('(')?.1.strip_suffix(')')?;
    lane_rate(lookup(&SPEEDS, small(number)?)?, width)
}

/// A GUID such as `ec0d:9a03:007d:7d1b`.
fn guid(value: &str) -> Option<Guid> {
    let digits: String = value.split(':').collect();
    let is_whole = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_whole.then(|| u64::from_str_radix(&digits, 16).ok().map(Guid))?
}

/// Reads a line such as `GID[  0]:   fe80:0000:0000:0000:88e9:a4ff:ff25:a462`, which may end with `, RoCE v2`.
fn gid(key: &str, value: &str) -> Option<Gid> {
    let index = key.strip_prefix("GID[")?.strip_suffix(']')?;
    let (gid, kind) = value.split_once(',').unwrap_or((value, ""));
    let gid = gid.trim();
    gid.parse::<std::net::Ipv6Addr>().ok()?;
    Some(Gid {
        index: small(index.trim())?,
        gid: gid.to_owned(),
        kind: kind.trim().to_owned(),
        netdev: String::new(),
    })
}
