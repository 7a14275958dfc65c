//! Effects that a device on the way has on connections.

use linerate_facts::metric as m;
use linerate_record::{Column, Record};

use super::{Replay, Shown};

pub(super) const REPLAYS: &[Replay] = &[Replay {
    cause: "segment-size",
    on: "path-rate-1g",
    over: Shown {
        words: "segments of 80 bytes between ends that take 1448",
        show: |r| segments(r, 80),
        named: &["segment-size"],
        disturbed: &[],
    },
    under: Shown {
        words: "segments of 1348 bytes, as for a tunnel",
        show: |r| segments(r, 1348),
        named: &["path-rate"],
        disturbed: &[],
    },
}];

/// Connections that send segments of this size, though both ends announced that they accept 1448 bytes.
fn segments(record: &mut Record, size: i64) {
    let ends = record.steps.iter_mut().flat_map(|step| &mut step.ends);
    let tables = ends.flat_map(|end| &mut end.tables);
    for table in tables.filter(|table| table.source == m::TCP_SND_MSS.source) {
        let rows = table.at.len();
        for column in &mut table.columns {
            if column.name == m::TCP_SND_MSS.name {
                column.values = vec![size; rows];
            }
        }
        table.columns.push(Column {
            name: m::TCP_ADVMSS.name.into(),
            unit: m::TCP_ADVMSS.unit,
            kind: m::TCP_ADVMSS.kind,
            values: vec![1448; rows],
        });
    }
}
