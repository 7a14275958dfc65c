//! Both programs of a connection send, and neither reads: no payload moves.

use crate::causes::prelude::*;

pub(crate) static CAUSE: Cause = Cause {
    id: "exchange-deadlock",
    name: "both programs send and neither reads",
    needs: &[Feature::Connections],
    stage: Stage::App,
    page: include_str!("../pages/exchange-deadlock.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(stuck) = load.deadlock else {
        // Without the length of the send queue it is unknown why nothing moves.
        if model.watched && !load.arrived() && load.tcp.not_sent.is_none() {
            return Err(lacks(model, "tcp", Side::Near));
        }
        let why = "something moved, or a queue had room";
        return Err(clear(why));
    };
    let evidence = vec![
        "nothing moved either way, and all that was sent had arrived".to_owned(),
        format!(
            "{} wait at this end to be sent: the far end takes none, because its program does not read",
            stuck.unsent
        ),
        format!(
            "{} wait at this end to be read, and leave no room: this program does not read either",
            stuck.unread
        ),
    ];
    Ok(Finding::at(Side::Near, 1.0, evidence).enough(true))
}

/// Nothing is predicted: the cause is found only on connections of other programs, on which no trial runs.
fn predict(_: &Model, _: &TrialPlan) -> Option<Range> {
    None
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new(
        "let at least one of the two programs read while it sends: a thread for each direction, or writes that do not \
         block, with poll; or let one of them read first. Larger buffers only hide it",
    )]
}
