use linerate_facts::Inventory;
use linerate_facts::nic::Nic;

use super::super::samples::{merged, of, words};

fn port<'a>(all: &'a Inventory, name: &str) -> &'a Nic {
    all.network.nics.iter().find(|nic| nic.name == name).unwrap()
}

fn mbps(nic: &Nic) -> Option<u64> {
    nic.link.speed.map(|speed| speed.0 / 1_000_000)
}

#[test]
fn adapters_in_a_table_and_in_a_list() {
    let (all, notes) = of(&["get-netadapter/table.txt"]);
    let card = port(&all, "LAN-1");
    assert_eq!((card.up, card.index, mbps(card), card.is_virtual), (true, 11, Some(25_000), false));
    assert!(port(&all, "vEthernet (DockerNAT)").is_virtual);
    assert_eq!(mbps(port(&all, "WiFi")), Some(57));
    assert_eq!(mbps(port(&all, "Citrix Virtual Adapter")), Some(1_200));
    assert_eq!(words(&notes), ["the name of the adapter is cut: it is left out"]);
    let (all, _) = of(&["get-netadapter/list.txt"]);
    let (up, down) = (port(&all, "Ethernet 2"), port(&all, "Ethernet"));
    assert_eq!((up.up, up.index, mbps(up)), (true, 3, Some(40_000)));
    assert_eq!((down.up, mbps(down)), (false, None));
}

#[test]
fn names_of_other_scripts_fill_two_columns() {
    let table = "Name                      InterfaceDescription                    ifIndex Status       MacAddress             LinkSpeed\n\
                 ----                      --------------------                    ------- ------       ----------             ---------\n\
                 以太网                    Intel(R) 82579LM Gigabit Network Con...      12 Up           00-00-5E-00-53-01       100 Mbps\n\
                 Port2                     QLogic 2x1GE+2x25GE QL41234HMCU NIC ...      13 Up           00-00-5E-00-53-02          ...ps\n";
    let (all, notes) = merged(&[table]);
    assert_eq!((port(&all, "以太网").index, mbps(port(&all, "以太网"))), (12, Some(100)));
    assert_eq!(mbps(port(&all, "Port2")), None);
    assert_eq!(words(&notes), ["the speed of Port2 is not understood"]);
}

#[test]
fn slots_of_adapters() {
    let (all, _) = of(&["get-netadapterhardwareinfo/table.txt"]);
    let slot = |name: &str| {
        let nic = port(&all, name);
        let device = all.pci.iter().find(|device| device.address.to_string() == nic.pci).unwrap();
        (nic.pci.as_str(), nic.node, device.now.map(|link| link.to_string()))
    };
    assert_eq!(
        slot("PCIe Slot 3 Port 8"),
        ("0000:37:00.7", Some(0), Some("8 GT/s x16".to_owned()))
    );
    assert_eq!(slot("Ethernet"), ("0000:02:00.0", None, Some("2.5 GT/s x1".to_owned())));
    assert_eq!(slot("Ethernet 4"), ("0000:06:00.0", None, None));
}

#[test]
fn settings_and_rdma() {
    let (all, notes) = of(&["get-netadapteradvancedproperty/table.txt"]);
    assert_eq!(port(&all, "PublicNetwork-B").mtu, Some(1500));
    let nic = port(&all, "PrivateNetwork-A");
    assert_eq!((nic.mtu, nic.rings.unwrap().rx.now), (Some(9000), Some(512)));
    let pause = nic.pause.unwrap();
    assert_eq!((pause.rx, pause.tx), (Some(true), Some(true)));
    assert_eq!(words(&notes), ["PrivateNetwork-A: LSO for IPv4 is switched off"]);
    let (_, notes) = of(&["get-netadapterrdma/table.txt"]);
    assert_eq!(words(&notes), ["Test-40G-2: RDMA is enabled", "vEthernet (MGT): RDMA is disabled"]);
}

#[test]
fn columns_that_ran_together_are_refused() {
    let table = "Name  InterfaceDescriptionifIndex Status   MacAddress LinkSpeed\n\
                 ----  --------------------------- ------   ---------- ---------\n\
                 Test-40G-2Mellanox ConnectX-3 Pro Ethernet A...#3   3 Up   00-00-5E-00-53-0140 Gbps\n";
    assert!(crate::read(table.as_bytes()).is_err());
    let uneven =
        "Name  InterfaceDescription Status  LinkSpeed\n----  ------- --- ------\nA  B Up 1\n";
    let refused = crate::read(uneven.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("the columns of the table ran together"), "{refused}");
}
