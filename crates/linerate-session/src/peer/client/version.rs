//! Requests that a far end with an older protocol version does not understand.

use linerate_plan::SetPlan;
use linerate_plan::transport::{BIND, DSCP};
use linerate_record::wire::preamble::since;

use crate::link::LinkError;

/// Refuses a plan that a far end with protocol version `version` does not
/// understand. An older far end would reject such a plan as malformed.
pub(super) fn understood(plan: &SetPlan, version: u16) -> Result<(), LinkError> {
    if version >= since(plan) {
        return Ok(());
    }
    let options = &plan.knobs.options;
    let newer = [BIND.key, DSCP.key].into_iter();
    let mut newer = newer.filter(|key| options.get(key).is_some());
    let (option, flag) = newer.next().map_or_else(
        || (format!("--copy {}", plan.knobs.copy.name()), "copy"),
        |key| (format!("--{key}"), key),
    );
    Err(LinkError::Refused {
        what: format!("linerate on the far host is too old for `{option}`"),
        hint: format!("update linerate on the far host, or leave out --{flag}"),
    })
}

#[cfg(test)]
mod tests {
    use linerate_plan::path::Direction;
    use linerate_plan::{Handover, Knobs, Pattern};
    use linerate_record::wire::preamble::VERSIONS;

    use super::*;

    #[test]
    fn an_older_far_end_is_not_asked_for_what_it_does_not_know() {
        let requested = |copy, version| {
            let direction = Direction::Forward;
            let plan = SetPlan {
                id: 0,
                pattern: Pattern::Stream { direction },
                knobs: Knobs { copy, ..Knobs::default() },
            };
            understood(&plan, version)
        };
        assert!(requested(Handover::Sendfile, 1).is_ok());
        assert!(requested(Handover::IoUring, VERSIONS.high).is_ok());
        let Err(LinkError::Refused { what, hint }) = requested(Handover::IoUring, 1) else {
            panic!("it would be a broken message there");
        };
        assert!(what.contains("`--copy io-uring`"), "{what}");
        assert!(hint.starts_with("update linerate on the far host"), "{hint}");
    }
}
