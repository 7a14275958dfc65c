//! Case files: they describe a path by hand; ceilings are computed from its hardware.
//!
//! A file is read strictly: unknown keys and impossible hardware are refused with line and reason. A value that is
//! missing is not guessed; it widens the result to an interval.

mod answer;
mod check;
mod facts;
mod measured;
mod outputs;
mod packet;
mod parts;
mod published;
mod typo;
mod value;

use serde::Deserialize;

use linerate_ceiling::Link;
use linerate_ceiling::ethernet::Tunnel;
use linerate_ceiling::storage::Policy;
use linerate_units::{Bytes, Nanos, Rate};

pub use answer::{Answer, Estimate, Price, answer};
pub use measured::{imported, measured};
pub use outputs::{ClaimKey, Output, Reported, SizeSeries, reported};
pub use published::{FigureCheck, Published, check_figures};
pub use value::{Clock, Figure, Slot};

/// Why a case is refused, in words; with line and caret if the text is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CaseError(String);

/// A path described by hand.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// A title in one line.
    pub title: String,
    /// The story of the case, as text for people.
    #[serde(default)]
    pub story: String,
    /// The protocol that moves the bytes.
    pub protocol: Protocol,
    /// Version of IP, 4 or 6.
    #[serde(default, deserialize_with = "value::ip")]
    pub ip: Option<linerate_ceiling::ethernet::Ip>,
    /// Whether TCP segments carry timestamps.
    pub timestamps: Option<bool>,
    /// Number of streams, 1 to 1024.
    #[serde(default, deserialize_with = "value::count::<_, 1024>")]
    pub streams: Option<u32>,
    /// The near host.
    pub near: Host,
    /// The far host.
    #[serde(default)]
    pub far: Host,
    /// The network between the hosts.
    #[serde(default)]
    pub net: Net,
    /// The storage on the far host, if the bytes come from there.
    #[serde(default)]
    pub storage: Storage,
    /// The price of the hardware of the path.
    pub price: Option<PriceTag>,
    /// Power of the hardware that the path needs, in watts.
    #[serde(default, deserialize_with = "value::positive")]
    pub watts: Option<f64>,
    /// Rates of other ways to move bytes, to compare the path with.
    #[serde(default)]
    pub media: Vec<Medium>,
    /// Figures that were measured on the path and published.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Times by message size that were measured on the path and published.
    #[serde(default)]
    pub sweep: Vec<SizeSeries>,
    /// Outputs of programs that measured the path.
    #[serde(default)]
    pub output: Vec<Output>,
    /// Claims about the measured results.
    #[serde(default)]
    pub claim: Vec<ClaimKey>,
}

/// The protocol that carries the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP. On InfiniBand ports it uses IP over InfiniBand.
    Tcp,
    /// UDP. On InfiniBand ports it uses IP over InfiniBand.
    Udp,
    /// RDMA: InfiniBand, or either version of RoCE.
    Rdma,
    /// RoCE version 1: RDMA in Ethernet frames, without IP.
    RoceV1,
    /// RoCE version 2: RDMA in UDP packets.
    RoceV2,
}

impl Protocol {
    /// Whether the CPU copies received payload from the kernel to the program.
    pub const fn copies(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }
}

/// One of the two hosts of a path.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Host {
    /// The name of the host: `c5n.18xlarge`.
    pub name: String,
    /// Clock rate of one core: `3.3GHz`.
    #[serde(deserialize_with = "value::text")]
    pub clock: Option<Clock>,
    /// The memory of the host.
    pub memory: Memory,
    /// The port of the host.
    pub port: PortSpec,
}

/// Memory of a host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Memory {
    /// Number of memory channels that have modules.
    #[serde(deserialize_with = "value::count::<_, 64>")]
    pub channels: Option<u32>,
    /// Memory speed in millions of transfers per second: 1600 for DDR3-1600.
    #[serde(deserialize_with = "value::count::<_, 100_000>")]
    pub speed: Option<u32>,
    /// Whether cards can write into the cache; memory is a ceiling only if they cannot.
    pub direct_cache: Option<bool>,
}

/// The cards and ports that a host uses for the path.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortSpec {
    /// Model of the card, for people.
    pub card: String,
    /// Link of each port: `10Gb/s` for Ethernet, `4x FDR` for InfiniBand.
    #[serde(deserialize_with = "value::text")]
    pub link: Option<Link>,
    /// Largest packet in bytes: of IP on Ethernet, of payload on InfiniBand.
    #[serde(deserialize_with = "value::count::<_, 65_535>")]
    pub mtu: Option<u32>,
    /// Largest packet of IP over InfiniBand, in bytes.
    #[serde(deserialize_with = "value::count::<_, 65_535>")]
    pub ip_mtu: Option<u32>,
    /// Slot of each card: `gen3x8`, `gen3`, `x8`, `pci-32/33`, `pcix-64/133`, or `none` for a port without a slot.
    #[serde(deserialize_with = "value::text")]
    pub pcie: Option<Slot>,
    /// Largest payload of a PCIe packet in bytes.
    #[serde(deserialize_with = "value::size")]
    pub mps: Option<u32>,
    /// Largest read that the card requests, in bytes.
    #[serde(deserialize_with = "value::size")]
    pub mrrs: Option<u32>,
    /// Number of ports in use on each card.
    #[serde(deserialize_with = "value::count::<_, 4>")]
    pub ports: Option<u32>,
    /// Number of cards in use, each in its own slot.
    #[serde(deserialize_with = "value::count::<_, 8>")]
    pub cards: Option<u32>,
}

impl PortSpec {
    /// Number of links that leave the host: those of all cards together.
    pub fn links(&self) -> u32 {
        self.cards.unwrap_or(1) * self.ports.unwrap_or(1)
    }
}

/// What the case tells about the network between the hosts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Net {
    /// Number of VLAN tags of each frame.
    #[serde(deserialize_with = "value::count::<_, 2>")]
    pub vlans: Option<u32>,
    /// Kind of tunnel that wraps the packets.
    #[serde(deserialize_with = "value::tunnel")]
    pub tunnel: Option<Tunnel>,
    /// Highest rate that the network lets through in each direction.
    #[serde(deserialize_with = "value::text")]
    pub limit: Option<Rate>,
    /// Highest rate of one stream that the network lets through.
    #[serde(deserialize_with = "value::text")]
    pub flow_limit: Option<Rate>,
    /// Most packets per second in each direction.
    #[serde(deserialize_with = "value::count::<_, 1_000_000_000>")]
    pub packet_limit: Option<u32>,
    /// Length of the cable in metres.
    #[serde(deserialize_with = "value::positive")]
    pub cable: Option<f64>,
    /// Number of switches on the path.
    #[serde(deserialize_with = "value::count::<_, 64>")]
    pub switches: Option<u32>,
    /// Time that a packet spends in each switch.
    #[serde(deserialize_with = "value::text")]
    pub switch_latency: Option<Nanos>,
}

/// What the case tells about the storage on the far host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Storage {
    /// How the storage is used if several paths lead to it.
    #[serde(deserialize_with = "value::policy")]
    pub policy: Option<Policy>,
    /// Payload of an operation, in bytes.
    #[serde(deserialize_with = "value::text")]
    pub operation: Option<Bytes>,
    /// Number of operations in flight at the same time.
    #[serde(deserialize_with = "value::count::<_, 1_000_000>")]
    pub depth: Option<u32>,
    /// Latency of each operation.
    #[serde(deserialize_with = "value::text")]
    pub latency: Option<Nanos>,
    /// Most operations per second that the device can do.
    #[serde(deserialize_with = "value::count::<_, 1_000_000_000>")]
    pub operations: Option<u32>,
    /// Highest rate of payload that the device can do.
    #[serde(deserialize_with = "value::text")]
    pub rate: Option<Rate>,
}

/// The price of the hardware of the path.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriceTag {
    /// The total price, in units of `currency`.
    #[serde(deserialize_with = "value::amount")]
    pub amount: f64,
    /// The currency of the price.
    pub currency: String,
    /// Unit of time that the price is for: `hour` for rented hardware; empty if it is bought.
    #[serde(default)]
    pub per: String,
}

/// Another way to move bytes, to compare the path with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Medium {
    /// The name of the medium.
    pub name: String,
    /// The rate of the medium.
    #[serde(deserialize_with = "value::word")]
    pub rate: Rate,
}

/// The directions that carry payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Payload goes from near to far.
    #[default]
    Forward,
    /// Payload goes from far to near.
    Reverse,
    /// Payload goes in both directions at the same time.
    Both,
}

impl Case {
    /// Reads the text of a case file, and replaces the values in `sets`, each written like `near.port.pcie=gen3x16`.
    pub fn read(text: &str, sets: &[impl AsRef<str>]) -> Result<Self, CaseError> {
        let mut case: Self = toml::from_str(text).map_err(|e| typo::in_file(&e))?;
        if !sets.is_empty() {
            let mut table: toml::Table = text.parse().map_err(|e| typo::in_file(&e))?;
            for set in sets {
                case = replaced(&mut table, set.as_ref())?;
            }
        }
        check::check(&case)?;
        Ok(case)
    }
}

/// Most parts of a key: `near.port.pcie` has three.
const DEEPEST: usize = 3;

/// Replaces one value in the table of a case file, and reads the case again.
fn replaced(table: &mut toml::Table, set: &str) -> Result<Case, CaseError> {
    let refuse = |why: String| CaseError(format!("`{set}` cannot be set: {why}"));
    let (key, value) = set
        .split_once('=')
        .ok_or_else(|| refuse("expected KEY=VALUE, such as near.port.mtu=9000".to_owned()))?;
    let mut parts: Vec<&str> = key.split('.').map(str::trim).collect();
    if parts.len() > DEEPEST {
        return Err(refuse(format!("no key has more than {DEEPEST} parts")));
    }
    let last = parts.pop().unwrap_or_default();
    let mut at = &mut *table;
    for part in parts {
        let below =
            at.entry(part.to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at =
            below.as_table_mut().ok_or_else(|| refuse(format!("`{part}` has no keys below it")))?;
    }
    at.insert(last.to_owned(), typed(value.trim()));
    // The changed table is read as text, like a file: a second decoder for tables would double the compiled code.
    let case = toml::from_str::<Case>(&table.to_string());
    case.map_err(|e| refuse(typo::explained(e.message())))
}

/// Reads numbers and truth values by their type, and everything else as text.
fn typed(value: &str) -> toml::Value {
    use toml::Value;
    match value.parse() {
        Ok(known @ (Value::Integer(_) | Value::Float(_) | Value::Boolean(_))) => known,
        _ => Value::String(value.to_owned()),
    }
}

#[cfg(test)]
mod tests;
