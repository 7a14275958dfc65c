//! Records the answers of a machine (files, links, netlink and socket queries), and replays them as a machine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Machine, Query, SocketQuery};

/// All answers of a machine. Answers to the same request are in the order of the requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Captured {
    /// Contents of files, by path.
    pub files: BTreeMap<String, Vec<Answer<Vec<u8>>>>,
    /// Contents of directories, by path.
    pub lists: BTreeMap<String, Vec<Answer<Vec<String>>>>,
    /// Targets of symbolic links, by path.
    pub links: BTreeMap<String, Vec<Answer<String>>>,
    pub queries: Vec<(Query, Vec<Answer<Vec<u8>>>)>,
    /// Replies to queries about sockets, by query, which includes the stream.
    pub sockets: Vec<(SocketQuery, Vec<Answer<Vec<u8>>>)>,
}

/// The result of a query: a reply, or why there was none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer<T> {
    /// The raw reply to the query.
    Reply(T),
    /// The error that was returned instead of a reply.
    Failed(Failure),
}

/// An error that keeps its kind when it is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Error number of the system, which determines the kind; `None` for errors that this program made.
    pub errno: Option<i32>,
    /// Kind of an error that this program made, one of `KINDS`; empty if there is an error number.
    pub kind: String,
    /// Text of an error that this program made.
    pub text: String,
}

/// Kinds of errors that this program makes itself, in contrast to the kernel's.
const KINDS: [io::ErrorKind; 5] = [
    io::ErrorKind::FileTooLarge,
    io::ErrorKind::InvalidData,
    io::ErrorKind::ResourceBusy,
    io::ErrorKind::UnexpectedEof,
    io::ErrorKind::Unsupported,
];

impl Failure {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self { errno: Some(errno), kind: String::new(), text: String::new() },
            None => {
                Self { errno: None, kind: format!("{:?}", error.kind()), text: error.to_string() }
            }
        }
    }

    fn error(&self) -> io::Error {
        if let Some(errno) = self.errno {
            return io::Error::from_raw_os_error(errno);
        }
        let kind = KINDS.into_iter().find(|kind| format!("{kind:?}") == self.kind);
        io::Error::new(kind.unwrap_or(io::ErrorKind::Other), self.text.clone())
    }
}

impl<T: Clone> Answer<T> {
    fn of(result: &io::Result<T>) -> Self {
        match result {
            Ok(reply) => Self::Reply(reply.clone()),
            Err(error) => Self::Failed(Failure::of(error)),
        }
    }

    fn result(&self) -> io::Result<T> {
        match self {
            Self::Reply(reply) => Ok(reply.clone()),
            Self::Failed(failure) => Err(failure.error()),
        }
    }
}

/// A machine that records the answers of another machine.
#[derive(Debug)]
pub struct Capture<M> {
    machine: M,
    captured: Mutex<Captured>,
}

impl<M: Machine> Capture<M> {
    /// Makes a machine that passes all queries on to `machine`.
    pub fn new(machine: M) -> Self {
        Self { machine, captured: Mutex::default() }
    }

    /// Returns the answers that were recorded so far.
    pub fn captured(&self) -> Captured {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note<T>(
        &self,
        result: io::Result<T>,
        note: impl FnOnce(&mut Captured, &io::Result<T>),
    ) -> io::Result<T> {
        note(&mut self.captured.lock().unwrap_or_else(PoisonError::into_inner), &result);
        result
    }
}

impl<M: Machine> Machine for Capture<M> {
    fn file(&self, path: &str) -> io::Result<Vec<u8>> {
        self.note(self.machine.file(path), |captured, result| {
            captured.files.entry(path.to_owned()).or_default().push(Answer::of(result));
        })
    }

    fn head(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        self.note(self.machine.head(path, most), |captured, result| {
            let answers = captured.files.entry(path.to_owned()).or_default();
            answers.push(Answer::of(result));
        })
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.note(self.machine.list(path), |captured, result| {
            captured.lists.entry(path.to_owned()).or_default().push(Answer::of(result));
        })
    }

    fn query(&self, query: &Query) -> io::Result<Vec<u8>> {
        self.note(self.machine.query(query), |captured, result| {
            add(&mut captured.queries, *query, Answer::of(result));
        })
    }

    fn parts(&self, query: &Query, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut whole = Vec::new();
        let result = self.machine.parts(query, &mut |part| {
            whole.extend_from_slice(part);
            each(part);
        });
        let result = self.note(result.map(|()| whole), |captured, result| {
            add(&mut captured.queries, *query, Answer::of(result));
        });
        result.map(|_| ())
    }

    fn target(&self, path: &str) -> io::Result<String> {
        self.note(self.machine.target(path), |captured, result| {
            let answers = captured.links.entry(path.to_owned()).or_default();
            answers.push(Answer::of(result));
        })
    }

    fn socket(
        &self,
        query: &SocketQuery,
        fd: BorrowedFd<'_>,
        into: &mut [u8],
    ) -> io::Result<usize> {
        self.note(self.machine.socket(query, fd, into), |captured, result| {
            let answer = match result {
                Ok(length) => Answer::Reply(into[..*length].to_vec()),
                Err(error) => Answer::Failed(Failure::of(error)),
            };
            add(&mut captured.sockets, *query, answer);
        })
    }
}

/// Adds an answer to the earlier answers to the same query.
fn add<Q: PartialEq, T>(all: &mut Vec<(Q, Vec<Answer<T>>)>, query: Q, answer: Answer<T>) {
    match all.iter_mut().find(|(q, _)| *q == query) {
        Some((_, answers)) => answers.push(answer),
        None => all.push((query, vec![answer])),
    }
}

/// Returns the answers to a query.
fn answers<'a, Q: PartialEq, T>(
    all: &'a [(Q, Vec<Answer<T>>)],
    query: &Q,
) -> Option<&'a Vec<Answer<T>>> {
    all.iter().find(|(q, _)| q == query).map(|(_, a)| a)
}

/// A machine that replays a capture: a request that is repeated gets the next captured answer. A request that was not
/// captured, or was captured fewer times, fails: no answer is made up.
#[derive(Debug)]
pub struct Replay {
    captured: Captured,
    given: Mutex<Given>,
}

/// Number of answers already returned, for each request.
#[derive(Debug, Default)]
struct Given {
    files: BTreeMap<String, usize>,
    lists: BTreeMap<String, usize>,
    links: BTreeMap<String, usize>,
    queries: BTreeMap<Query, usize>,
    sockets: BTreeMap<SocketQuery, usize>,
}

impl Replay {
    /// Makes the machine that was captured.
    pub fn new(captured: Captured) -> Self {
        Self { captured, given: Mutex::default() }
    }
}

/// Returns the next answer to a request that was already answered `given` times.
fn next<T: Clone>(answers: Option<&Vec<Answer<T>>>, given: &mut usize) -> io::Result<T> {
    let answers = answers.ok_or_else(|| missing(io::ErrorKind::Unsupported, "was not captured"))?;
    let answer = answers.get(*given);
    let answer =
        answer.ok_or_else(|| missing(io::ErrorKind::UnexpectedEof, "was captured fewer times"))?;
    *given += 1;
    answer.result()
}

fn missing(kind: io::ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, why)
}

impl Machine for Replay {
    fn file(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let count = given.files.entry(path.to_owned()).or_default();
        next(self.captured.files.get(path), count)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let count = given.lists.entry(path.to_owned()).or_default();
        next(self.captured.lists.get(path), count)
    }

    fn query(&self, query: &Query) -> io::Result<Vec<u8>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let count = given.queries.entry(*query).or_default();
        next(answers(&self.captured.queries, query), count)
    }

    fn target(&self, path: &str) -> io::Result<String> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let count = given.links.entry(path.to_owned()).or_default();
        next(self.captured.links.get(path), count)
    }

    fn socket(&self, query: &SocketQuery, _: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let count = given.sockets.entry(*query).or_default();
        let reply = next(answers(&self.captured.sockets, query), count)?;
        // Like the kernel, this truncates a reply that does not fit.
        let length = reply.len().min(into.len());
        into[..length].copy_from_slice(&reply[..length]);
        Ok(length)
    }
}
