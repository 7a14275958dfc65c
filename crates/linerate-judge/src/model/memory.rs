//! A load of this host's memory: the throughput that it reached, and the most that the memory modules allow.

use super::ends::{is_alone, stream_set};
use linerate_ceiling::{Bounds, memory};
use linerate_facts::memory::CACHES;
use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::Direction;
use linerate_plan::transport::{self, Feature};
use linerate_plan::{Access, Pattern};
use linerate_record::{Record, Step};
use linerate_units::Bytes;

/// A load of the host's own memory.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryLoad {
    /// The access of the load's operations: read, write or copy.
    pub access: Access,
    /// Size of each array; each thread has one, or two for copies.
    pub array: Bytes,
    /// Size of the last-level cache; `None` if it is unknown.
    pub last_cache: Option<Bytes>,
    /// The highest rate that the memory modules allow the load, or the gap that says why it is unknown.
    pub ceiling: Result<ModuleCeiling, Gap>,
}

/// The highest rate that memory modules allow a load.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleCeiling {
    /// The rate in bits per second, counted as the load's rate is.
    pub rate: Bounds,
    /// The formula: `2 x 3200 MT/s x 8 B, crossed twice by each byte`.
    pub words: String,
}

/// The memory load of a step; `None` if the step has another kind of load.
pub fn memory_load(record: &Record, step: &Step) -> Option<MemoryLoad> {
    let is_memory = transport::of(&record.start.plan.engine).has(Feature::Memory);
    let set = stream_set(record, step, Direction::Forward).filter(|_| is_memory)?;
    let Pattern::Operations { access } = set.plan.pattern else {
        return None;
    };
    let facts = &record.hosts.first().filter(|_| is_alone(record))?.facts;
    let array = Bytes(set.ends.first()?.write_size);
    Some(MemoryLoad {
        access,
        array,
        last_cache: facts.last_cache,
        ceiling: ceiling(facts, access, array),
    })
}

/// The highest rate that the memory modules allow, if caches hold little of the arrays.
fn ceiling(facts: &HostFacts, access: Access, array: Bytes) -> Result<ModuleCeiling, Gap> {
    let gap = |why: &str, hint: &str| Gap {
        what: "ceiling of the memory modules".to_owned(),
        why: why.to_owned(),
        hint: hint.to_owned(),
    };
    match facts.last_cache {
        None => {
            return Err(gap(
                "the part of an array that the caches hold is unknown: the kernel shows no caches",
                "",
            ));
        }
        Some(cache) if array.0 < cache.0.saturating_mul(CACHES) => {
            let why = format!("the last cache of {cache} may hold a part of each array of {array}");
            let enough = cache.0.saturating_mul(CACHES);
            let size = match enough {
                whole if whole.is_multiple_of(1 << 20) => format!("{}MiB", whole >> 20),
                odd => format!("{odd}B"),
            };
            return Err(gap(&why, &format!("--size {size}")));
        }
        Some(_) => {}
    }
    let Some(channels) = facts.channels else {
        let lack = facts.gaps.iter().find(|gap| gap.what == "facts.memory.modules");
        return Err(match lack {
            Some(lack) if lack.hint.starts_with("sudo linerate") => {
                gap(&lack.why, "run it as root (sudo)")
            }
            Some(lack) => gap(&lack.why, &lack.hint),
            None => gap(
                "the firmware does not list them with their speed, as in most virtual machines",
                "",
            ),
        });
    };
    let crossed = memory::crossings(access);
    let (least, most) = channels.capacity();
    let bits = |bytes: f64| bytes * 8.0 / f64::from(crossed);
    let each = if crossed == 1 { "once" } else { "twice" };
    let nodes = if facts.nodes > 1 {
        format!(", all {} nodes together", facts.nodes)
    } else {
        String::new()
    };
    Ok(ModuleCeiling {
        rate: Bounds::new(bits(least), bits(most)),
        words: format!("{}{nodes}; each byte crosses them {each}", channels.words()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_facts::memory::Channels;
    use linerate_units::Transfers;

    fn host(cache: Option<u64>) -> HostFacts {
        HostFacts {
            nodes: 1,
            last_cache: cache.map(Bytes),
            channels: Some(Channels { least: 2, most: 2, speed: Transfers(3_200_000_000) }),
            ..HostFacts::default()
        }
    }

    #[test]
    fn a_copy_crosses_the_modules_twice_and_others_once() {
        let of = |access| ceiling(&host(Some(100)), access, Bytes(400)).unwrap();
        let bits = 2.0 * 3.2e9 * 8.0 * 8.0;
        assert_eq!(of(Access::Read).rate, Bounds::exact(bits));
        assert_eq!(of(Access::Write).rate, Bounds::exact(bits));
        let copy = of(Access::Copy);
        assert_eq!(copy.rate, Bounds::exact(bits / 2.0));
        assert_eq!(copy.words, "2 x 3200 MT/s x 8 B; each byte crosses them twice");
    }

    #[test]
    fn arrays_that_caches_may_hold_have_no_ceiling_of_modules() {
        let of = |cache, array| ceiling(&host(cache), Access::Read, Bytes(array));
        assert!(of(Some(100), 400).is_ok());
        let gap = of(Some(100), 399).unwrap_err();
        assert!(gap.why.contains("may hold") && gap.hint == "--size 400B", "{gap:?}");
        let gap = of(Some(32 << 20), 1).unwrap_err();
        assert_eq!(gap.hint, "--size 128MiB");
        assert!(of(None, 1 << 40).unwrap_err().why.contains("unknown"));
    }

    #[test]
    fn modules_that_were_not_read_are_unknown_with_what_would_tell() {
        let mut facts = HostFacts { channels: None, ..host(Some(1)) };
        let of = |facts: &HostFacts| ceiling(facts, Access::Read, Bytes(64)).unwrap_err();
        assert!(of(&facts).why.contains("virtual machines") && of(&facts).hint.is_empty());
        facts.gaps.push(Gap {
            what: "facts.memory.modules".to_owned(),
            why: "cannot read it".to_owned(),
            hint: "sudo linerate host".to_owned(),
        });
        assert_eq!(of(&facts).hint, "run it as root (sudo)");
        facts.gaps[0].hint.clear();
        assert_eq!((of(&facts).why.as_str(), of(&facts).hint.as_str()), ("cannot read it", ""));
    }
}
