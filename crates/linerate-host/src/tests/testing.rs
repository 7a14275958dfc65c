//! Invented machines for tests.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use linerate_facts::Gap;
pub(super) use linerate_facts::parse::netlink::write::attribute as attr;
use linerate_facts::parse::netlink::write::message;
use linerate_record::Table;
use rustix::io::Errno;

use super::{Answer, Captured, Failure, Query, Replay, Sources};

/// The destination of routes in tests.
pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A captured machine, built by hand.
#[derive(Default)]
pub(super) struct Fake(pub(super) Captured);

impl Fake {
    /// Adds a file whose readings return `texts` in turn.
    pub(super) fn file(mut self, path: &str, texts: &[&str]) -> Self {
        let answers = texts.iter().map(|t| Answer::Reply(t.as_bytes().to_vec()));
        self.0.files.insert(path.to_owned(), answers.collect());
        self
    }

    /// Adds a file whose readings return `texts` in turn, and then fail.
    pub(super) fn failing(self, path: &str, texts: &[&str], errno: Errno) -> Self {
        let mut this = self.file(path, texts);
        let failure =
            Failure { errno: Some(errno.raw_os_error()), kind: String::new(), text: String::new() };
        this.0.files.entry(path.to_owned()).or_default().push(Answer::Failed(failure));
        this
    }

    /// Adds a query whose replies are `replies` in turn.
    pub(super) fn reply(mut self, query: Query, replies: &[&[u8]]) -> Self {
        let answers = replies.iter().map(|reply| Answer::Reply(reply.to_vec()));
        self.0.queries.push((query, answers.collect()));
        self
    }

    /// Makes a query fail, whatever replies it had.
    pub(super) fn refusing(mut self, query: Query, errno: Errno) -> Self {
        self.0.queries.retain(|(q, _)| *q != query);
        let failure =
            Failure { errno: Some(errno.raw_os_error()), kind: String::new(), text: String::new() };
        self.0.queries.push((query, vec![Answer::Failed(failure)]));
        self
    }

    /// Adds a symbolic link to `target`, which can be read once.
    pub(super) fn leads(mut self, path: &str, target: &str) -> Self {
        let answers = vec![Answer::Reply(target.to_owned())];
        self.0.links.insert(path.to_owned(), answers);
        self
    }

    /// Adds a directory with `names`, which can be listed once.
    pub(super) fn list(mut self, path: &str, names: &[&str]) -> Self {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.0.lists.insert(path.to_owned(), vec![Answer::Reply(names)]);
        self
    }

    /// Makes the sources that read this machine.
    pub(super) fn sources(self) -> Sources {
        Sources::new(Arc::new(Replay::new(self.0)), LOOPBACK)
    }

    /// Reads `rows` rows, and returns the tables and gaps of `source`.
    pub(crate) fn watch(self, source: &str, rows: u64) -> (Vec<Table>, Vec<Gap>) {
        let mut sources = self.sources();
        (0..rows).for_each(|at| sources.observe(at));
        of(source, sources.take())
    }
}

/// Makes a directory tree with these files. A text that starts with `->` makes a symbolic link, and an empty text makes
/// a folder.
pub(super) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
            None if text.is_empty() => fs::create_dir_all(&path).unwrap(),
            None => fs::write(&path, text).unwrap(),
        }
    }
    folder
}

/// Keeps the tables and gaps of one source.
pub(super) fn of(source: &str, (tables, gaps): (Vec<Table>, Vec<Gap>)) -> (Vec<Table>, Vec<Gap>) {
    (
        tables.into_iter().filter(|t| t.source == source).collect(),
        gaps.into_iter().filter(|g| g.what.split('.').next() == Some(source)).collect(),
    )
}

/// Makes a netlink message of a reply.
pub(super) fn msg(kind: u16, body: &[u8]) -> Vec<u8> {
    message(kind, 0, 0, body)
}

/// Makes the reply with a route to any address, by the port with this index.
pub(super) fn route(port: u32) -> Vec<u8> {
    msg(24, &[vec![0; 12], attr(4, &port.to_ne_bytes())].concat())
}

/// Makes the link message of an Ethernet port that is up, with these additional attributes.
pub(super) fn link(index: u32, name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let fixed = [
        &[0, 0, 1, 0][..],
        &index.to_ne_bytes(),
        &0x1_0001u32.to_ne_bytes(),
        &[0; 4],
        &attr(3, name.as_bytes()),
    ];
    msg(16, &[fixed.concat(), attributes.concat()].concat())
}

/// Makes the message of a queueing discipline that has sent `bytes` bytes.
pub(super) fn qdisc(port: u32, kind: &str, handle: u32, parent: u32, bytes: u64) -> Vec<u8> {
    queueing(36, kind, [port, handle, parent], bytes, &[])
}

/// Makes the message of a queueing discipline (type 36) or class (type 40) that has sent `bytes` bytes: by port, handle
/// and parent, with its options.
pub(super) fn queueing(
    message: u16,
    kind: &str,
    [port, handle, parent]: [u32; 3],
    bytes: u64,
    options: &[u8],
) -> Vec<u8> {
    let fixed: Vec<u8> =
        [0, port, handle, parent, 1].into_iter().flat_map(u32::to_ne_bytes).collect();
    let basic = [&bytes.to_ne_bytes()[..], &[0; 8]].concat();
    let stats = [attr(1, &basic), attr(3, &[0; 20])].concat();
    let kind = attr(1, kind.as_bytes());
    msg(message, &[fixed, kind, attr(2, options), attr(7, &stats)].concat())
}

/// Encodes `struct tc_ratespec` with this rate in bytes per second.
fn rate_spec(bytes: u32) -> Vec<u8> {
    [&[0; 8][..], &bytes.to_ne_bytes()].concat()
}

/// Encodes the options of a token bucket filter with this rate in bytes per second.
pub(super) fn tbf(bytes: u32) -> Vec<u8> {
    attr(1, &[rate_spec(bytes), vec![0; 24]].concat())
}

/// Encodes the options of an htb class with this ceiling in bytes per second.
pub(super) fn htb(ceil: u32) -> Vec<u8> {
    attr(1, &[rate_spec(ceil / 2), rate_spec(ceil), vec![0; 20]].concat())
}
