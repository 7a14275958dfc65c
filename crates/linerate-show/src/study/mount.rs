//! A mounted folder, the disk of its server and the network between them as text.

use linerate_judge::figure::GOODPUT;
use linerate_judge::study::{Least, Point, least};
use linerate_plan::study::Axis;

use super::super::document::{LABEL, Table};
use super::super::words::bytes_rate;
use super::super::{Document, Tone};
use super::Study;
use super::rows::find;

/// Name of the axis of places, and the places.
pub const PLACE: &str = "place";
pub const PLACES: [&str; 3] = ["disk there", "network", "mount"];

/// The page: what limits the mount, and a line for each place.
pub(super) fn page(study: &Study<'_>, axes: [&Axis; 2]) -> Document {
    let mut doc = Document::new();
    let points = study.points();
    for access in &axes[1].values {
        let rates = PLACES.map(|place| rate(&points, place, &access.label));
        if let [Some(there), Some(network), Some(mount)] = rates {
            let text = answer(least(there, network, mount), there, network, mount);
            let head = format!("{:<5}  {}", access.label, bytes_rate(mount));
            doc.line(&[(Tone::Strong, &head), (Tone::Plain, &format!("  {text}"))], 0);
        }
    }
    doc.gap();
    let mut table = Table::new(&[LABEL, 14, 14]);
    let head = ["", "read", "write"].map(|cell| (Tone::Strong, cell));
    table = table.head(&head);
    for place in PLACES {
        let cell = |access: &str| {
            rate(&points, place, access).map_or_else(|| "not measured".to_owned(), bytes_rate)
        };
        let cells = [place.to_owned(), cell("read"), cell("write")];
        table.row(&cells.each_ref().map(|cell| (Tone::Plain, cell.as_str())));
    }
    doc.table(table);
    doc.gap();
    let note = "Each place alone, in turn: operations of 1 MiB in order, 8 in flight; the network with one connection.";
    doc.line(&[(Tone::Dim, note)], 0);
    doc
}

fn rate(points: &[Point], place: &str, access: &str) -> Option<f64> {
    let point = points.iter().find(|point| point.values.iter().eq([place, access]))?;
    find(point, &GOODPUT, None).map(|value| value.mid)
}

/// What limits the mount, in words.
fn answer(least: Least, there: f64, network: f64, mount: f64) -> String {
    let price = (1.0 - mount / there.min(network)) * 100.0;
    match least {
        Least::Disk => format!(
            "the disk there: {}, and the network carries {}",
            bytes_rate(there),
            bytes_rate(network)
        ),
        Least::Network => format!(
            "the network: {}, and the disk there does {}",
            bytes_rate(network),
            bytes_rate(there)
        ),
        Least::Protocol => format!(
            "the protocol between: it loses {price:.0} % of what the disk there and the network both do"
        ),
        Least::Cache => {
            "a cache: the mount did more than the disk there, or the network".to_owned()
        }
        Least::Unknown => format!(
            "unknown: the mount is {price:.0} % below the least of the disk there and the network, and both are close"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_names_the_figures_that_it_follows_from() {
        let gb = 8e9;
        let words = |there: f64, network: f64, mount: f64| {
            answer(least(there, network, mount), there, network, mount)
        };
        assert!(words(gb, 3.0 * gb, 0.95 * gb).starts_with("the disk there: 1.00 GB/s"));
        assert!(words(3.0 * gb, gb, 0.95 * gb).starts_with("the network: 1.00 GB/s"));
        assert!(words(3.0 * gb, 2.0 * gb, 0.5 * gb).contains("loses 75 %"));
        assert!(words(gb, gb, 3.0 * gb).starts_with("a cache"));
        assert!(words(gb, 3.0 * gb, 0.75 * gb).starts_with("unknown"));
    }
}
