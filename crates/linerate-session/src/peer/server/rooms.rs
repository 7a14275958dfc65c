//! Open sessions: their secrets, the rooms in which their data
//! connections wait, and which sessions load the host at the same time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_record::wire::limits::{PlanLimits, Taken};
use linerate_record::wire::message::Secret;
use rustix::event::{EventfdFlags, eventfd};

use crate::peer::handshake::random;

/// Public identifier of a session.
pub(super) type SessionId = [u8; 16];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in a session ends only that session; the tables are consistent between calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open session.
struct Open {
    room: Arc<Room>,
    /// Address group of the session's client.
    from: IpAddr,
    /// Resources that the session's sets use.
    taken: Taken,
}

/// Why a session was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The server has reached its limit of sessions.
    All,
    /// The address group has reached its limit of sessions.
    Address,
}

/// Returns how many of `limit` sessions one address group may have. If
/// the limit is at least four, about a quarter is left to other groups.
const fn of_one(limit: usize) -> usize {
    limit - limit / 4
}

/// All open sessions.
#[derive(Default)]
pub(super) struct Sessions {
    table: Mutex<HashMap<SessionId, Open>>,
    // For each session with a running step: the other sessions that had a running step at any time during it.
    loading: Mutex<HashMap<SessionId, HashSet<SessionId>>>,
}

impl Sessions {
    /// Opens a session for a client of an address group, unless there are `limit` sessions already.
    pub(super) fn open(
        self: &Arc<Self>,
        limit: usize,
        from: IpAddr,
    ) -> io::Result<Result<Membership, Full>> {
        let room = Arc::new(Room::new()?);
        let id = random();
        let mut table = lock(&self.table);
        if table.len() >= limit {
            return Ok(Err(Full::All));
        }
        if table.values().filter(|open| open.from == from).count() >= of_one(limit) {
            return Ok(Err(Full::Address));
        }
        let open = Open { room: Arc::clone(&room), from, taken: Taken::default() };
        table.insert(id, open);
        Ok(Ok(Membership { sessions: Arc::clone(self), id, from, room }))
    }

    pub(super) fn room(&self, id: &SessionId) -> Option<Arc<Room>> {
        lock(&self.table).get(id).map(|open| Arc::clone(&open.room))
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.table).len()
    }
}

/// A session's entry in the table of open sessions. When this value is dropped, also by a panic, the entry is removed.
pub(super) struct Membership {
    sessions: Arc<Sessions>,
    id: SessionId,
    from: IpAddr,
    room: Arc<Room>,
}

impl Membership {
    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    pub(super) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// Sets the resources that this session uses to `taken`, unless all sessions
    /// together, or those of its address group, would then use too much. In that case
    /// nothing is changed, and the error names the limit that would be exceeded.
    pub(super) fn take(&self, taken: Taken, limits: &PlanLimits) -> Result<(), String> {
        let mut table = lock(&self.sessions.table);
        let others = table.iter().filter(|(id, _)| **id != self.id);
        let (mut all, mut of_address) = (taken, taken);
        for (_, open) in others {
            all = all.and(open.taken);
            if open.from == self.from {
                of_address = of_address.and(open.taken);
            }
        }
        limits.together(all, of_address)?;
        if let Some(own) = table.get_mut(&self.id) {
            own.taken = taken;
        }
        Ok(())
    }

    /// Marks a step of this session as running, until the returned value is dropped.
    pub(super) fn load(&self) -> RunningStep {
        let mut loading = lock(&self.sessions.loading);
        let others: HashSet<SessionId> = loading.keys().copied().collect();
        for seen in loading.values_mut() {
            seen.insert(self.id);
        }
        loading.insert(self.id, others);
        RunningStep { sessions: Arc::clone(&self.sessions), id: self.id }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        lock(&self.sessions.table).remove(&self.id);
    }
}

/// A running step. When this value is dropped, the step is marked as over.
pub(super) struct RunningStep {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl RunningStep {
    /// Returns the number of other sessions that have had a running step at any time during this step.
    pub(super) fn others(&self) -> u32 {
        let loading = lock(&self.sessions.loading);
        loading.get(&self.id).map_or(0, |o| o.len() as u32)
    }
}

impl Drop for RunningStep {
    fn drop(&mut self) {
        lock(&self.sessions.loading).remove(&self.id);
    }
}

/// Data connections of one session. Each waits here until the session's thread takes it.
pub(super) struct Room {
    secret: Secret,
    // Expected data connections, by set and stream; `None` until the connection has arrived.
    seats: Mutex<HashMap<(u32, u32), Option<TcpStream>>>,
    arrival: OwnedFd,
}

impl Room {
    fn new() -> io::Result<Self> {
        Ok(Self {
            secret: Secret(random()),
            seats: Mutex::default(),
            arrival: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Adds an expected connection for each stream of a set.
    pub(super) fn expect(&self, set: u32, streams: u32) {
        let seats = (0..streams).map(|stream| ((set, stream), None));
        lock(&self.seats).extend(seats);
    }

    /// Removes the expected connections of a set, and closes those that have arrived.
    pub(super) fn forget(&self, set: u32) {
        lock(&self.seats).retain(|(s, _), _| *s != set);
    }

    /// Returns whether a connection for this stream is expected and has not arrived.
    pub(super) fn expects(&self, set: u32, stream: u32) -> bool {
        matches!(lock(&self.seats).get(&(set, stream)), Some(None))
    }

    /// Stores an authenticated connection, if it is expected and has not arrived before.
    pub(super) fn admit(&self, set: u32, stream: u32, connection: TcpStream) {
        if let Some(seat @ None) = lock(&self.seats).get_mut(&(set, stream)) {
            *seat = Some(connection);
            // The write fails only if the counter is full, and then the descriptor is already readable.
            let _ = rustix::io::write(&self.arrival, &1_u64.to_ne_bytes());
        }
    }

    /// Takes the connection of a stream, if it has arrived.
    pub(super) fn fetch(&self, set: u32, stream: u32) -> Option<TcpStream> {
        let mut seats = lock(&self.seats);
        seats.get_mut(&(set, stream))?.take().inspect(|_| {
            seats.remove(&(set, stream));
        })
    }

    /// Clears the signal that a connection has arrived. This must
    /// happen before the check for arrivals, so that none is missed.
    pub(super) fn clear(&self) {
        // The read fails only if there was no arrival.
        let _ = rustix::io::read(&self.arrival, &mut [0; 8]);
    }
}

impl AsFd for Room {
    /// Returns the event descriptor, which is readable once a connection has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrival.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn connection() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    #[test]
    fn sessions_are_limited_and_leave_on_drop() {
        let sessions = Arc::new(Sessions::default());
        let first = sessions.open(1, HOME).unwrap().unwrap();
        assert_eq!(sessions.open(1, HOME).unwrap().err(), Some(Full::All));
        assert!(sessions.room(&first.id()).is_some());
        drop(first);
        assert_eq!(sessions.count(), 0);
        assert!(sessions.open(1, HOME).unwrap().is_ok());
    }

    #[test]
    fn one_address_leaves_a_quarter_of_the_sessions_to_others() {
        let open = |sessions: &Arc<Sessions>, limit, from| sessions.open(limit, from).unwrap();
        for (limit, of_one) in [(3, 3), (4, 3), (32, 24)] {
            let sessions = Arc::new(Sessions::default());
            let hers: Vec<_> =
                (0..of_one).map(|_| open(&sessions, limit, HOME).ok().unwrap()).collect();
            let full = open(&sessions, limit, HOME).err();
            let others = IpAddr::from([192, 0, 2, 1]);
            if of_one == limit {
                assert_eq!(full, Some(Full::All));
                continue;
            }
            assert_eq!(full, Some(Full::Address));
            assert!(open(&sessions, limit, others).is_ok());
            drop(hers);
            assert!(open(&sessions, limit, HOME).is_ok());
        }
    }

    #[test]
    fn what_sessions_take_is_bounded_by_address_and_given_back() {
        let (sessions, limits) = (Arc::new(Sessions::default()), PlanLimits::default());
        let open = |from| sessions.open(9, from).unwrap().ok().unwrap();
        let streams = |streams| Taken { streams, ..Taken::default() };
        let (a, b, other) = (open(HOME), open(HOME), open(IpAddr::from([192, 0, 2, 1])));
        assert!(a.take(streams(40_000), &limits).is_ok());
        assert!(b.take(streams(20_001), &limits).is_err());
        assert!(b.take(streams(20_000), &limits).is_ok());
        assert!(other.take(streams(20_001), &limits).is_err());
        assert!(other.take(streams(20_000), &limits).is_ok());
        assert!(a.take(streams(10_000), &limits).is_ok());
        assert!(b.take(streams(50_000), &limits).is_ok());
        drop(b);
        assert!(a.take(streams(60_000), &limits).is_ok());
    }

    #[test]
    fn steps_that_overlap_at_any_moment_are_counted_by_both() {
        let sessions = Arc::new(Sessions::default());
        let [a, b, c] = [(); 3].map(|()| sessions.open(9, HOME).unwrap().unwrap());
        let load_a = a.load();
        {
            let load_b = b.load();
            assert_eq!(load_b.others(), 1);
        }
        {
            let load_b = b.load();
            assert_eq!((load_a.others(), load_b.others()), (1, 1));
        }
        let load_c = c.load();
        assert_eq!((load_a.others(), load_c.others()), (2, 1));
        drop(load_a);
        drop(load_c);
        assert_eq!(a.load().others(), 0);
    }

    #[test]
    fn a_seat_takes_one_connection_once() {
        let room = Room::new().unwrap();
        assert!(!room.expects(0, 0));
        room.admit(0, 0, connection());
        assert!(room.fetch(0, 0).is_none());
        room.expect(0, 2);
        assert!(room.expects(0, 1) && !room.expects(0, 2));
        room.admit(0, 1, connection());
        assert!(!room.expects(0, 1));
        assert!(room.fetch(0, 1).is_some());
        assert!(room.fetch(0, 1).is_none() && !room.expects(0, 1));
        room.forget(0);
        assert!(!room.expects(0, 0));
    }
}
