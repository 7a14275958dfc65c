//! Reads the output of `nproc`: only a number, so that the command before it is needed to recognise it.

use super::numbered;
use crate::facts::lines::Reading;
use crate::format::{Format, Found, Section};
use crate::reading::{MOST, first_line, program, run, small};

pub(crate) static NPROC: Format = Format {
    id: "nproc",
    label: "nproc",
    versions: "coreutils 8 and 9",
    evidence: "run here: coreutils 9.1",
    unknown: "Everything but the number of CPUs that the program may use.",
    starts: |at| starts(at.text),
    read,
    ..Format::FACTS
};

fn starts(text: &str) -> bool {
    let line = first_line(text).trim();
    let is_command = line == "nproc" || run(line).and_then(program) == Some("nproc");
    is_command && count(text).is_some()
}

fn count(text: &str) -> Option<u32> {
    let line = text.lines().nth(1)?.trim();
    small(line).filter(|count| (1..=MOST as u32).contains(count))
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let count = count(section.text).ok_or("it has no number")?;
    let mut reading = Reading::of(section);
    let ids: Vec<u32> = (0..count).collect();
    reading.facts.processors.cpus = numbered(&ids);
    reading.lines.clear();
    let mut found = reading.found("nproc")?;
    // The output is the line of the command and the line of the number.
    found.used = Some(section.text.split_inclusive('\n').take(2).map(str::len).sum());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use crate::read;

    #[test]
    fn a_number_behind_the_command_counts_cpus() {
        let cpus = |text: &str| {
            let parsed = read(text.as_bytes()).ok()?;
            Some(parsed.parts[0].facts.processors.cpus.len())
        };
        assert_eq!(cpus("$ nproc\n8\n"), Some(8));
        assert_eq!(cpus("nproc\n64\n$ uname\n"), Some(64));
        for none in ["8\n", "$ nproc\nx\n", "$ nproc\n0\n", "$ nproc\n100000\n"] {
            assert_eq!(cpus(none), None, "{none}");
        }
    }
}
