//! The log line for the end of a test.

use linerate_record::iperf3::{Results, stream_id};
use linerate_units::{Bytes, Nanos, Rate};

use super::terms::Terms;
use linerate_plan::application::Role;

/// Describes the end of a test for the log, such as
/// `ended, 9.41 Gb/s received in 10 s`; for datagrams with their losses.
pub(super) fn ended(terms: &Terms, ours: &Results, theirs: &Results) -> String {
    let parallel = terms.params.parallel as usize;
    let each = (0..).zip(terms.roles()).filter_map(|(at, role)| {
        // Goodput is measured by the receiver.
        let (receiver, how) = match role {
            Role::Sender => (theirs, "sent"),
            Role::Receiver => (ours, "received"),
        };
        let ids: Vec<u64> = (at * parallel..(at + 1) * parallel).map(stream_id).collect();
        let part = Results {
            streams: receiver
                .streams
                .iter()
                .filter(|stream| ids.contains(&stream.id))
                .copied()
                .collect(),
            ..Results::default()
        };
        goodput(terms, &part, how)
    });
    std::iter::once("ended".to_owned()).chain(each).collect::<Vec<_>>().join(", ")
}

fn goodput(terms: &Terms, receiver: &Results, how: &str) -> Option<String> {
    let time = Nanos((receiver.seconds()? * 1e9) as u64);
    let rate = Rate::of(Bytes(receiver.bytes()), time);
    let lost = terms.is_of_datagrams().then(|| lost(receiver)).flatten();
    Some(format!("{rate} {how} in {time}{}", lost.unwrap_or_default()))
}

fn lost(receiver: &Results) -> Option<String> {
    let (lost, all) = (receiver.errors()?, receiver.packets()?);
    Some(format!(", {lost} of {all} datagrams lost"))
}
