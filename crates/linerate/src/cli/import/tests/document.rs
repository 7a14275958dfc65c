//! Generates and checks `docs/import.md`, from the tables of formats and rules.

use std::fmt::Write;

use linerate_explain::RULES;
use linerate_import::{FORMATS, Format, Holds, MOST_BYTES};

use super::file::KEPT;
use super::tests::named;
use super::{ENGINE, FILES};
use linerate_show::Style;
use linerate_test::kept;

const HEAD: &str = "\
# Import

`linerate import FILE...` reads what other programs printed: results of network and disk benchmarks, and facts of hosts. The judge
of `linerate run` reads the results, and [rules](#rules) say what the figures show. The tests of linerate generate this page.

```
iperf3 -c brook -J > iperf3.json; linerate import iperf3.json
ssh brook 'ethtool eth0' > brook.txt; linerate import iperf3.json --far brook.txt
ib_write_lat brook | linerate import - --title 'before the new switch' --note switch
linerate import crystal.txt iperf3.json --claim 'goodput>=20Gbit/s' --claim transport=rdma
linerate show last                     # the import again, by the rules of this version
```

- A file is read by its content; its name does not matter. It may have the outputs of several programs, one after the other, with
  prompts and other text between them. Lines that no format understands are named with their numbers, and nothing is guessed from
  them.
- Several files describe one path. One with nothing to read is a note, if another one has something. The host that started
  the test is the client; files with `--far` are those of the server's host. With facts of both hosts the rates are compared
  with ports, slots and memory.
- `ethtool -i eth0`, `ethtool -S eth0` and the like print no name of the port: keep the line of the prompt with the command before
  the output.
- `--near-port NAME` and `--far-port NAME` say which port carries the path, where facts show several.
- `--claim` holds a statement against the figures: `goodput>=RATE`, `latency<=TIME` (whole round trips), `ceiling=RATE`,
  `transport=rdma` or `before.KIND.latency=TIME`: whole round trips before a change, of KIND `tcp`, `udp`, `sockets`, `verbs`,
  `messages` or `application`. They are held against times of the same kind alone.
- `-` reads standard input, once. `--json` prints the document of `linerate generate schema import`, `--expect` sets bounds.
- Programs that print half of a round trip as latency (perftest, sockperf, qperf, OSU) are compared after doubling; tables say which.

";

/// Examples in the document: title, command, paths of its samples, and the names under which they are imported.
const SESSIONS: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "One result, and the facts of the far host",
        "linerate import iperf3.json --far brook.txt",
        &["iperf3-json/3.12-reverse.json", "--far", "ethtool/two-ports.txt"],
        &["iperf3.json", "brook.txt"],
    ),
    (
        "A table by size, and a claim",
        "linerate import lat.txt --claim 'latency<=2us'",
        &["perftest/write-lat-three-columns.txt", "--claim", "latency<=2us"],
        &["lat.txt"],
    ),
];

const KEEPS: &str = "\
## What is kept

An import is a record as a run is: `show` takes its name, `--no-save` keeps none. It holds the bytes of each file, its
name without the folder, the title, the note, the claims and the names of ports. No conclusion is kept: a newer linerate reads the bytes
anew. Outputs have names of hosts and addresses as the programs printed them: look before you pass a record on.

";

fn document() -> String {
    let mut text = HEAD.to_owned();
    for (title, typed, line, names) in SESSIONS {
        let page = named(line, names).text(Style::PLAIN);
        let _ = write!(text, "## {title}\n\n```\n$ {typed}\n{page}```\n\n");
    }
    let _ = write!(
        text,
        "{KEEPS}Limits: {} MiB for a file, and {FILES} files. Of a file longer than {} MiB the record keeps the results that were read, \
         and neither the bytes nor facts. Directories, devices and named pipes are refused; an open pipe (`<(PROGRAM)`) is read. The \
         record names `{ENGINE}` as its engine.\n\n",
        MOST_BYTES >> 20,
        KEPT >> 20,
    );
    text.push_str("## Formats\n\n");
    text.push_str(
        "*Run here*: the reader was checked with the program's own output. *Published*: with output that others published. A value that \
         stands in the last column is left out, and never guessed.\n\n",
    );
    for (title, holds) in [("Results", Holds::Results), ("Facts of a host", Holds::Facts)] {
        let _ = write!(
            text,
            "### {title}\n\n| format | versions | checked with | cannot be known |\n|---|---|---|---|\n"
        );
        for format in FORMATS.iter().filter(|format| format.holds == holds) {
            row(&mut text, format);
        }
        text.push('\n');
    }
    text.push_str("## Rules\n\nA rule states only what the figures show, and is silent where one is missing.\n\n");
    text.push_str("| rule | what it looks for |\n|---|---|\n");
    for rule in RULES {
        let _ = writeln!(text, "| `{}` | {} |", rule.id, cell(rule.doc));
    }
    text
}

fn row(text: &mut String, format: &Format) {
    let cells = [format.label, format.versions, format.evidence, format.unknown];
    let cells = cells.map(cell);
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// Makes a text fit into a cell of a Markdown table.
fn cell(text: &str) -> String {
    let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    for c in spaced.chars() {
        if matches!(c, '|' | '*' | '<' | '_') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[test]
fn the_document_of_imports_says_what_the_program_says() {
    kept::check("docs/import.md", &document());
}

#[test]
fn every_format_has_evidence_and_says_what_it_cannot_know() {
    for format in FORMATS {
        assert!(!format.evidence.is_empty(), "{}", format.id);
        assert!(format.unknown.ends_with('.'), "{}", format.id);
    }
}
