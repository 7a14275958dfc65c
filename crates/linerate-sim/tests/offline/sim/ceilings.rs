//! Tests that goodput of a simulated path exceeds none of its limits.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn no_rate_passes_its_ceiling_and_none_is_nonsense(
        seed: u64,
        count in 1_u32..6,
        rtt_us in 20_u64..50_000,
        rate_mbps in 10_u64..100_000,
        window in 2_000_u64..8_000_000,
        buffer in 0_u64..4_000_000,
        loss in prop_oneof![Just(0.0), 1e-6..0.1],
        pace in prop::option::of(1_000_000_u64..20_000_000_000),
        cpus in 1_u32..5,
        shared_host: bool,
        bbr: bool,
    ) {
        let mut path = SimPath {
            rtt: Nanos::from_micros(rtt_us),
            shared_host,
            congestion: if bbr { Congestion::Bbr } else { Congestion::Cubic },
            ..SimPath::default()
        };
        path.forward.rate = Rate(rate_mbps * 1_000_000);
        path.forward.receive_window = Bytes(window);
        path.forward.buffer = Bytes(buffer);
        path.forward.loss = loss;
        path.forward.noise.1 = 0.0;
        path.far.cpus = cpus;
        let knobs = Knobs { pacing: pace.map(Rate), ..streams(count) };
        let mut sim = Sim::new(path, seed);
        sim.prepare(&set(0, Direction::Forward, knobs)).expect("the set is made");
        let step = sim
            .step(&plan(&[0], Nanos::from_secs(1)), &mut |_| StepControl::Continue)
            .expect("the step runs");
        let got = goodput_of(&step, Direction::Forward) * 1e9;
        let streams = f64::from(count);
        // On a shared host, the receiving threads run on the four CPUs of the near host.
        let core = 8.0 * 1e12 / 202.0;
        let ceilings = [
            rate_mbps as f64 * 1e6 * 1448.0 / 1538.0,
            streams * window as f64 * 8e6 / rtt_us as f64,
            pace.map_or(f64::MAX, |p| streams * p as f64),
core * f64::from(if shared_host { 4 } else { cpus }.min(count)),
        ];
        for ceiling in ceilings {
            prop_assert!(got <= ceiling * 1.001 + 1e5, "{got} passes {ceiling}");
        }
        prop_assert!(got > 0.0);
        let numbers = step.ends.iter().flat_map(|e| &e.tables).flat_map(|t| &t.columns);
        for column in numbers {
            prop_assert!(column.values.iter().all(|v| *v >= 0), "{}", column.name);
        }
        for (sent, got) in step.ends[0].totals.iter().zip(&step.ends[1].totals) {
            prop_assert_eq!(sent.sent, got.received);
        }
    }
}
