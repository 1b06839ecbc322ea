//! A session's access to the time and to fresh ids.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use transcript::Id;
use uuid::{NoContext, Uuid};

/// The time and fresh names. Tests pass their own; nothing else in the engine reads a clock.
#[derive(Clone)]
pub struct World {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    name: Arc<dyn Fn(Timestamp) -> Id + Send + Sync>,
}

impl World {
    /// The real one.
    #[expect(clippy::disallowed_methods, reason = "this is where the clock is read and passed on from")]
    pub fn real() -> Self {
        Self::new(Timestamp::now, |now| {
            let seconds = now.as_second().try_into().unwrap_or_default();
            let nanos = now.subsec_nanosecond().try_into().unwrap_or_default();
            Id::from(Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos)).to_string())
        })
    }

    /// One of your own.
    pub fn new(
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        name: impl Fn(Timestamp) -> Id + Send + Sync + 'static,
    ) -> Self {
        Self { now: Arc::new(now), name: Arc::new(name) }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// A name nobody has yet.
    pub fn fresh_id(&self) -> Id {
        (self.name)(self.now())
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}
