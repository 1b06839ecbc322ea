//! Connections of a server: their limits, and which one gives way to a new one.
//!
//! Opening a connection costs a stranger nothing, so there are limits: for one network, and for all. At a limit a
//! connection that waits for a request gives way, the one that has waited longest, of the network that has most. One in
//! the middle of an answer stays, unless the answer has taken long. So whoever holds many silent connections loses
//! those, and others are served at once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Limit on connections: below the 1,024 files that a process may usually have open.
const MOST: usize = 800;
/// Limit on connections of one network: a balancer is one.
const MOST_OF_NETWORK: usize = 400;
/// Number of connections that give way if files run out.
const ROOM: usize = 32;
/// Time after which an answer may be cut to make room.
const LONG_ANSWER: Duration = Duration::from_secs(60);

/// All connections, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct ConnectionSlots(Mutex<(u64, BTreeMap<u64, Arc<ConnectionPlace>>)>);

/// A connection among the others.
#[derive(Debug)]
struct ConnectionPlace {
    network: IpAddr,
    cut: CancellationToken,
    /// Its state, and since when.
    doing: Mutex<(ConnectionState, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionState {
    /// Waiting for a request, or for the rest of its head.
    Waiting,
    /// Reading a body, working, or sending an answer.
    Answering,
}

/// The place of a connection; dropping it frees the place.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    place: Arc<ConnectionPlace>,
}

/// Marks a request as being answered, until dropped.
#[derive(Debug)]
pub(super) struct AnsweringGuard(Arc<ConnectionPlace>);

impl ConnectionSlots {
    /// A place for a connection from this network; none if all are taken by others that may not be cut.
    pub(super) fn take(self: &Arc<Self>, network: IpAddr) -> Option<ConnectionSlot> {
        let mut slots = self.0.lock();
        let of_network = slots.1.values().filter(|place| place.network == network).count();
        if of_network >= MOST_OF_NETWORK {
            cut_one(&mut slots.1, network)?;
        } else if slots.1.len() >= MOST {
            let most = largest(&slots.1)?;
            cut_one(&mut slots.1, most)?;
        }
        let number = slots.0;
        let doing = Mutex::new((ConnectionState::Waiting, Instant::now()));
        let place = Arc::new(ConnectionPlace { network, cut: CancellationToken::new(), doing });
        slots.0 += 1;
        slots.1.insert(number, place.clone());
        drop(slots);
        Some(ConnectionSlot { slots: self.clone(), number, place })
    }

    /// Cuts some waiting connections, because there are too many open files.
    pub(super) fn make_room(&self) {
        let mut slots = self.0.lock();
        for _ in 0..ROOM {
            let Some(most) = largest(&slots.1) else { return };
            let _ = cut_one(&mut slots.1, most); // none may wait, and then only time makes room
        }
    }

    /// Cuts all waiting connections.
    pub(super) fn cut_waiting(&self) {
        self.0
            .lock()
            .1
            .values()
            .filter(|place| place.doing().0 == ConnectionState::Waiting)
            .for_each(|place| place.cut.cancel());
    }

    /// Cuts all connections.
    pub(super) fn cut_all(&self) {
        self.0.lock().1.values().for_each(|place| place.cut.cancel());
    }
}

/// The network that has most.
fn largest(places: &BTreeMap<u64, Arc<ConnectionPlace>>) -> Option<IpAddr> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for place in places.values() {
        *counts.entry(place.network).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(network, _)| network)
}

/// Cuts one of a network: the one that has waited longest, or else one that has answered for too long.
fn cut_one(places: &mut BTreeMap<u64, Arc<ConnectionPlace>>, network: IpAddr) -> Option<()> {
    let may_go = |place: &Arc<ConnectionPlace>| {
        let (doing, since) = place.doing();
        (doing == ConnectionState::Waiting || since.elapsed() > LONG_ANSWER).then_some((doing, since))
    };
    let of_network = places.iter().filter(|(_, place)| place.network == network);
    let candidates = of_network.filter_map(|(number, place)| Some((may_go(place)?, *number)));
    let (_, number) = candidates.min()?;
    places.remove(&number)?.cut.cancel();
    Some(())
}

impl ConnectionPlace {
    fn doing(&self) -> (ConnectionState, Instant) {
        *self.doing.lock()
    }

    fn does(&self, doing: ConnectionState) {
        *self.doing.lock() = (doing, Instant::now());
    }
}

impl ConnectionSlot {
    /// Cancelled when it has to give way.
    pub(super) fn cut(&self) -> CancellationToken {
        self.place.cut.clone()
    }

    /// Marks it as answering until the guard is dropped.
    pub(super) fn answering(&self) -> AnsweringGuard {
        self.place.does(ConnectionState::Answering);
        AnsweringGuard(self.place.clone())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.0.lock().1.remove(&self.number);
    }
}

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.does(ConnectionState::Waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    /// TEAM-8: at a bound the connection gives way that has waited longest, of the network that has most; none does that is
    /// being answered, until that takes long.
    #[tokio::test(start_paused = true)]
    async fn who_waits_longest_gives_way() {
        let slots = Arc::new(ConnectionSlots::default());
        let first = slots.take(network(1)).unwrap();
        let many: Vec<ConnectionSlot> = (0..MOST_OF_NETWORK).filter_map(|_| slots.take(network(2))).collect();
        assert_eq!(many.len(), MOST_OF_NETWORK);
        let busy = many[0].answering();
        tokio::time::advance(Duration::from_secs(1)).await;
        let more = slots.take(network(2)).unwrap();
        assert!(many[1].cut().is_cancelled() && !many[0].cut().is_cancelled() && !first.cut().is_cancelled());
        let others: Vec<ConnectionSlot> = (0..500).filter_map(|number| slots.take(network(1_000 + number))).collect();
        let cut = |slots: &[ConnectionSlot]| slots.iter().filter(|slot| slot.cut().is_cancelled()).count();
        let too_many = 1 + MOST_OF_NETWORK + 500 - MOST;
        assert_eq!((others.len(), cut(&others), cut(&many)), (500, 0, 1 + too_many));
        assert!(!many[0].cut().is_cancelled() && !first.cut().is_cancelled());
        drop((busy, more));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_cut_for_another_only_when_it_takes_long() {
        let slots = Arc::new(ConnectionSlots::default());
        let many: Vec<ConnectionSlot> = (0..MOST_OF_NETWORK).filter_map(|_| slots.take(network(1))).collect();
        let answers: Vec<AnsweringGuard> = many.iter().map(ConnectionSlot::answering).collect();
        assert!(slots.take(network(1)).is_none(), "all are in use");
        assert!(slots.take(network(2)).is_some(), "by one network");
        tokio::time::advance(LONG_ANSWER + Duration::from_secs(1)).await;
        assert!(slots.take(network(1)).is_some());
        assert_eq!(many.iter().filter(|slot| slot.cut().is_cancelled()).count(), 1);
        drop((answers, many));
        assert_eq!(slots.0.lock().1.len(), 0);
    }
}
