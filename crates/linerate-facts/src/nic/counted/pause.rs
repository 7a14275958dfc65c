//! Names of pause counters. Most drivers use names whose words show their meaning: `rx_pause`, `rx_flow_control_xoff`,
//! `port.link_xoff_rx`. Names without these words (`rx_pfc_ena_frames_pri3`) have rows in the table.

use super::Meaning;

/// Words that precede the priority number in a counter's name: `rx_prio3_pause`, `port.rx_priority_3_xoff`,
/// `rx_pb_3_pxoff`, `rx_pause_prio_3`, `rx_pause_frames_class3`.
const OF_PRIORITY: [&str; 6] = ["priority_", "prio_", "prio", "pb_", "pri", "class"];

/// Words in the names of counters that measure pauses in another way than by their number.
const NO_COUNTS: [&str; 6] = ["duration", "transition", "time", "resume", "entered", "unsupported"];

/// Words in names that contain `pause` or `xoff` but do not count pauses.
const NO_PAUSES: [&str; 2] = ["storm", "discard"];

/// The meaning of a pause counter; `None` for other names. A pause of one priority stops only packets of that priority
/// (IEEE 802.1Qbb), and payload without a priority has priority 0.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let name = name.to_ascii_lowercase();
    let events = ["pause", "xoff"].iter().any(|word| name.contains(word));
    // An XON frame ends a pause.
    let ends = name.contains("xon") && !name.contains("xoff");
    let is_else = NO_PAUSES.iter().any(|word| name.contains(word));
    if !events || ends || is_else {
        return None;
    }
    let (receives, sends) = (name.contains("rx"), name.contains("tx"));
    let counts = !NO_COUNTS.iter().any(|word| name.contains(word));
    let of_priority = priority(&name).is_some_and(|priority| priority > 0);
    //= Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
    //= Linux drivers/net/ethernet/mellanox/mlx4/mlx4_stats.h: rx_pause_duration
    let lasted = receives && !of_priority && name.contains("pause_duration");
    match (receives, sends) {
        _ if lasted => Some(Meaning::PausedMicros),
        _ if !counts => Some(Meaning::Benign),
        _ if of_priority => Some(Meaning::PriorityPause),
        (true, false) => Some(Meaning::PauseReceived),
        (false, true) => Some(Meaning::PauseSent),
        _ => None,
    }
}

/// The priority that a counter's name contains; `None` if it contains none.
fn priority(name: &str) -> Option<u32> {
    OF_PRIORITY.iter().find_map(|word| {
        let (_, after) = name.split_once(word)?;
        let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    })
}
