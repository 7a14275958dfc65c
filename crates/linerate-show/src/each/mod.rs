//! Round trips with each of several values of an option, for people and for programs.

mod json;
mod text;

use linerate_record::Record;

#[cfg(test)]
pub(super) use json::Output;
pub use json::json;
pub use text::page;

use super::like::{self, Like, Timed};
use super::{Document, lat, noted, trips};

/// The result of one measurement.
#[derive(Debug)]
pub enum View {
    /// Of one size.
    Once(Box<lat::Probe>),
    /// Of several sizes.
    Sweep(Box<trips::Probe>),
}

impl View {
    /// Whether everything that was requested was measured.
    pub fn complete(&self) -> bool {
        match self {
            Self::Once(probe) => probe.complete(),
            Self::Sweep(probe) => probe.complete(),
        }
    }

    /// The sizes that were timed.
    fn timed(&self) -> Vec<Timed<'_>> {
        match self {
            Self::Once(probe) => probe.timed().into_iter().collect(),
            Self::Sweep(probe) => probe.timed(),
        }
    }

    fn page(&self, record: &Record) -> Document {
        let page = match self {
            Self::Once(probe) => lat::page(probe),
            Self::Sweep(probe) => trips::page(probe),
        };
        noted(page, record)
    }
}

/// A measurement that was made.
#[derive(Debug, Clone, Copy)]
pub struct Done<'a> {
    pub view: &'a View,
    pub record: &'a Record,
    /// Name of the saved record; `None` if it was not saved.
    pub saved: Option<&'a str>,
}

/// A value of the option, and its measurement or why there is none.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub value: &'a str,
    pub measured: Result<Done<'a>, &'a str>,
}

/// Measurements that differ in the value of one option.
#[derive(Debug)]
pub struct Each<'a> {
    /// The option.
    pub option: &'a str,
    /// In the order in which the values were typed.
    pub parts: Vec<Part<'a>>,
}

impl<'a> Each<'a> {
    /// The measurements that were made, with their values.
    fn done(&self) -> impl Iterator<Item = (&'a str, Done<'a>)> {
        let parts = self.parts.iter();
        parts.filter_map(|part| Some((part.value, part.measured.ok()?)))
    }

    /// Whether everything that was requested was measured.
    fn complete(&self) -> bool {
        let whole = |part: &Part<'_>| part.measured.is_ok_and(|done| done.view.complete());
        self.parts.iter().all(whole)
    }

    /// Tables in the form of a tool, each after a line that names the value.
    pub fn like(&self, like: Like) -> String {
        let tables = self.done().map(|(value, done)| {
            let page = like::page(like, &done.view.timed());
            format!("{} {value}\n{page}", self.option)
        });
        tables.collect()
    }
}

#[cfg(test)]
pub(super) mod sample {
    use super::*;

    /// A sweep that was kept, a broken one, and one that was not made.
    pub(super) fn sweeps() -> [(&'static str, Result<View, &'static str>); 3] {
        let view = |probe| Ok(View::Sweep(Box::new(probe)));
        [
            ("read", view(trips::sample::whole())),
            ("write", view(trips::sample::broken())),
            ("send", Err("interrupted before")),
        ]
    }

    /// The views as parts of one result.
    pub(super) fn each<'a>(
        views: &'a [(&'static str, Result<View, &'static str>)],
        record: &'a Record,
    ) -> Each<'a> {
        let part = |(value, view): &'a (&'static str, Result<View, &'static str>)| Part {
            value,
            measured: match view {
                Ok(view) => Ok(Done { view, record, saved: Some("blue-heron") }),
                Err(why) => Err(why),
            },
        };
        Each { option: "op", parts: views.iter().map(part).collect() }
    }
}
