//! Rule about offloads that are switched off.

use super::{Finding, few};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::nic::Nic;
use linerate_units::shell::word;

/// Folders in which distributions keep the settings of ports.
const FOLDERS: &str =
    "/etc/systemd /etc/udev /etc/network /etc/netplan /etc/NetworkManager /etc/sysconfig";

/// A fast port whose CPUs process each packet separately, although the card or the kernel could combine many.
pub(super) fn off(inventory: &Inventory, nic: &Nic) -> Option<Finding> {
    let offloads = nic.offloads.as_ref()?;
    let lacking = offloads.lacking();
    if !nic.up || !nic.is_fast() || lacking.is_empty() {
        return None;
    }
    let tunnels = inventory.network.wrapping_over(nic.index);
    let tunnels: Vec<&str> = tunnels.iter().map(|nic| nic.name.as_str()).collect();
    let (stands, fix) = match tunnels.as_slice() {
        [] => (String::new(), switch_on(nic, &offloads.lacking_features())),
        [one] => (format!("; {one}, a tunnel, stands on it"), look(nic, one)),
        all => {
            let names = few(all);
            (format!("; tunnels stand on it: {names}"), look(nic, &names))
        }
    };
    Some(
        Finding::new(
            "port-offload",
            &nic.name,
            format!("switched off: {}{stands}", lacking.join(", ")),
        )
        .why("a CPU handles each packet by itself, and is full long before the link is")
        .limiting_itself()
        .fix(fix),
    )
}

/// Advice to switch offloads on.
fn switch_on(nic: &Nic, features: &[&str]) -> Advice {
    let to = |state: &str| {
        let each: Vec<String> = features.iter().map(|f| format!("{f} {state}")).collect();
        format!("sudo ethtool -K {} {}", word(&nic.name), each.join(" "))
    };
    Advice::new("switch this on, unless something needs it off")
        .set(None, to("on"))
        .undo_on(None, to("off"))
}

/// Advice to find out why offloads are off: some drivers compute wrong checksums for packets in tunnels.
fn look(nic: &Nic, tunnels: &str) -> Advice {
    let who = Step::on(None, format!("grep -rs ethtool {FOLDERS}"));
    let bad = Step::on(None, "nstat -az TcpInCsumErrors UdpInCsumErrors");
    Advice::new(
        "look first: it is off for a reason, perhaps. Some drivers compute the checksums of packets in a tunnel wrongly; \
         leave it off if this one does",
    )
    .step(who.about(format!("who switched it off on {}", nic.name)))
    .step(bad.about(format!(
        "on the machines at the other ends of {tunnels}: whether packets arrive with bad checksums"
    )))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use crate::Inventory;
    use crate::nic::tests::nic;
    use crate::nic::{Nic, Offloads};
    use linerate_units::Rate;

    fn whats(nics: &[Nic]) -> Vec<String> {
        let mut machine = Inventory::default();
        machine.network.nics = nics.to_vec();
        let found = find(&machine).into_iter();
        found.map(|o| format!("{}: {}", o.id, o.what)).collect()
    }

    #[test]
    fn offloads_that_are_off_are_odd_on_a_fast_port() {
        let mut card = nic(2, &[]);
        card.up = true;
        card.link.speed = Some(Rate(10_000_000_000));
        let mut offloads = Offloads { off: vec!["rx-lro".to_owned()], ..Offloads::default() };
        card.offloads = Some(offloads.clone());
        assert_eq!(whats(&[card.clone()]), [""; 0], "bulk traffic does without LRO");
        offloads.off = vec!["rx-gro".to_owned()];
        card.offloads = Some(offloads);
        assert_eq!(whats(&[card.clone()]), ["port-offload: switched off: GRO"]);
        card.link.speed = Some(Rate(9_999_999_999));
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.link.speed = None;
        assert_eq!(whats(&[card.clone()]), [""; 0]);
        card.link.speed = Some(Rate(10_000_000_000));
        card.is_virtual = true;
        assert_eq!(whats(&[card]), [""; 0], "its speed is nominal");
    }

    #[test]
    fn below_a_tunnel_nothing_is_switched_on_again() {
        let mut card = nic(2, &[]);
        (card.up, card.link.speed) = (true, Some(Rate(25_000_000_000)));
        card.offloads =
            Some(Offloads { off: vec!["tx-checksum-ipv4".to_owned()], ..Offloads::default() });
        let result_of = |kind: &str, below: &[u32]| {
            let mut upper = nic(9, below);
            kind.clone_into(&mut upper.kind);
            let mut machine = Inventory::default();
            machine.network.nics = vec![card.clone(), upper];
            let mut found = find(&machine);
            assert_eq!(found.len(), 1, "{found:?}");
            let odd = found.remove(0);
            (odd.what.clone(), odd.to_do())
        };
        let (what, fix) = result_of("vxlan", &[2]);
        assert_eq!(what, "switched off: tx checksum; eth9, a tunnel, stands on it");
        assert!(fix.starts_with("look first: it is off for a reason"), "{fix}");
        assert!(!fix.contains("ethtool -K"), "{fix}");
        for (kind, below) in [("vlan", 2), ("vxlan", 3)] {
            let (what, fix) = result_of(kind, &[below]);
            assert_eq!(what, "switched off: tx checksum");
            assert!(fix.contains("unless something needs it off"), "{fix}");
            assert!(fix.contains("ethtool -K eth2 tx-checksum-ipv4 on"), "{fix}");
        }
    }
}
