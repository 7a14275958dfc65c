use proptest::prelude::*;

use super::*;
use linerate_ceiling::{Relation, Solution};
use linerate_plan::path::{Direction, Side};

const NONE: &[&str] = &[];

/// A case of two hosts with every value given, so that each ceiling is one number and not an interval.
const WHOLE: &str = r#"
title = "two hosts"
protocol = "tcp"
ip = 4
timestamps = true
streams = 4

[near]
clock = "3GHz"
memory = { channels = 2, speed = 1600, direct-cache = false }
port = { link = "10Gb/s", mtu = 1500, pcie = "gen2x8", mps = 256, mrrs = 512 }

[far]
clock = "3GHz"
port = { link = "10Gb/s", mtu = 1500, pcie = "gen2x8", mps = 256, mrrs = 512 }

[price]
amount = 100
currency = "EUR"
"#;

fn solved(text: &str, sets: &[&str]) -> Answer {
    answer(&Case::read(text, sets).unwrap()).unwrap()
}

/// Lowest and highest forward goodput in Gb/s, and the parts that set it.
fn forward(text: &str, sets: &[&str]) -> (f64, f64, Vec<String>) {
    let forward = solved(text, sets).forward.unwrap();
    let Solution { goodput, binding, .. } = forward;
    (goodput.low() / 1e9, goodput.high() / 1e9, binding)
}

fn refused(text: &str, sets: &[&str]) -> String {
    Case::read(text, sets).unwrap_err().to_string()
}

#[test]
fn a_path_that_is_wholly_known_has_a_ceiling_without_interval() {
    let (low, high, binding) = forward(WHOLE, NONE);
    assert!((low - 9.415).abs() < 0.001 && (high - low).abs() < 1e-6, "{low} {high}");
    assert_eq!(binding, ["link"]);
    let answer = solved(WHOLE, NONE);
    assert_eq!(answer.forward.as_ref().unwrap().next.as_ref().unwrap().binding, ["far slot"]);
    let names: Vec<_> =
        answer.ceilings(Direction::Reverse).iter().map(|c| c.resource.name.clone()).collect();
    assert_eq!(names, ["near memory", "near slot", "link", "far slot"]);
    let price = answer.price.unwrap().per_gigabit;
    assert!((price.low() - 10.62).abs() < 0.01, "{price:?}");
}

#[test]
fn one_thing_replaced_moves_the_ceiling_to_the_next() {
    let slow = &["near.port.link=100Gb/s", "far.port.link=100Gb/s"];
    let (_, high, binding) = forward(WHOLE, slow);
    assert!((24.0..30.0).contains(&high), "{high}");
    assert_eq!(binding, ["far slot"]);
    let (_, uneven, binding) = forward(WHOLE, &slow[..1]);
    assert!((uneven - 9.415).abs() < 0.001);
    assert_eq!(binding, ["far port"]);
    let (jumbo, _, _) = forward(WHOLE, &["near.port.mtu=9000", "far.port.mtu=9000"]);
    assert!((jumbo - 9.90).abs() < 0.001, "{jumbo}");
    let (one_side, _, _) = forward(WHOLE, &["near.port.mtu=9000"]);
    assert!((one_side - 9.415).abs() < 0.001, "the smaller MTU counts");
}

#[test]
fn a_second_link_adds_where_the_slot_allows_and_streams_use_it() {
    let two = ["near.port.ports=2", "far.port.ports=2"];
    let (_, high, _) = forward(WHOLE, &two);
    assert!((high - 18.83).abs() < 0.01, "{high}");
    let (_, high, _) = forward(WHOLE, &[two[0], two[1], "streams=1"]);
    assert!((high - 9.415).abs() < 0.01, "one stream keeps to one link: {high}");
    let narrow = ["near.port.pcie=gen2x2", "far.port.pcie=gen2x2"];
    let before = forward(WHOLE, &narrow);
    let after = forward(WHOLE, &[narrow[0], narrow[1], two[0], two[1]]);
    assert_eq!(before, after, "the slot is full with one");
    let cards = ["near.port.cards=2", "far.port.cards=2"];
    let after = forward(WHOLE, &[narrow[0], narrow[1], cards[0], cards[1]]);
    assert!((after.1 / before.1 - 2.0).abs() < 1e-9, "a second slot doubles");
}

#[test]
fn a_bus_gives_no_more_in_two_directions_than_in_one() {
    let bus = ["near.port.pcie=pci-32/33", "far.port.pcie=gen3x8"];
    let answer = solved(WHOLE, &bus);
    let (one, both) = (answer.forward.unwrap().goodput, answer.both.unwrap().goodput);
    assert!((one.low() / 8e6 - 133.3).abs() < 0.1);
    assert_eq!(one, both);
}

#[test]
fn limits_of_the_network_hold_for_all_and_for_each_stream() {
    let (_, high, binding) = forward(WHOLE, &["net.flow-limit=1Gb/s"]);
    assert!((high - 4.0).abs() < 1e-9, "{high}");
    assert_eq!(binding, ["flow limit"]);
    let (_, high, _) = forward(WHOLE, &["net.flow-limit=1Gb/s", "streams=2"]);
    assert!((high - 2.0).abs() < 1e-9, "{high}");
    let (_, high, binding) = forward(WHOLE, &["net.limit=5Gb/s"]);
    assert!((high - 5.0).abs() < 1e-9 && binding == ["network limit"]);
    let (_, high, binding) = forward(WHOLE, &["net.packet-limit=100000"]);
    assert!((high - 1.1584).abs() < 1e-6 && binding == ["packet limit"], "{high}");
}

#[test]
fn storage_is_limited_by_depth_over_latency_and_by_its_paths() {
    let deep = ["storage.depth=32", "storage.latency=1ms", "storage.operation=4KiB"];
    let (_, high, binding) = forward(WHOLE, &deep);
    assert!((high - 32_000.0 * 4096.0 * 8.0 / 1e9).abs() < 1e-9, "{high}");
    assert_eq!(binding, ["queue depth"]);
    let paths = ["near.port.ports=2", "far.port.ports=2", "storage.policy=failover"];
    let (_, high, _) = forward(WHOLE, &paths);
    assert!((high - 9.415).abs() < 0.001, "{high}");
    let (_, high, binding) = forward(WHOLE, &["storage.rate=500MB/s"]);
    assert!((high - 4.0).abs() < 1e-9 && binding == ["device"]);
}

#[test]
fn memory_is_a_ceiling_only_where_cards_cannot_write_into_the_cache() {
    let narrow = ["near.memory.channels=1", "near.memory.speed=200"];
    let reverse = |sets: &[&str]| solved(WHOLE, sets).reverse.unwrap();
    let bound = reverse(&narrow);
    assert_eq!(bound.binding, ["near memory"]);
    assert!((bound.goodput.high() / 1e9 - 6.4).abs() < 1e-9, "written once, read once");
    let cached = [narrow[0], narrow[1], "near.memory.direct-cache=true"];
    assert_eq!(reverse(&cached).binding, ["link"]);
    assert!(!solved(WHOLE, &cached).estimates.is_empty());
}

#[test]
fn what_is_left_out_is_an_interval_that_holds_every_case() {
    let bare = "title = 'x'\nprotocol = 'tcp'\n[near]\nport = { link = '10Gb/s' }\n";
    let (low, high, _) = forward(bare, NONE);
    let (known, _, _) = forward(WHOLE, NONE);
    assert!(low < known && known < high, "{low} {high}");
    let answer = solved(bare, NONE);
    let link = &answer.ceilings(Direction::Forward)[1].resource.inputs[..2];
    let sources: Vec<_> = link.iter().map(|i| (i.key.as_str(), i.source.name())).collect();
    assert_eq!(sources, [("near.port.link", "given"), ("far.port.link", "assumed")]);
    let nothing = "title = 'x'\nprotocol = 'tcp'\n[near]\nport = { pcie = 'none' }\n[far]\nport = { pcie = 'none' }\n";
    assert_eq!(solved(nothing, NONE).forward, None, "nothing known is no ceiling");
}

#[test]
fn a_typo_is_shown_with_line_caret_and_what_was_meant() {
    let why = refused("title = 'x'\nprotocol = 'tcp'\n[near.port]\nmut = 9000\n", NONE);
    for part in ["line 4", "^^^", "`mut`", "did you mean `mtu`?"] {
        assert!(why.contains(part), "no `{part}` in: {why}");
    }
    let why = refused(&WHOLE.replace("\"tcp\"", "\"tpc\""), NONE);
    assert!(why.contains("line 3") && why.contains("did you mean `tcp`?"), "{why}");
}

#[test]
fn hardware_that_cannot_be_is_refused_where_it_stands() {
    let why = refused(&WHOLE.replacen("gen2x8", "gen2x3", 1), NONE);
    for part in ["line 11", "^", "no link of PCIe has 3 lanes", "x4"] {
        assert!(why.contains(part), "no `{part}` in: {why}");
    }
    for (from, to, part) in [
        ("mps = 256", "mps = 200", "no size `200`"),
        ("ip = 4", "ip = 5", "no IP version 5"),
        ("streams = 4", "streams = 0", "allowed: 1 to 1024"),
        ("amount = 100", "amount = nan", "out of range"),
        ("link = \"10Gb/s\"", "link = \"3x FDR\"", "has 3 lanes"),
    ] {
        let why = refused(&WHOLE.replace(from, to), NONE);
        assert!(why.contains(part) && why.contains("line "), "{to}: {why}");
    }
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    for (sets, part) in [
        (&["near.port.link=4x FDR"][..], "nothing joins them"),
        (&["near.port.mtu=100"], "near.port.mtu"),
        (&["near.port.ip-mtu=2044"], "belongs to InfiniBand"),
        (&["storage.depth=4"], "only together"),
        (&["storage.operations=4"], "storage.operation"),
    ] {
        let why = refused(WHOLE, sets);
        assert!(why.contains(part), "{sets:?}: {why}");
    }
    let fdr = WHOLE.replace("10Gb/s", "4x FDR");
    assert!(refused(&fdr, NONE).contains("InfiniBand packets hold"));
    let fdr = fdr.replace("mtu = 1500", "mtu = 4096");
    assert!(Case::read(&fdr, NONE).is_ok());
    assert!(refused(&fdr, &["protocol=roce-v2"]).contains("InfiniBand"));
    assert!(refused(&fdr, &["net.vlans=1"]).contains("Ethernet"));
}

#[test]
fn a_replacement_is_refused_in_words() {
    for (set, part) in [
        ("near.port.mtu", "KEY=VALUE"),
        ("near.port.pice=gen3x8", "did you mean `pcie`?"),
        ("near.prot.pcie=gen3x8", "did you mean `port`?"),
        ("title.x=1", "`title` has no keys below it"),
        ("streams=many", "streams=many"),
        ("=", "cannot be set"),
        ("near.port.pcie.x=8", "no key has more than 3 parts"),
    ] {
        let why = refused(WHOLE, &[set]);
        assert!(why.contains(part) && why.contains(set), "{set}: {why}");
    }
}

#[test]
fn published_figures_are_held_against_what_is_computed() {
    let figures = "[[published]]\nwhat = 'a'\ngoodput = '9.4Gb/s'\n\
        [[published]]\nwhat = 'b'\ngoodput = '4.7Gb/s'\n\
        [[published]]\nwhat = 'c'\nset = ['streams=1', 'net.flow-limit=1Gb/s']\ngoodput = '1Gb/s'\n\
        [[published]]\nwhat = 'd'\nround-trip = '1ns'\n\
        [[published]]\nwhat = 'e'\nround-trip = '9us'\n";
    let checks = check_figures(&format!("{WHOLE}{figures}")).unwrap();
    let relations: Vec<_> = checks.iter().map(|t| t.relation.unwrap()).collect();
    assert_eq!(
        relations,
        [
            Relation::Reached,
            Relation::FarBelow,
            Relation::Inside,
            Relation::BelowFloor,
            Relation::AboveFloor,
        ]
    );
    let none = format!("{WHOLE}[[published]]\nwhat = 'e'\n");
    assert!(refused(&none, NONE).contains("`e` needs one of"));
}

#[test]
fn a_typed_relation_is_refused_and_the_key_to_delete_is_named() {
    let old = format!("{WHOLE}[[published]]\nwhat = 'a'\ngoodput = '9.4Gb/s'\nholds = 'reached'\n");
    let why = refused(&old, NONE);
    for part in ["line 23", "^^^^^", "delete `holds`", "derived"] {
        assert!(why.contains(part), "no `{part}` in: {why}");
    }
}

#[test]
fn more_ports_or_cards_are_compared_with_the_figure_before() {
    let figure = |what: &str, set: &str, goodput: &str| {
        format!("[[published]]\nwhat = '{what}'\nset = [{set}]\ngoodput = '{goodput}'\n")
    };
    let narrow = "'near.port.pcie=gen2x2', 'far.port.pcie=gen2x2'";
    let with = |more: &str| format!("{narrow}, {more}");
    let figures = [
        figure("one", narrow, "6Gb/s"),
        figure("ports", &with("'near.port.ports=2', 'far.port.ports=2'"), "6Gb/s"),
        figure("cards", &with("'near.port.cards=2', 'far.port.cards=2'"), "12Gb/s"),
        figure("memory", &with("'streams=2'"), "6Gb/s"),
    ];
    let checks = check_figures(&format!("{WHOLE}{}", figures.concat())).unwrap();
    let changes: Vec<Option<&str>> = checks.iter().map(|c| c.change.as_deref()).collect();
    assert_eq!((changes[0], changes[3]), (None, None));
    assert!(changes[1].unwrap().contains("adds nothing to the ceiling of `one`; measured x1.00"));
    assert!(changes[2].unwrap().contains("makes the ceiling x2.00 of `one`; measured x2.00"));
}

const OUTPUTS: &str = "
[[output]]
name = 'a'
text = '''
streams,gbit_per_s
1,9.4
'''
[[output]]
name = 'b'
side = 'far'
set = ['streams=1']
text = 'x'
[[claim]]
says = 'goodput>=9Gbit/s'
[[sweep]]
what = 'c'
points = [[1, 2.0]]
";

#[test]
fn outputs_claims_and_times_belong_to_the_path_that_they_were_measured_on() {
    let all = reported(&format!("{WHOLE}{OUTPUTS}")).unwrap();
    let [own, other] = all.as_slice() else {
        panic!("{all:?}");
    };
    let result_of = |one: &Reported| {
        let outputs: Vec<_> = one.outputs.iter().map(|o| (o.name.clone(), o.side)).collect();
        (outputs, one.material.claims.len(), one.material.sources.len())
    };
    assert_eq!(result_of(own), (vec![("a".to_owned(), Side::Near)], 1, 1));
    assert_eq!(result_of(other), (vec![("b".to_owned(), Side::Far)], 0, 0));
    assert_eq!(other.set, ["streams=1"]);
    let ceiling = own.material.hardware.goodput().unwrap();
    assert!(ceiling.contains(9.415e9) || (ceiling.low() - 9.415e9).abs() < 1e6);
    assert_eq!(own.material.hardware.slots.len(), 2);
    assert!(reported(WHOLE).unwrap().is_empty(), "nothing was told");
}

#[test]
fn outputs_and_claims_that_say_nothing_are_refused() {
    for (more, part) in [
        ("[[output]]\nname = 'a'\ntext = ' '\n".to_owned(), "`a` has no text"),
        ("[[claim]]\nsays = 'fast'\n".to_owned(), "is not a claim"),
        ("[[output]]\nname = 'a'\n".to_owned(), "text"),
        ("[[claim]]\nsays = 'transport=rdma'\n".repeat(101), "101 tables `[[claim]]`"),
    ] {
        let why = refused(&format!("{WHOLE}{more}"), NONE);
        assert!(why.contains(part), "no `{part}` in: {why}");
    }
    let figure = |sets: usize| {
        let set = "'streams=1', ".repeat(sets);
        format!("{WHOLE}[[published]]\nwhat = 'a'\ngoodput = '1Gb/s'\nset = [{set}]\n")
    };
    assert!(refused(&figure(33), NONE).contains("33 differences"));
    assert!(Case::read(&figure(32), NONE).is_ok());
    let hundred = "[[claim]]\nsays = 'transport=rdma'\n".repeat(100);
    assert!(Case::read(&format!("{WHOLE}{hundred}"), NONE).is_ok());
    let wrong = format!("{WHOLE}[[output]]\nname = 'a'\ntext = 'x'\nset = ['streams=0']\n");
    assert!(reported(&wrong).is_err(), "a difference that cannot be");
}

proptest! {
    #[test]
    fn no_text_makes_it_fail(text in ".*", key in "[a-z.]{0,20}", value in ".*") {
        let set = format!("{key}={value}");
        let _ = Case::read(&text, NONE);
        if let Ok(case) = Case::read(WHOLE, &[set]) {
            let _ = answer(&case);
        }
    }

    #[test]
    fn every_slot_and_link_gives_an_interval_in_order(
        generation in 1u32..8, lanes in 0usize..6, mps in 0usize..6, gbps in 1u32..900, both in any::<bool>(),
    ) {
        let slot = format!("near.port.pcie=gen{generation}x{}", linerate_ceiling::pcie::WIDTHS[lanes]);
        let mps = format!("near.port.mps={}", linerate_ceiling::pcie::SIZES[mps]);
        let link = format!("near.port.link={gbps}Gb/s");
        let mut sets = vec![slot, mps, link];
        if both {
            sets.push(format!("far.port.link={gbps}Gb/s"));
        }
        let case = Case::read(WHOLE, &sets).unwrap();
        let answer = answer(&case).unwrap();
        let total = |s: &Option<Solution>| s.as_ref().unwrap().goodput;
        let (one, two) = (total(&answer.forward), total(&answer.both));
        prop_assert!(one.low() > 0.0 && one.low() <= one.high());
        prop_assert!(two.high() <= one.high() + total(&answer.reverse).high() + 1.0);
        for ceiling in answer.ceilings(Direction::Forward) {
            prop_assert!(one.high() <= ceiling.goodput.high() * (1.0 + 1e-9));
            prop_assert!(one.low() <= ceiling.goodput.low() * (1.0 + 1e-9));
        }
    }
}
