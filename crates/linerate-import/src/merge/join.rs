//! Joins two values of the same fact.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::reading::{MOST, Notes};

/// Joins values of the same fact, and adds a note if they differ.
#[derive(Default)]
pub(super) struct Joiner {
    /// Name of the thing whose values are joined, for notes.
    about: String,
    pub(super) notes: Notes,
}

impl Joiner {
    /// Sets the name of the thing whose values are joined next.
    pub(super) fn about(&mut self, what: &str) {
        what.clone_into(&mut self.about);
    }

    /// Adds a note that two values differ.
    pub(super) fn differ(&mut self, what: &str, first: &str, later: &str) {
        let about = &self.about;
        let what = format!(
            "{about}: {what} is {first} in one output and {later} in a later one, which counts"
        );
        self.notes.push(None, what);
    }

    /// Joins a value that is `None` if it is unknown.
    pub(super) fn option<T: PartialEq + Display>(
        &mut self,
        what: &str,
        into: &mut Option<T>,
        from: Option<T>,
    ) {
        self.shown(what, into, from, T::to_string);
    }

    /// Joins a value that is `None` if it is unknown; `words` shows it in a note.
    pub(super) fn shown<T: PartialEq>(
        &mut self,
        what: &str,
        into: &mut Option<T>,
        from: Option<T>,
        words: impl Fn(&T) -> String,
    ) {
        let Some(later) = from else { return };
        if let Some(first) = into.as_ref().filter(|first| **first != later) {
            self.differ(what, &words(first), &words(&later));
        }
        *into = Some(later);
    }

    /// Joins a text that is empty if it is unknown.
    pub(super) fn text(&mut self, what: &str, into: &mut String, from: String) {
        if from.is_empty() {
            return;
        }
        if !into.is_empty() && *into != from {
            self.differ(what, into, &from);
        }
        *into = from;
    }

    /// Joins a number that is 0 if it is unknown.
    pub(super) fn number<T>(&mut self, what: &str, into: &mut T, from: T)
    where
        T: PartialEq + Default + Copy + std::fmt::LowerHex,
    {
        if from == T::default() {
            return;
        }
        if *into != T::default() && *into != from {
            self.differ(what, &format!("{into:x}"), &format!("{from:x}"));
        }
        *into = from;
    }

    /// Joins a list that is empty if it is unknown.
    pub(super) fn list<T: PartialEq + Display>(
        &mut self,
        what: &str,
        into: &mut Vec<T>,
        from: Vec<T>,
    ) {
        /// Largest number of items that a note shows.
        const SHOWN: usize = 16;
        if from.is_empty() {
            return;
        }
        let words = |list: &[T]| {
            let shown: Vec<String> = list.iter().take(SHOWN).map(T::to_string).collect();
            shown.join(" ")
        };
        if !into.is_empty() && *into != from {
            self.differ(what, &words(into), &words(&from));
        }
        *into = from;
    }
}

/// Replaces a value by a later one that is known, without a note if they differ.
pub(super) fn later<T: Default + PartialEq>(into: &mut T, from: T) {
    if from != T::default() {
        *into = from;
    }
}

/// Adds things to a list. A thing whose key is in the list already is joined with the one there.
pub(super) fn keyed<T, K: Ord>(
    into: &mut Vec<T>,
    from: Vec<T>,
    key: impl Fn(&T) -> K,
    mut join: impl FnMut(&mut T, T),
) {
    let mut places: BTreeMap<K, usize> =
        into.iter().enumerate().map(|(at, thing)| (key(thing), at)).collect();
    for thing in from {
        let at = *places.entry(key(&thing)).or_insert(into.len());
        let has_room = into.len() < MOST;
        match into.get_mut(at) {
            Some(known) => join(known, thing),
            None if has_room => into.push(thing),
            None => return,
        }
    }
}
