//! Rules about bonds of which not all members carry traffic.

use super::{Finding, few};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::nic::{AGGREGATED, Bond, Nic};
use linerate_units::shell::word;
use linerate_units::{Bytes, Rate};

/// An LACP bond with members that are up in another aggregator, or without a system that answers by LACP. Traffic uses
/// only the members of one aggregator.
pub(super) fn apart(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let bond = nic.stack.bond.as_ref()?;
    let members = nic.stack.below.iter();
    let members = members.filter_map(|index| inventory.network.nic(*index));
    let members: Vec<&Nic> = members.filter(|member| member.up).collect();
    let is_split = nic.up && bond.mode == AGGREGATED && members.len() > 1;
    is_split.then(|| of(nic, bond, &members)).flatten()
}

/// Bytes that a bond must have sent, so that the shares of its members mean something.
const SENT_LEAST: Bytes = Bytes(100_000_000_000);

/// A member that has sent at most this share of a bond's bytes hardly carries anything.
const LITTLE_SHARE: f64 = 0.01;

/// A bond with a member that hardly sends anything, because the bond's hash uses only fields that identify hosts.
pub(super) fn one_way(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let bond = nic.stack.bond.as_ref().filter(|bond| bond.sends_by_one())?;
    let is_hashed = [AGGREGATED, "balance-xor"].contains(&bond.mode.as_str());
    let below = nic.stack.below.iter();
    let members = below.filter_map(|index| inventory.network.nic(*index));
    let members = members.filter(|member| member.up && bond.aggregates(member));
    let sent: Option<Vec<_>> = members.map(|m| Some((m.errors.tx_bytes?, m))).collect();
    let sent = sent.filter(|sent| nic.up && is_hashed && sent.len() > 1)?;
    let all = sent.iter().fold(0u64, |all, (bytes, _)| all.saturating_add(*bytes));
    let (least, member) = sent.into_iter().min_by_key(|(bytes, _)| *bytes)?;
    let is_odd = all >= SENT_LEAST.0 && (least as f64) <= all as f64 * LITTLE_SHARE;
    is_odd.then(|| {
        hashed(nic, bond, &format!("{} sent {} of {}", member.name, Bytes(least), Bytes(all)))
    })
}

fn hashed(nic: &Nic, bond: &Bond, shares: &str) -> Finding {
    let set = |hash: &str| {
        let (name, hash) = (word(&nic.name), word(hash));
        format!("sudo ip link set dev {name} type bond xmit_hash_policy {hash}")
    };
    Finding::new(
        "bond-hash",
        &nic.name,
        format!("{shares} since boot: it chooses the member by {}", bond.hash),
    )
    .why(
        "all that goes to one host, and by layer 2 to all hosts behind one router, \
         leaves by one member",
    )
    .fix(
        Advice::new("choose by the ports of connections too; one connection still uses one member")
            .set(None, set("layer3+4"))
            .undo_on(None, set(&bond.hash)),
    )
}

fn of(nic: &Nic, bond: &Bond, members: &[&Nic]) -> Option<Finding> {
    let (used, apart): (Vec<&Nic>, Vec<&Nic>) =
        members.iter().copied().partition(|m| bond.aggregates(m));
    if apart.is_empty() && !bond.has_no_partner() {
        return None;
    }
    let partner = match bond.partner.as_str() {
        "" => String::new(),
        _ if bond.has_no_partner() => "; no system answers by LACP".to_owned(),
        partner => format!("; the partner is {partner}"),
    };
    let carry = if used.len() == 1 { "carries" } else { "carry" };
    Some(
        Finding::new(
            "bond-split",
            &nic.name,
            format!(
                "{} of {} members that are up {carry} traffic: {}{partner}{}",
                used.len(),
                members.len(),
                aggregators(members),
                ceiling(&used, members)
            ),
        )
        .brief(format!("{} of {} members that are up {carry} traffic", used.len(), members.len()))
        .why(
            "LACP uses the ports of one aggregator: those whose other ends are one \
             system, in one group, at one speed",
        )
        .limiting_itself()
        .fix(fix(nic, members)),
    )
}

/// The members with their aggregators: `ens1f0 in aggregator 1, ens1f1 in aggregator 2`.
fn aggregators(members: &[&Nic]) -> String {
    let words = |member: &&Nic| match member.stack.aggregator {
        Some(aggregator) => format!("{} in aggregator {aggregator}", member.name),
        None => member.name.clone(),
    };
    few(&members.iter().map(words).collect::<Vec<_>>())
}

/// The bond's reduced rate in words: `; it carries 25 Gb/s at most, not 50 Gb/s`.
fn ceiling(used: &[&Nic], members: &[&Nic]) -> String {
    let sum = |all: &[&Nic]| {
        let rates: Option<Vec<u64>> = all.iter().map(|m| Some(m.link.speed?.0)).collect();
        rates.map(|rates| Rate(rates.into_iter().fold(0, u64::saturating_add)))
    };
    match (sum(used), sum(members)) {
        (Some(most), Some(all)) if most < all => format!("; it carries {most} at most, not {all}"),
        _ => String::new(),
    }
}

fn fix(nic: &Nic, members: &[&Nic]) -> Advice {
    let show = format!("sudo cat /proc/net/bonding/{}", word(&nic.name));
    let show = Step::on(None, show).about("the system, the key and the aggregator of each member");
    let speeds = || members.iter().filter_map(|member| Some((member.link.speed?, member)));
    let (least, most) = (speeds().min_by_key(|at| at.0), speeds().max_by_key(|at| at.0));
    let differ = least.zip(most).filter(|(least, most)| least.0 < most.0);
    let what = match differ {
        // LACP never joins ports of different speed, whatever the other end does.
        Some(((rate, port), (fast, _))) => format!(
            "take the ports that are slower than {fast} out of this bond ({} runs at {rate}), or bring them to its speed: LACP \
             joins ports of one speed only; where the slow one is meant as a standby, use the mode active-backup at both ends",
            port.name
        ),
        None => "at the other end, put these ports into one group that uses LACP: on one switch, or on switches that act as \
                 one; unless the second group is meant as a standby"
            .to_owned(),
    };
    Advice::new(what).step(show)
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use crate::Inventory;
    use crate::nic::tests::nic;
    use crate::nic::{Bond, Nic};
    use linerate_units::Rate;

    const PARTNER: &str = "0e:11:22:33:44:55";

    /// A bond in this mode with two ports of 25 Gb/s. `own` is the aggregator that the bond uses, `members` those of
    /// its members.
    fn bond(mode: &str, own: Option<u16>, members: [Option<u16>; 2], partner: &str) -> Vec<Nic> {
        let mut bond = nic(9, &[2, 3]);
        bond.up = true;
        bond.stack.bond = Some(Bond {
            mode: mode.to_owned(),
            aggregator: own,
            partner: partner.to_owned(),
            ..Bond::default()
        });
        let member = |(index, aggregator): (u32, Option<u16>)| {
            let mut member = nic(index, &[]);
            (member.up, member.link.speed) = (true, Some(Rate(25_000_000_000)));
            (member.stack.above, member.stack.aggregator) = (Some(9), aggregator);
            member
        };
        let members = [2, 3].into_iter().zip(members).map(member);
        std::iter::once(bond).chain(members).collect()
    }

    fn whats(nics: Vec<Nic>) -> Vec<String> {
        let mut machine = Inventory::default();
        machine.network.nics = nics;
        find(&machine).into_iter().map(|odd| odd.what).collect()
    }

    #[test]
    fn members_of_another_aggregator_are_odd() {
        let result_of = |own, members| whats(bond("802.3ad", own, members, PARTNER));
        assert_eq!(
            result_of(Some(1), [Some(1), Some(2)]),
            [
                "1 of 2 members that are up carries traffic: eth2 in aggregator 1, eth3 in aggregator 2; the partner is \
              0e:11:22:33:44:55; it carries 25 Gb/s at most, not 50 Gb/s"
            ]
        );
        assert_eq!(result_of(Some(1), [Some(1), Some(1)]), [""; 0]);
        assert_eq!(result_of(None, [Some(1), Some(2)]), [""; 0], "not known");
        assert_eq!(result_of(Some(1), [Some(1), None]), [""; 0], "not known");
        let others = bond("balance-xor", Some(1), [Some(1), Some(2)], "");
        assert_eq!(whats(others), [""; 0], "no LACP");
        let mut down = bond("802.3ad", Some(1), [Some(1), Some(2)], PARTNER);
        down[2].up = false;
        assert_eq!(whats(down), [""; 0], "a cable is out");
    }

    #[test]
    fn ports_of_different_speeds_are_not_told_to_join_one_group() {
        let fix = |speed| {
            let mut machine = Inventory::default();
            machine.network.nics = bond("802.3ad", Some(1), [Some(1), Some(2)], PARTNER);
            machine.network.nics[2].link.speed = speed;
            find(&machine).remove(0).fix.what
        };
        let slow = fix(Some(Rate(1_000_000_000)));
        assert!(slow.contains("slower than 25 Gb/s out of this bond (eth3 runs at 1 Gb/s)"));
        let group = "at the other end, put these ports into one group";
        assert!(fix(Some(Rate(25_000_000_000))).starts_with(group));
        assert!(fix(None).starts_with(group), "not known");
    }

    #[test]
    fn a_member_that_sends_next_to_nothing_by_a_hash_of_hosts_is_odd() {
        let result_of = |mode, hash: &str, sent: [Option<u64>; 2]| {
            let mut nics = bond(mode, Some(1), [Some(1), Some(1)], PARTNER);
            hash.clone_into(&mut nics[0].stack.bond.as_mut().unwrap().hash);
            (nics[1].errors.tx_bytes, nics[2].errors.tx_bytes) = (sent[0], sent[1]);
            whats(nics)
        };
        let some = |a: u64, b: u64| [Some(a), Some(b)];
        let giga = 1_000_000_000;
        let little = some(99 * giga, giga);
        assert_eq!(
            result_of("802.3ad", "layer2", little),
            ["eth3 sent 954 MiB of 93.1 GiB since boot: it chooses the member by layer2"]
        );
        assert_eq!(result_of("balance-xor", "layer2+3", little).len(), 1);
        let nothing = [
            result_of("802.3ad", "layer3+4", little),
            result_of("balance-rr", "layer2", little),
            result_of("802.3ad", "layer2", some(99 * giga, giga + 1)),
            result_of("802.3ad", "layer2", some(98 * giga, giga)),
            result_of("802.3ad", "layer2", [Some(99 * giga), None]),
        ];
        assert!(nothing.iter().all(Vec::is_empty), "{nothing:?}");
    }

    #[test]
    fn a_bond_that_nobody_answers_is_odd() {
        let alone = bond("802.3ad", Some(1), [Some(1), Some(2)], "00:00:00:00:00:00");
        let what = &whats(alone)[0];
        assert!(what.contains("no system answers by LACP"), "{what}");
        let other = bond("balance-rr", None, [None, None], "00:00:00:00:00:00");
        assert_eq!(whats(other), [""; 0]);
    }
}
