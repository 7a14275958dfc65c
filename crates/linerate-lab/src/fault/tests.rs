//! Tests that the text of each fault is parsed to an equal fault.

use super::super::Share;
use super::*;
use linerate_plan::application::{Burden, Role};
use linerate_units::{Bytes, Rate};
use proptest::prelude::*;

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Near), Just(Side::Far)]
}

fn directions() -> impl Strategy<Value = FaultDirection> {
    prop_oneof![
        Just(FaultDirection::Forward),
        Just(FaultDirection::Reverse),
        Just(FaultDirection::Both)
    ]
}

/// Numbers below 2^53, half of them round.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..1_u64 << 52, (0..9_000_000_u64).prop_map(|n| n * 1_000_000)]
}

fn fault() -> impl Strategy<Value = Fault> {
    let depth = prop_oneof![Just(Depth::Shallow), Just(Depth::Deep)];
    let role = prop_oneof![Just(None), Just(Some(Role::Sender)), Just(Some(Role::Receiver))];
    let burden = prop_oneof![
        any::<u64>().prop_map(|ps_per_byte| Burden::Work { ps_per_byte }),
        number().prop_map(|n| Burden::Pause { per_operation: Nanos(n) }),
    ];
    prop_oneof![
        (number(), depth, directions()).prop_map(|(rate, depth, directions)| Fault::PathRate {
            rate: Rate(rate),
            depth,
            directions
        }),
        (side(), number()).prop_map(|(side, n)| Fault::ReceiveWindow { side, bytes: Bytes(n) }),
        (side(), number()).prop_map(|(side, n)| Fault::SendBuffer { side, bytes: Bytes(n) }),
        any::<u32>().prop_map(|bytes| Fault::Mtu { bytes }),
        (number(), number(), 0..4).prop_map(|(a, b, kind)| {
            let (forward, reverse) = match kind {
                0 => (a, 0),
                1 => (0, a),
                2 => (a, a),
                _ => (a, b),
            };
            Fault::Delay { forward: Nanos(forward), reverse: Nanos(reverse) }
        }),
        (side(), number(), number()).prop_map(|(side, after, lasting)| Fault::LinkDown {
            side,
            after: Nanos(after),
            lasting: Nanos(lasting)
        }),
        (side(), role, burden).prop_map(|(side, role, burden)| Fault::Application {
            side,
            role,
            burden
        }),
        (side(), "[A-Z_]+", "[^\0]*").prop_map(|(side, name, value)| Fault::Environment {
            side,
            name,
            value
        }),
        in_the_network(),
        in_a_host(),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    number().prop_map(Rate)
}

fn time() -> impl Strategy<Value = Nanos> {
    number().prop_map(Nanos)
}

fn share() -> impl Strategy<Value = Share> {
    (1..=Share::WHOLE).prop_map(|n| Share::millionths(n).unwrap())
}

fn in_the_network() -> impl Strategy<Value = Fault> {
    let manner = prop_oneof![Just(Manner::Shaped), Just(Manner::Policed)];
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Reverse)];
    let origin = prop_oneof![Just(Origin::Elsewhere), Just(Origin::Ends)];
    let number = any::<u32>();
    prop_oneof![
        (rate(), directions()).prop_map(|(rate, directions)| Fault::Police { rate, directions }),
        (rate(), manner, directions()).prop_map(|(rate, manner, directions)| Fault::FlowRate {
            rate,
            manner,
            directions
        }),
        (share(), number, directions()).prop_map(|(share, burst, directions)| Fault::Loss {
            share,
            burst,
            directions
        }),
        (time(), number, directions()).prop_map(|(by, every, directions)| Fault::Reorder {
            by,
            every,
            directions
        }),
        (time(), directions()).prop_map(|(most, directions)| Fault::Jitter { most, directions }),
        (side(), time()).prop_map(|(side, period)| Fault::Hold { side, period }),
        (number, directions())
            .prop_map(|(bytes, directions)| Fault::BlackHole { bytes, directions }),
        (rate(), direction, origin).prop_map(|(rate, direction, origin)| Fault::Traffic {
            rate,
            direction,
            origin
        }),
    ]
}

fn in_a_host() -> impl Strategy<Value = Fault> {
    let rhythm = (any::<bool>(), time())
        .prop_map(|(once, time)| if once { Rhythm::Once(time) } else { Rhythm::Every(time) });
    let numbers = (any::<u32>(), any::<u32>());
    prop_oneof![
        (side(), rate()).prop_map(|(side, rate)| Fault::Shape { side, rate }),
        (side(), rate(), number()).prop_map(|(side, rate, n)| Fault::Queue {
            side,
            rate,
            bytes: Bytes(n)
        }),
        numbers.prop_map(|(cpu, threads)| Fault::Hog { cpu, threads }),
        (side(), any::<u32>()).prop_map(|(side, cpu)| Fault::Cpus { side, cpu }),
        (side(), share()).prop_map(|(side, share)| Fault::Quota { side, share }),
        side().prop_map(|side| Fault::Offloads { side }),
        (side(), time(), rhythm).prop_map(|(side, lasting, rhythm)| Fault::Stall {
            side,
            lasting,
            rhythm
        }),
    ]
}

proptest! {
    #[test]
    fn a_fault_reads_back_as_itself(fault in fault()) {
        let name = fault.code().split(':').next().map(str::to_owned);
        prop_assert!(name.is_some_and(|name| Fault::KINDS.contains(&name.as_str())));
        prop_assert!(!fault.to_string().is_empty());
        prop_assert_eq!(fault.code().parse(), Ok(fault));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".*") {
        let _ = text.parse::<Fault>();
    }
}

#[test]
fn what_is_left_out_has_its_usual_meaning() {
    let read = |text: &str| text.parse::<Fault>().unwrap().code();
    assert_eq!(read("path-rate:100Mb/s,shallow"), "path-rate:100Mb/s,shallow,both");
    assert_eq!(read("path-rate: 0.1Gb/s, deep, reverse"), "path-rate:100Mb/s,deep,reverse");
    assert_eq!(read("loss:1%"), "loss:1%,both");
    assert_eq!(read("loss:0.10%,bursts=1,reverse"), "loss:0.1%,reverse");
    assert_eq!(read("police:1Gb/s"), "police:1Gb/s,both");
    assert_eq!(read("delay:10ms,10ms"), "delay:20ms");
    assert_eq!(read("delay:0ms,5ms"), "delay:5ms,reverse");
}

#[test]
fn what_is_not_a_fault_is_refused() {
    for text in [
        "",
        "gremlins",
        "path-rate",
        "path-rate:100,deep",
        "path-rate:1Gb/s,wide",
        "path-rate:1Gb/s,deep,up",
        "receive-window:middle,1MiB",
        "mtu:1500B",
        "mtu:1,2",
        "delay:20",
        "delay:1ms,2ms,3ms",
        "link-down:far",
        "application:far,work=1",
        "application:far,idler,work=1ps/B",
        "application:far,pause=1us",
        "environment:near",
        "environment:near,LINERATE_PACING",
        "environment:near,=500Mb/s",
        "environment:middle,A=1",
        "environment:near,A=1\0",
        "police:forward",
        "flow-rate:1Gb/s,forward",
        "loss:1,forward",
        "loss:1%,20,forward",
        "reorder:1ms,forward",
        "jitter:forward",
        "hold:far",
        "hold:200us",
        "hold:far,200",
        "hold:middle,200us",
        "black-hole:1400B",
        "traffic:1Gb/s",
        "traffic:1Gb/s,both",
        "traffic:1Gb/s,forward,router",
        "shape:near",
        "queue:near,1Gb/s",
        "hog:near",
        "hog:cpu=0",
        "cpus:near,-1",
        "quota:near,0%",
        "offloads:near,on",
        "stall:far,200ms",
        "stall:far,1s,every=x",
    ] {
        assert!(text.parse::<Fault>().is_err(), "`{text}`");
    }
}
