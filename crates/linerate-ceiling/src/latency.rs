//! Minimum latencies: the shortest one-way delay that physics and link rates allow, in seconds.

use super::Bounds;

/// Seconds that light needs for a metre of fibre; a signal in copper is a little faster.
//= ITU-T G.652: group index 1.468
const METRE: f64 = 1.468 / 299_792_458.0;

/// A part of the least possible latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The source of the delay, with its numbers.
    pub words: String,
    /// Delay of the part in seconds.
    pub seconds: f64,
}

/// The shortest time to transfer `bytes` over a link or bus with a capacity of `capacity` bytes per second.
pub fn serialisation(name: &str, bytes: f64, capacity: Bounds) -> Part {
    let rate = capacity.high().max(1.0);
    Part { words: format!("{bytes} B on the {name}"), seconds: bytes / rate }
}

/// The propagation delay of a cable of `metres` metres.
pub fn propagation(metres: f64) -> Part {
    Part { words: format!("{metres} m of cable"), seconds: metres * METRE }
}

/// The delay of `count` switches, `seconds` in each of them; zero if the delay of a switch is not known.
pub fn switches(count: u32, seconds: Option<f64>) -> Part {
    let s = if count == 1 { "" } else { "es" };
    let unknown = seconds.map_or(" as 0 ns", |_| "");
    Part {
        words: format!("{count} switch{s}{unknown}"),
        seconds: f64::from(count) * seconds.unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_the_time_that_they_must() {
        let near = |part: Part, seconds: f64| (part.seconds / seconds - 1.0).abs() < 1e-2;
        assert!(near(serialisation("link", 1538.0, Bounds::exact(125e6)), 12.3e-6));
        assert!(near(propagation(1000.0), 4.9e-6));
        assert!(near(switches(2, Some(170e-9)), 340e-9));
        let unknown = switches(1, None);
        assert_eq!(unknown.words, "1 switch as 0 ns");
        assert!(unknown.seconds.abs() < f64::EPSILON);
    }
}
