//! Outcomes in a file: each is one line of JSON, written as soon as the outcome is known.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use linerate::demo::Report;

/// Largest file of outcomes that is read, in bytes; it holds thirty thousand outcomes.
const MOST: u64 = 64 << 20;

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kept {
    /// The demonstration ran; this is its result.
    Report(Box<Report>),
    /// The demonstration did not finish; the text says why.
    Failed(String),
}

/// A case and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Cell, congestion control and seed: `path-rate-bbr-7`.
    pub(crate) key: String,
    /// The outcome of the case.
    #[serde(flatten)]
    pub(crate) what: Kept,
}

/// Errors for which a score cannot be kept or continued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScoreError {
    /// A demonstration could not be started.
    #[error("cannot start a demonstration")]
    Start(#[source] io::Error),
    /// The directory or its file cannot be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// The path of the directory or file.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        error: io::Error,
    },
    /// The file is larger than any score.
    #[error("{} has more than {MOST} bytes: it holds no outcomes", .0.display())]
    Large(PathBuf),
    /// A line of the file cannot be parsed as an outcome.
    #[error("{}, line {line}: no outcome of a demonstration", path.display())]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The error of the decoder.
        #[source]
        error: serde_json::Error,
    },
}

/// The outcomes in a directory, in the order in which they were added.
pub(crate) struct Outcomes {
    path: PathBuf,
    file: File,
    rows: Vec<Row>,
    keys: HashSet<String>,
}

impl Outcomes {
    /// Opens the outcomes in `dir`, which is created if it is missing.
    pub(crate) fn open(dir: &Path) -> Result<Self, ScoreError> {
        let path = dir.join("outcomes.jsonl");
        let failed = |error| ScoreError::File { path: path.clone(), error };
        fs::create_dir_all(dir).map_err(failed)?;
        let mut file = OpenOptions::new();
        let file = file.create(true).read(true).append(true).open(&path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > MOST {
            return Err(ScoreError::Large(path));
        }
        let text = fs::read_to_string(&path).map_err(failed)?;
        let rows = parse(&text, &path)?;
        Ok(Self { keys: rows.iter().map(|r| r.key.clone()).collect(), rows, file, path })
    }

    /// Whether a case with this key has an outcome.
    pub(crate) fn holds(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// All outcomes, in the order in which they were added.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds an outcome, first to the file.
    pub(crate) fn keep(&mut self, row: Row) -> Result<(), ScoreError> {
        let mut line = serde_json::to_vec(&row).map_err(|e| self.failed(e.into()))?;
        line.push(b'\n');
        // The line is written by one call, so that a killed process leaves a whole line or none.
        let written = self.file.write_all(&line);
        written.map_err(|e| self.failed(e))?;
        self.keys.insert(row.key.clone());
        self.rows.push(row);
        Ok(())
    }

    fn failed(&self, error: io::Error) -> ScoreError {
        ScoreError::File { path: self.path.clone(), error }
    }
}

fn parse(text: &str, path: &Path) -> Result<Vec<Row>, ScoreError> {
    let lines = text.lines().enumerate();
    let filled = lines.filter(|(_, line)| !line.trim().is_empty());
    filled
        .map(|(i, line)| {
            serde_json::from_str(line).map_err(|error| ScoreError::Line {
                path: path.to_owned(),
                line: i + 1,
                error,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(key: &str) -> Row {
        Row { key: key.to_owned(), what: Kept::Failed("no network".to_owned()) }
    }

    #[test]
    fn what_was_kept_is_there_when_the_score_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("new");
        let mut outcomes = Outcomes::open(&dir).unwrap();
        assert!(!outcomes.holds("healthy-bbr-1"));
        outcomes.keep(failed("healthy-bbr-1")).unwrap();
        let reopened = Outcomes::open(&dir).unwrap();
        assert!(reopened.holds("healthy-bbr-1") && !reopened.holds("healthy-bbr-2"));
        assert_eq!(reopened.rows(), outcomes.rows());
    }

    #[test]
    fn a_line_that_is_no_outcome_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut outcomes = Outcomes::open(dir.path()).unwrap();
        outcomes.keep(failed("a")).unwrap();
        drop(outcomes);
        let path = dir.path().join("outcomes.jsonl");
        let text = fs::read_to_string(&path).unwrap() + "{\"key\":\"b\",\"told\"";
        fs::write(&path, text).unwrap();
        let error = Outcomes::open(dir.path()).err().unwrap().to_string();
        assert!(error.ends_with("line 2: no outcome of a demonstration"), "{error}");
    }
}
