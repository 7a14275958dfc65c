#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use linerate_facts::odd;
use linerate_judge::model::flow;
use linerate_units::Nanos;
use linerate_judge::verdict::judge;
use linerate_host::{
    Captured, Flows, Replay, Sources, Wanted, Watch, facts, interrupts, inventory, network, storage,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(captured) = ciborium::from_reader::<Captured, _>(bytes) else {
        return;
    };
    let toward = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let _ = facts(&Replay::new(captured.clone()), toward);
    let mut masked = captured.clone();
    masked.mask();
    for captured in [captured.clone(), masked] {
        let _ = odd::find(&inventory(&Replay::new(captured), &|_| {}));
    }
    let network = network(&Replay::new(captured.clone()));
    let interrupts = interrupts(&Replay::new(captured.clone()));
    for nic in &network.nics {
        let _ = (network.leaves(nic.index), interrupts.of(nic));
    }
    let storage = storage(&Replay::new(captured.clone()));
    for device in &storage.devices {
        let _ = storage.leaves(&device.name);
    }
    let machine = Replay::new(captured.clone());
    let mut watch = Watch::new(&machine);
    for at in 0..3 {
        let _ = watch.look(&machine, Nanos(at));
    }
    let machine = Arc::new(Replay::new(captured.clone()));
    let mut flows = Flows::new(machine, Wanted::All, 2);
    if (0..3).all(|at| flows.round(at).is_ok()) {
        flows.sample(3);
        for one in flows.finish().flows {
            let _ = flow(&one).map(|model| judge(&model));
        }
    }
    let mut sources = Sources::new(Arc::new(Replay::new(captured)), toward);
    sources.watch_thread("s0/tx0", 1);
    (0..3).for_each(|at| sources.observe(at));
    let (tables, _) = sources.take();
    for table in tables {
        assert!(table.columns.iter().all(|c| c.values.len() == table.at.len()));
    }
});
