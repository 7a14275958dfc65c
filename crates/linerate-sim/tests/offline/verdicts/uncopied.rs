//! Tests of the trial that sends without a copy, with records of kernels that copied anyway or did not.

use linerate_facts::metric::{ZEROCOPY_COMPLETIONS, ZEROCOPY_COPIED};
use linerate_judge::model::trial;
use linerate_record::{Column, Record, Table};

use super::*;

/// Makes the sender's table for one set: the kernel copied `copied` of 100 sends anyway.
fn result_of(set: u32, copied: i64, until: u64) -> Table {
    let counted = |metric: linerate_facts::metric::Metric, n| Column {
        name: metric.name.into(),
        unit: metric.unit,
        kind: metric.kind,
        values: vec![0, n],
    };
    Table {
        source: ZEROCOPY_COMPLETIONS.source.to_owned(),
        subject: format!("s{set}/0"),
        at: vec![0, until],
        columns: vec![counted(ZEROCOPY_COMPLETIONS, 100), counted(ZEROCOPY_COPIED, copied)],
    }
}

/// Makes the record of a run whose first trial sends without a copy. The kernel reports that it copied `copied` of 100
/// sends anyway; with `None` it reports nothing.
fn record(copied: Option<i64>) -> Record {
    let mut path = SimPath::default();
    path.near.send.user_ps = 4_000;
    let mut sim = Sim::new(path, 7);
    let (mut record, error) =
        run(&mut sim, plan(Knobs::default()), linerate_session::run::Label::default(), &mut ());
    assert!(error.is_none(), "{error:?}");
    let plan = record.trials.first_mut().expect("a trial was made");
    "zero-copy".clone_into(&mut plan.kind);
    let id = plan.id;
    for step in &mut record.steps {
        if !matches!(step.plan.purpose, Purpose::Slice { trial, changed: true } if trial == id) {
            continue;
        }
        let (set, until) = (step.plan.sets[0], step.plan.washout.0 + step.plan.measure.0);
        let near = &mut step.ends[0];
        near.tables.extend(copied.map(|n| result_of(set, n, until)));
    }
    record
}

#[test]
fn a_trial_without_a_copy_has_an_effect_only_where_the_kernel_did_not_copy() {
    let of = |copied| trial(&record(copied), 0).unwrap();
    let spared = of(Some(5));
    assert!(spared.effect.is_some() && spared.slices >= 8);
    let [with, without] = spared.cost.map(Option::unwrap);
    assert!(with > 0.0 && without > 0.0);
    for copied in [Some(6), Some(100), None] {
        let reported = of(copied);
        assert_eq!((reported.effect, reported.loss), (None, None), "{copied:?}");
        assert_eq!(reported.slices, spared.slices);
    }
}
