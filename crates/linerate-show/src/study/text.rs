//! A study as a page of text: the answer, the table of points, then what was not measured.

use linerate_facts::Gap;
use linerate_judge::figure::LATENCY;
use linerate_plan::study::Axis;

use super::super::bw::own::broken;
use super::super::bw::text::unknown;
use super::super::{Document, Tone, lat, noted};
use super::grid::Grid;
use super::{Found, LAYERS, Made, PLACE, ROW, RUN, Study, layers, loads, mount, rows, runs, sizes};

pub use runs::run;

/// The page of a study.
pub fn page(study: &Study<'_>) -> Document {
    if let Some(made) = study.alone() {
        return of_part(made);
    }
    let mut doc = match study.axes.as_slice() {
        [run] if run.name == RUN => runs::summary(&study.runs()),
        [first, second] if first.name == LAYERS => layers::page(study, [first, second]),
        [first, second] if first.name == ROW => rows::page(study, [first, second]),
        [first, second] if first.name == PLACE => mount::page(study, [first, second]),
        axes => side_by_side(study, axes),
    };
    lacking(&mut doc, study);
    if [LAYERS, ROW, PLACE].contains(&study.axes[0].name.as_str()) {
        for (_, made) in study.made() {
            unknown(&mut doc, &made.found.gaps());
        }
    } else if study.axes[0].name != RUN {
        for (name, made) in study.made() {
            doc.gap();
            doc.title(&name);
            doc.append(of_part(made));
        }
    }
    doc
}

/// The page of several parts, side by side in one table.
fn side_by_side(study: &Study<'_>, axes: &[Axis]) -> Document {
    let mut doc = Document::new();
    let points = study.points();
    if let [first, second] = axes {
        doc.heading(&format!("Typical whole round trips by {} and {}", second.name, first.name));
        Grid::of_pairs([first, second], &points, &[&LATENCY]).write(&mut doc);
    } else {
        let name = axes.first().map_or("", |axis| axis.name.as_str());
        doc.heading(&format!("Whole round trips by {name}"));
        Grid::of_points(name, &points).write(&mut doc);
    }
    doc
}

/// Writes the parts that were not measured, and why.
fn lacking(doc: &mut Document, study: &Study<'_>) {
    for part in &study.parts {
        if let Err(why) = &part.made {
            not_measured(doc, &study.named(&part.values), why);
        }
    }
}

/// Writes that a point or a part was not measured, why, and what helps.
pub(super) fn not_measured(doc: &mut Document, name: &str, why: &Gap) {
    let text = format!("{name}: {}", why.why);
    doc.entry("not measured", &[(Tone::Warning, &text)], 2);
    if !why.hint.is_empty() {
        doc.detail(&[(Tone::Dim, "hint: "), (Tone::Plain, &why.hint)], 2);
    }
}

/// The page of a study with a single part.
fn of_part(made: &Made<'_>) -> Document {
    let (body, title) = match &made.found {
        Found::Sizes(probe) => (sizes::page(probe), sizes::title(probe)),
        Found::Loads(probe) => (loads::page(probe), loads::title(probe)),
        Found::Trips(probe) => return noted(lat::page(probe), made.record),
        Found::Run(_) | Found::Load(_) => return Document::new(),
    };
    let mut doc = Document::new();
    let broken = broken(made.record);
    if !broken.is_empty() {
        let why = format!("{broken}; the results until then follow");
        doc.line(&[(Tone::Warning, "Ended early: "), (Tone::Plain, &why)], 0);
        doc.gap();
    }
    doc.append(body);
    doc.gap();
    doc.line(&[(Tone::Dim, &title)], 0);
    unknown(&mut doc, &made.found.gaps());
    noted(doc, made.record)
}

#[cfg(test)]
mod tests {
    use linerate_plan::path::Direction;

    use super::super::runs::tests::judged;
    use super::super::{loads, sample, sizes};
    use super::*;
    use crate::document::width_of;
    use crate::sample as records;
    use crate::{Document, Style};

    /// The page of a study as text of 80 columns.
    fn plain(study: &Study<'_>) -> String {
        page(study).text(Style::PLAIN)
    }

    #[test]
    fn golden_of_loads() {
        use loads::sample as made;
        insta::assert_snapshot!("sweep_copy", plain(&made::copy(Direction::Forward).study()));
        insta::assert_snapshot!(
            "sweep_copy_reverse",
            plain(&made::copy(Direction::Reverse).study())
        );
        insta::assert_snapshot!("sweep_size", plain(&made::size().study()));
        insta::assert_snapshot!("sweep_memory", plain(&made::memory().study()));
        insta::assert_snapshot!("sweep_streams", plain(&made::streams().study()));
        insta::assert_snapshot!("sweep_depth", plain(&made::depth().study()));
        insta::assert_snapshot!("sweep_qps", plain(&made::queue_pairs().study()));
        let copy = made::copy(Direction::Forward);
        let narrow = Style { width: 40, color: false };
        insta::assert_snapshot!("sweep_markdown", page(&copy.study()).markdown());
        insta::assert_snapshot!("sweep_narrow", page(&copy.study()).text(narrow));
    }

    #[test]
    fn golden_of_round_trips_by_size() {
        use sizes::sample as made;
        insta::assert_snapshot!("trips_whole", plain(&made::whole().study()));
        insta::assert_snapshot!("trips_slow", plain(&made::slow().study()));
        insta::assert_snapshot!("trips_broken", plain(&made::broken().study()));
        insta::assert_snapshot!("trips_lossy", plain(&made::lossy().study()));
        insta::assert_snapshot!("trips_delayed", plain(&made::delayed().study()));
        let narrow = Style { width: 60, color: false };
        insta::assert_snapshot!("trips_narrow", page(&made::slow().study()).text(narrow));
        insta::assert_snapshot!("trips_markdown", page(&made::whole().study()).markdown());
    }

    #[test]
    fn golden_of_values_beside_each_other() {
        let samples = [sizes::sample::whole(), sizes::sample::broken()];
        let study = sample::values(&samples);
        insta::assert_snapshot!("each_sweeps", plain(&study));
        insta::assert_snapshot!("each_markdown", page(&study).markdown());
        let narrow = Style { width: 40, color: false };
        insta::assert_snapshot!("each_narrow", page(&study).text(narrow));
    }

    #[test]
    fn sizes_that_look_alike_are_rows_of_their_own_beside_each_other() {
        let samples = [sizes::sample::up_to(65_507), sizes::sample::up_to(65_536)];
        let study = sample::values(&samples);
        let labels: Vec<_> = study.axes[1].values.iter().map(|value| &value.label).collect();
        assert_eq!(labels, ["2 B", "65507 B", "64 KiB"]);
        let text = plain(&study);
        let row = |label: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with(label));
            lines.next().unwrap().split("us").count() - 1
        };
        // Both parts timed 2 B; each of the two largest sizes was timed in one part only.
        assert_eq!([row("2 B"), row("65507 B"), row("64 KiB")], [2, 1, 1], "{text}");
    }

    fn of_runs(render: impl Fn(&Document) -> String) -> String {
        let results =
            [records::limited(), records::healthy(), records::limited(), records::interrupted()];
        let runs = judged(&results);
        let one = |(judged, number): (&_, usize)| {
            let name = Some("linerate show 2026-11-22T10-31-07-brook");
            render(&run(judged, number, 5, name))
        };
        let text: String = runs.iter().zip(1..).map(one).collect();
        text + "\n" + &render(&page(&sample::runs(&results)))
    }

    #[test]
    fn golden_of_runs_and_no_line_is_longer_than_the_page() {
        insta::assert_snapshot!("repeat_markdown", of_runs(Document::markdown));
        insta::assert_snapshot!("repeat", of_runs(|page| page.text(Style::PLAIN)));
        for width in [60, 80, 100] {
            for line in of_runs(|page| page.text(Style { width, color: false })).lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn where_no_run_names_a_limit_they_say_so_together() {
        let results = [records::unknowing()];
        let text = plain(&sample::runs(&results));
        for direction in ["forward", "reverse"] {
            let unknown = format!("unknown, {direction}, in 1 of 1 run");
            assert!(text.contains(&unknown), "{text}");
        }
    }

    #[test]
    fn golden_of_layers_and_no_line_is_longer_than_the_page() {
        let points = sample::of_layers();
        let axes = sample::layers();
        let axes = [&axes[0], &axes[1]];
        let table = |style| {
            let mut doc = Document::new();
            layers::table(&mut doc, axes, &points);
            doc.text(style)
        };
        insta::assert_snapshot!("layers", table(Style::PLAIN));
        for width in [50, 60, 80] {
            for line in table(Style { width, color: false }).lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
    }
}
