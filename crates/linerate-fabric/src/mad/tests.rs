use proptest::prelude::*;

use super::counters::{COUNT, COUNTERS, Counted, Counters, Support};
use super::node::{NodeInfo, NodeKind, description};
use super::port::{ExtendedSpeed, PartitionKey, PortInfo, partition_keys};
use super::subnet::{ManagerInfo, ManagerState, Path, SwitchInfo, forwarding};
use super::*;
use linerate_ceiling::infiniband::Speed;
use linerate_facts::infiniband::{LinkState, PhysicalState};
use linerate_units::Rate;

const FROM: PortId = PortId { prefix: 0xfe80_0000_0000_0000, guid: Guid(0x1111) };
const TO: PortId = PortId { prefix: 0xfe80_0000_0000_0000, guid: Guid(0x2222) };

/// Every attribute, with its number, management class and modifier.
const ALL: [(Attribute, u16, u8, u32); 12] = [
    (Attribute::NodeDescription, 0x10, 0x81, 0),
    (Attribute::NodeInfo, 0x11, 0x81, 0),
    (Attribute::SwitchInfo, 0x12, 0x81, 0),
    (Attribute::PortInfo(7), 0x15, 0x81, 7),
    (Attribute::PartitionKeys(3), 0x16, 0x81, 3),
    (Attribute::Forwarding(0x2ff), 0x19, 0x81, 0x2ff),
    (Attribute::ManagerInfo, 0x20, 0x81, 0),
    (Attribute::ExtendedPortInfo(9), 0xff90, 0x81, 9),
    (Attribute::CounterSupport, 0x01, 0x04, 0),
    (Attribute::Counters(5), 0x12, 0x04, 0),
    (Attribute::WideCounters(5), 0x1d, 0x04, 0),
    (Attribute::Path { from: FROM, to: TO }, 0x35, 0x03, 0),
];

fn route(ports: &[u8]) -> Route {
    let start = Route::default();
    ports.iter().fold(start, |route, port| route.then(*port).unwrap())
}

fn directed(attribute: Attribute) -> Get {
    Get { to: To::Route(route(&[1, 19, 36])), attribute }
}

/// A reply to `get` with `bytes`, each at its offset in the data.
fn reply(get: &Get, bytes: &[(usize, &[u8])]) -> [u8; LEN] {
    let mut mad = get.encode(1);
    mad[3] = 0x81;
    let data = get.attribute.data();
    mad[data..].fill(0);
    for (at, bytes) in bytes {
        put(&mut mad, data + at, bytes);
    }
    mad
}

/// Decodes data with `bytes`, each at its offset.
fn decode<T>(attribute: Attribute, bytes: &[(usize, &[u8])], decode: fn(Data<'_>) -> T) -> T {
    let get = directed(attribute);
    decode(get.reply(&reply(&get, bytes)).unwrap())
}

/// Requests for all attributes, each by a directed route and by a LID.
fn requests() -> impl Iterator<Item = Get> {
    let ways = [To::Route(route(&[1, 19, 36])), To::Lid(0x1234)];
    let all = ALL.iter().map(|(attribute, ..)| *attribute);
    all.flat_map(move |attribute| {
        let ways = ways.clone();
        ways.map(|to| Get { to, attribute })
    })
}

#[test]
fn every_request_is_a_get() {
    for get in requests() {
        let mad = get.encode(0x0102_0304);
        assert_eq!(mad[0], 1, "version of the format");
        assert_eq!(mad[3], 0x01, "{get:?} changes something");
        assert_eq!(mad[4..6], [0, 0], "status");
        assert_eq!(mad[8..16], [0, 0, 0, 0, 1, 2, 3, 4], "transaction");
        assert_eq!(mad[24..32], [0; 8], "management key");
        assert_eq!(transaction(&mad), Some(0x0102_0304));
    }
}

#[test]
fn requests_have_the_bytes_of_the_standard() {
    for (attribute, number, class, modifier) in ALL {
        let mad = directed(attribute).encode(9);
        assert_eq!(mad[1], class, "{attribute:?}");
        assert_eq!(mad[2], if class == 0x03 { 2 } else { 1 }, "{attribute:?}");
        assert_eq!(mad[16..18], number.to_be_bytes(), "{attribute:?}");
        assert_eq!(mad[20..24], modifier.to_be_bytes(), "{attribute:?}");
    }
    let mad = directed(Attribute::NodeInfo).encode(9);
    assert_eq!(mad[6..8], [0, 3], "first hop, number of hops");
    assert_eq!(mad[32..36], [0xff; 4], "LIDs");
    assert_eq!(mad[128..133], [0, 1, 19, 36, 0], "route");
    let by_lid = Get { to: To::Lid(0x1234), attribute: Attribute::NodeInfo };
    let mad = by_lid.encode(9);
    assert_eq!((mad[1], by_lid.lid()), (0x01, 0x1234));
    assert_eq!((&mad[6..8], &mad[32..36]), (&[0; 2][..], &[0; 4][..]));
    for attribute in [Attribute::Counters(5), Attribute::WideCounters(5)] {
        assert_eq!(directed(attribute).encode(9)[65], 5, "port of {attribute:?}");
    }
}

#[test]
fn a_path_is_asked_for_by_both_ports() {
    let get = Get { to: To::Lid(1), attribute: Attribute::Path { from: FROM, to: TO } };
    let mad = get.encode(9);
    // Bits 2, 3 and 12: far GID, near GID, number of paths.
    assert_eq!(mad[48..56], 0x100c_u64.to_be_bytes());
    assert_eq!(mad[64..80], [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x22, 0x22]);
    assert_eq!(mad[80..96], [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x11]);
    assert_eq!(mad[56 + 49], 1);
    assert_eq!(get.attribute.service().queue_pair(), 1);
    let bytes: [(usize, &[u8]); 3] =
        [(40, &[0x00, 0x05, 0x00, 0x07]), (50, &[0x80, 0x01, 0xff, 0xf3]), (54, &[0x85, 0x87])];
    let path = Path::decode(get.reply(&reply(&get, &bytes)).unwrap());
    assert_eq!((path.to, path.from, path.level), (5, 7, 3));
    assert_eq!((path.mtu, path.rate), (Some(4096), Some(Rate(40_000_000_000))));
    assert_eq!(path.key.0, 0x8001);
}

#[test]
fn a_ping_needs_no_right_to_manage() {
    let ping = Get::ping(7);
    assert_eq!((ping.lid(), ping.attribute.service().queue_pair()), (7, 1));
    assert_eq!(ping.encode(1)[..4], [1, 0x04, 1, 0x01]);
}

#[test]
fn a_route_has_at_most_63_links() {
    let long = route(&[1; 63]);
    assert_eq!(long.then(1), None);
    let get = Get { to: To::Route(long), attribute: Attribute::NodeInfo };
    let mad = get.encode(1);
    assert_eq!((mad[7], mad[191], mad[192]), (63, 1, 0));
}

#[test]
fn only_the_reply_to_a_request_is_taken() {
    let get = directed(Attribute::PortInfo(7));
    let good = reply(&get, &[]);
    assert!(get.reply(&good).is_ok());
    let mut on_its_way = good;
    on_its_way[4] = 0x80;
    assert!(get.reply(&on_its_way).is_ok(), "direction of a directed route");
    for (at, byte) in [(1, 0x01), (3, 0x01), (17, 0x11), (23, 8)] {
        let mut other = good;
        other[at] = byte;
        assert_eq!(get.reply(&other).err(), Some(Refusal::Other), "byte {at}");
    }
    let mut refused = good;
    refused[4..6].copy_from_slice(&[0x80, 0x0c]);
    assert_eq!(get.reply(&refused).err(), Some(Refusal::Status(0x0c)));
    let mut by_lid = Get::ping(1);
    let mut refused = reply(&by_lid, &[]);
    refused[4] = 0x80;
    assert_eq!(by_lid.reply(&refused).err(), Some(Refusal::Status(0x8000)));
    by_lid.to = To::Lid(2);
    assert!(matches!(get.reply(&good[..255]), Err(Refusal::Malformed(_))));
}

#[test]
fn a_node_has_the_fields_of_the_standard() {
    let bytes: Vec<u8> = (0..40).collect();
    let info = decode(Attribute::NodeInfo, &[(0, &bytes)], NodeInfo::decode);
    assert_eq!((info.kind, info.ports), (NodeKind::Switch, 3));
    assert_eq!(info.system, Guid(0x0405_0607_0809_0a0b));
    assert_eq!(info.guid, Guid(0x0c0d_0e0f_1011_1213));
    assert_eq!(info.port_guid, Guid(0x1415_1617_1819_1a1b));
    assert_eq!((info.partitions, info.device), (0x1c1d, 0x1e1f));
    assert_eq!((info.local_port, info.vendor), (0x24, 0x25_2627));
    for (code, kind) in [
        (1, NodeKind::Host),
        (3, NodeKind::Router),
        (0, NodeKind::Other(0)),
        (4, NodeKind::Other(4)),
    ] {
        let info = decode(Attribute::NodeInfo, &[(2, &[code])], NodeInfo::decode);
        assert_eq!(info.kind, kind);
    }
}

#[test]
fn a_description_is_text_without_control_characters() {
    let of = |bytes: &[u8]| decode(Attribute::NodeDescription, &[(0, bytes)], description);
    assert_eq!(of(b"srv mlx5_0\0rubbish"), "srv mlx5_0");
    assert_eq!(of(b"a\x1b[31mb\r\n"), "a [31mb");
    assert_eq!(of(&[b'x'; 64]).len(), 64);
    assert_eq!(of(&[0xff, b'a']), "\u{fffd}a");
    assert_eq!(of(b""), "");
}

fn port_info(bytes: &[(usize, &[u8])]) -> PortInfo {
    decode(Attribute::PortInfo(1), bytes, PortInfo::decode)
}

#[test]
fn a_port_has_the_fields_of_the_standard() {
    let bytes: Vec<u8> = (0..64).collect();
    let info = port_info(&[(0, &bytes)]);
    assert_eq!(info.prefix, 0x0809_0a0b_0c0d_0e0f);
    assert_eq!((info.lid, info.manager_lid), (0x1011, 0x1213));
    assert_eq!(info.local_port, 28);
    assert!(port_info(&[(20, &[0, 0, 0, 0x02])]).is_manager());
    assert!(!port_info(&[(20, &[0xff, 0xff, 0xff, 0xfd])]).is_manager());
    for (code, state) in [
        (0, None),
        (1, Some(LinkState::Down)),
        (4, Some(LinkState::Active)),
        (5, Some(LinkState::ActiveDefer)),
        (6, None),
    ] {
        assert_eq!(port_info(&[(32, &[0xf0 | code])]).state, state);
    }
    for (code, state) in [
        (0, None),
        (1, Some(PhysicalState::Sleep)),
        (5, Some(PhysicalState::LinkUp)),
        (7, Some(PhysicalState::PhyTest)),
        (8, None),
    ] {
        assert_eq!(port_info(&[(33, &[code << 4 | 0xf])]).physical, state);
    }
    assert_eq!(port_info(&[(34, &[0xff])]).lid_mask, 7);
}

#[test]
fn an_mtu_has_a_code_from_1_to_5() {
    for (code, mtu) in [
        (0, None),
        (1, Some(256)),
        (2, Some(512)),
        (4, Some(2048)),
        (5, Some(4096)),
        (6, None),
        (15, None),
    ] {
        let info = port_info(&[(36, &[code << 4 | 0xf]), (41, &[0xf0 | code])]);
        assert_eq!(info.mtu, mtu, "{code}");
    }
}

#[test]
fn widths_are_bits() {
    for (code, lanes) in [
        (0, None),
        (1, Some(1)),
        (2, Some(4)),
        (4, Some(8)),
        (8, Some(12)),
        (16, Some(2)),
        (3, None),
        (32, None),
        (255, None),
    ] {
        let info = port_info(&[(31, &[code])]);
        assert_eq!(info.width.active, lanes, "{code}");
    }
    // Two lanes are fewer than four, although their bit is higher.
    let info = port_info(&[(29, &[0x13, 0x1f])]);
    assert_eq!(info.width.enabled.widest(), Some(4));
    assert_eq!(info.width.supported.widest(), Some(12));
    // If all bits are set, all supported widths are enabled.
    let info = port_info(&[(29, &[0xff, 0x03])]);
    assert_eq!(info.width.enabled.widest(), Some(4));
    assert_eq!(port_info(&[]).width.enabled.widest(), None);
}

#[test]
fn speeds_are_in_three_fields() {
    for (bytes, active) in [
        ([0x10, 0x00, 0x00], Some(Speed::Sdr)),
        ([0x20, 0x00, 0x00], Some(Speed::Ddr)),
        ([0x40, 0x00, 0x00], Some(Speed::Qdr)),
        ([0x30, 0x00, 0x00], None),
        ([0x80, 0x00, 0x00], None),
        ([0x40, 0x10, 0x00], Some(Speed::Fdr)),
        ([0x40, 0x20, 0x00], Some(Speed::Edr)),
        ([0x40, 0x40, 0x00], Some(Speed::Hdr)),
        ([0x40, 0x80, 0x00], Some(Speed::Ndr)),
        ([0x40, 0x30, 0x00], None),
        ([0x40, 0x00, 0x20], Some(Speed::Xdr)),
        ([0x40, 0x80, 0x20], Some(Speed::Xdr)),
        ([0x40, 0x00, 0x40], None),
        ([0x00, 0x00, 0x00], None),
    ] {
        let [speed, extended, extended2] = bytes;
        let info = port_info(&[(35, &[speed]), (62, &[extended]), (56, &[extended2])]);
        assert_eq!(info.speed.active, active, "{bytes:x?}");
    }
}

#[test]
fn sets_of_speeds_know_their_fastest() {
    let of = |supported: [u8; 3], enabled: [u8; 3]| {
        let info = port_info(&[
            (32, &[supported[0] << 4]),
            (35, &[enabled[0]]),
            (56, &[supported[2] << 3 | enabled[2]]),
            (62, &[supported[1], enabled[1]]),
        ]);
        (info.speed.supported.fastest(), info.speed.enabled.fastest())
    };
    assert_eq!(of([1, 0, 0], [1, 0, 0]), (Some(Speed::Sdr), Some(Speed::Sdr)));
    assert_eq!(of([7, 0, 0], [3, 0, 0]), (Some(Speed::Qdr), Some(Speed::Ddr)));
    assert_eq!(of([7, 15, 0], [15, 31, 0]), (Some(Speed::Ndr), Some(Speed::Ndr)));
    assert_eq!(of([7, 7, 0], [7, 3, 0]), (Some(Speed::Hdr), Some(Speed::Edr)));
    assert_eq!(of([7, 15, 1], [7, 15, 1]), (Some(Speed::Xdr), Some(Speed::Xdr)));
    // This code disables all extended speeds.
    assert_eq!(of([7, 15, 0], [7, 30, 0]), (Some(Speed::Ndr), Some(Speed::Qdr)));
    assert_eq!(of([0; 3], [0; 3]), (None, None));
}

#[test]
fn fdr10_is_in_an_attribute_of_its_own() {
    let qdr: [(usize, &[u8]); 3] = [(32, &[0x70]), (35, &[0x47]), (62, &[0, 0])];
    let with = |bytes: &[(usize, &[u8])]| {
        let extended = decode(Attribute::ExtendedPortInfo(1), bytes, ExtendedSpeed::decode);
        port_info(&qdr).with(extended).speed
    };
    let is = with(&[(7, &[1]), (11, &[1]), (15, &[1])]);
    assert_eq!(is.active, Some(Speed::Fdr10));
    assert_eq!(is.enabled.fastest(), Some(Speed::Fdr10));
    let has = with(&[(7, &[1])]);
    assert_eq!(has.active, Some(Speed::Qdr));
    assert_eq!(has.supported.fastest(), Some(Speed::Fdr10));
    assert_eq!(has.enabled.fastest(), Some(Speed::Qdr));
    let none = with(&[(3, &[1])]);
    assert_eq!(none.supported.fastest(), Some(Speed::Qdr));
}

#[test]
fn partition_keys_have_a_number_and_a_membership() {
    let bytes = [0xff, 0xff, 0, 0, 0x7f, 0xff, 0x80, 0x00, 0x80, 0x01];
    let keys =
        decode(Attribute::PartitionKeys(0), &[(0, &bytes), (62, &[0x00, 0x02])], partition_keys);
    let numbers: Vec<(u16, bool)> = keys.iter().map(|k| (k.partition(), k.is_full())).collect();
    assert_eq!(numbers, [(0x7fff, true), (0x7fff, false), (1, true), (2, false)]);
    assert_eq!(keys[3], PartitionKey(2));
}

#[test]
fn managers_and_switches_have_the_fields_of_the_standard() {
    let bytes: Vec<u8> = (0..21).collect();
    let info = decode(Attribute::ManagerInfo, &[(0, &bytes)], ManagerInfo::decode);
    assert_eq!(info.guid, Guid(0x0001_0203_0405_0607));
    assert_eq!((info.activity, info.priority), (0x1011_1213, 1));
    for (code, state) in [
        (0, ManagerState::NotActive),
        (1, ManagerState::Discovering),
        (2, ManagerState::Standby),
        (3, ManagerState::Master),
        (4, ManagerState::Other(4)),
    ] {
        let info = decode(Attribute::ManagerInfo, &[(20, &[0xf0 | code])], ManagerInfo::decode);
        assert_eq!((info.state, info.priority), (state, 15));
    }
    let switch = decode(Attribute::SwitchInfo, &[(0, &bytes)], SwitchInfo::decode);
    assert_eq!((switch.room, switch.top), (0x0001, 0x0607));
    let table = decode(Attribute::Forwarding(0), &[(0, &[9]), (63, &[7, 8])], forwarding);
    assert_eq!((table[0], table[63]), (9, 7));
}

#[test]
fn counters_are_at_the_places_of_the_standard() {
    let bytes: Vec<u8> = (1..=44).collect();
    let read = decode(Attribute::Counters(1), &[(0, &bytes)], Counters::decode);
    let of = |name| {
        let index = COUNTERS.iter().position(|c| c.name == name).unwrap();
        read.values[index]
    };
    for (name, value) in [
        ("symbol_error", 0x0506),
        ("link_error_recovery", 0x07),
        ("link_downed", 0x08),
        ("port_rcv_errors", 0x090a),
        ("port_rcv_remote_physical_errors", 0x0b0c),
        ("port_rcv_switch_relay_errors", 0x0d0e),
        ("port_xmit_discards", 0x0f10),
        ("port_xmit_constraint_errors", 0x11),
        ("port_rcv_constraint_errors", 0x12),
        ("local_link_integrity_errors", 0x1),
        ("excessive_buffer_overrun_errors", 0x4),
        ("VL15_dropped", 0x1718),
        ("port_xmit_data", 0x191a_1b1c),
        ("port_rcv_data", 0x1d1e_1f20),
        ("port_xmit_packets", 0x2122_2324),
        ("port_rcv_packets", 0x2526_2728),
        ("port_xmit_wait", 0x292a_2b2c),
    ] {
        assert_eq!(of(name), value, "{name}");
    }
}

#[test]
fn wide_counters_replace_those_that_the_node_has() {
    let narrow = decode(Attribute::Counters(1), &[], Counters::decode);
    let places: Vec<u8> = (0..176).collect();
    let with = |wide, wide_errors| {
        let support = Support { wide, wide_errors, wait: true };
        let get = directed(Attribute::WideCounters(1));
        let mad = reply(&get, &[(0, &places)]);
        narrow.with_wide(support, get.reply(&mad).unwrap()).values
    };
    let at = |place: u8| u64::from_be_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| place + n));
    let traffic = with(true, false);
    assert_eq!(traffic[12..16], [8, 16, 24, 32].map(at));
    assert_eq!((traffic[0], traffic[16]), (0, 0));
    let all = with(true, true);
    assert_eq!(all[..12], [72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160].map(at));
    assert_eq!((all[12], all[16]), (at(8), at(168)));
    assert_eq!(with(false, false), [0; COUNT]);
}

#[test]
fn a_counter_is_full_at_its_largest_value() {
    let full = decode(Attribute::Counters(1), &[(0, &[0xff; 44])], Counters::decode);
    let less = decode(Attribute::Counters(1), &[(0, &[0xee; 44])], Counters::decode);
    for index in 0..COUNT {
        assert!(full.is_full(index) && !less.is_full(index), "{index}");
    }
    let support = Support { wide: true, ..Support::default() };
    let get = directed(Attribute::WideCounters(1));
    let mut mad = reply(&get, &[(8, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])]);
    let wide = full.with_wide(support, get.reply(&mad).unwrap());
    assert!(wide.is_full(0) && !wide.is_full(12), "32 bits of 64");
    mad[72..80].fill(0xff);
    assert!(full.with_wide(support, get.reply(&mad).unwrap()).is_full(12));
}

#[test]
fn what_counters_can_do_is_in_two_masks() {
    let of = |bytes: &[(usize, &[u8])]| decode(Attribute::CounterSupport, bytes, Support::decode);
    assert_eq!(of(&[]), Support::default());
    assert!(of(&[(2, &[0x02, 0x00])]).wide && of(&[(2, &[0x04, 0x00])]).wide);
    assert!(!of(&[(2, &[0x09, 0xff])]).wide && of(&[(2, &[0x10, 0])]).wait);
    // Bit 1 of the second mask, which is in the upper 27 bits.
    assert!(of(&[(2, &[0x02, 0, 0, 0, 0, 0x40])]).wide_errors);
    assert!(!of(&[(2, &[0x02, 0, 0, 0, 0, 0x3f])]).wide_errors);
    assert!(!of(&[(4, &[0, 0, 0, 0x40])]).wide_errors, "without the attribute");
}

#[test]
fn errors_are_told_apart_by_where_they_come_from() {
    let of = |counted| COUNTERS.iter().filter(move |c| c.counted == counted).count();
    assert_eq!((of(Counted::Symbols), of(Counted::Damage), of(Counted::Breaks)), (1, 3, 2));
    assert_eq!((of(Counted::Words), of(Counted::Packets), of(Counted::Waits)), (2, 2, 1));
}

fn decode_all(get: &Get, mad: &[u8]) {
    let Ok(data) = get.reply(mad) else {
        return;
    };
    let _ = (NodeInfo::decode(data), description(data));
    let info = PortInfo::decode(data).with(ExtendedSpeed::decode(data));
    let _ = (info.speed.enabled.fastest(), info.width.enabled.widest());
    let _ = (partition_keys(data), SwitchInfo::decode(data), forwarding(data));
    let _ = (ManagerInfo::decode(data), Path::decode(data));
    let counters = Counters::decode(data).with_wide(Support::decode(data), data);
    let _ = (0..COUNT).filter(|index| counters.is_full(*index)).count();
}

proptest! {
    #[test]
    fn no_reply_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..24_usize) {
        let get = requests().nth(at).unwrap();
        let _ = transaction(&bytes);
        decode_all(&get, &bytes);
        // The header now fits the request, with the random data after it.
        let mut mad = reply(&get, &[]);
        put(&mut mad, get.attribute.data(), &bytes);
        decode_all(&get, &mad);
    }
}
