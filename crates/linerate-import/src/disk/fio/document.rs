//! The fields of fio's JSON document that are read.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Options by their names, as the user gave them.
pub(super) type Words = BTreeMap<String, Value>;

/// Largest number of jobs, and of disks, in a document.
pub(super) const MOST_JOBS: usize = 1024;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Document {
    #[serde(rename = "fio version", default)]
    pub(super) version: String,
    pub(super) timestamp: Option<f64>,
    #[serde(rename = "global options", default)]
    pub(super) global: Words,
    #[serde(default, deserialize_with = "not_many")]
    pub(super) jobs: Vec<Job>,
    /// The jobs of other hosts, if fio ran as a client.
    #[serde(default, deserialize_with = "not_many")]
    pub(super) client_stats: Vec<Job>,
    #[serde(default, deserialize_with = "not_many")]
    pub(super) disk_util: Vec<Used>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) jobname: Option<String>,
    pub(super) groupid: Option<u64>,
    #[serde(default)]
    pub(super) error: i64,
    pub(super) elapsed: Option<f64>,
    #[serde(rename = "job options")]
    pub(super) options: Option<Words>,
    pub(super) hostname: Option<String>,
    pub(super) read: Option<Box<Way>>,
    pub(super) write: Option<Box<Way>>,
    pub(super) trim: Option<Box<Way>>,
    pub(super) mixed: Option<Box<Way>>,
    /// Flushes of files to the disk, of any kind.
    pub(super) sync: Option<Box<Way>>,
}

/// Figures of operations of one kind.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Way {
    /// Bytes moved; KiB if `io_kbytes` is missing (fio up to 2.15 at least).
    pub(super) io_bytes: Option<f64>,
    pub(super) io_kbytes: Option<f64>,
    /// Bytes per second.
    pub(super) bw_bytes: Option<f64>,
    /// KiB per second.
    pub(super) bw: Option<f64>,
    pub(super) iops: Option<f64>,
    /// Length of the run, in milliseconds.
    pub(super) runtime: Option<f64>,
    pub(super) total_ios: Option<f64>,
    pub(super) slat_ns: Option<Times>,
    pub(super) clat_ns: Option<Times>,
    pub(super) lat_ns: Option<Times>,
    /// Time to submit in microseconds (fio 2).
    pub(super) slat: Option<Times>,
    pub(super) clat: Option<Times>,
    pub(super) lat: Option<Times>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Times {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) mean: Option<f64>,
    #[serde(rename = "N")]
    pub(super) samples: Option<f64>,
    pub(super) percentile: Option<BTreeMap<String, Value>>,
}

/// Counters of a disk, over the whole run.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Used {
    /// Sectors of 512 bytes that were read; since fio 3.36.
    pub(super) read_sectors: Option<f64>,
    pub(super) write_sectors: Option<f64>,
}

impl Document {
    /// The jobs of this host and of other hosts.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().chain(&self.client_stats)
    }

    /// When the run began, in seconds since 1970: the document's time less the elapsed time.
    pub(super) fn began(&self) -> Option<f64> {
        Some(self.timestamp? - self.elapsed()?)
    }

    /// Seconds that the run had lasted when the document was written.
    pub(super) fn elapsed(&self) -> Option<f64> {
        self.jobs().filter_map(|job| job.elapsed).reduce(f64::max)
    }
}

impl Job {
    pub(super) fn name(&self) -> &str {
        self.jobname.as_deref().unwrap_or_default()
    }
}

/// Reads a list, and refuses more than [`MOST_JOBS`] entries.
fn not_many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(NotMany(PhantomData))
}

struct NotMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NotMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = list.next_element()? {
            if all.len() == MOST_JOBS {
                return Err(A::Error::custom(format!("more than {MOST_JOBS} entries")));
            }
            all.push(item);
        }
        Ok(all)
    }
}
