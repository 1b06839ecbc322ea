//! A main model that replies when the small one has, so that what was chosen joins the same turn each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::provider::anthropic::Anthropic;
use engine::provider::{self, Event, Model};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use transcript::Request;

/// So often others get their turn before a small model counts as not asked.
const LOOKS: usize = 500;

pub struct InTurn {
    client: Anthropic,
    small: Option<String>,
    /// How often the small model was asked and has not answered.
    open: Arc<AtomicUsize>,
}

/// A question to the small model, until it is over.
struct Asked(Arc<AtomicUsize>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InTurn {
    pub fn new(client: Anthropic, small: Option<&str>) -> Self {
        Self { client, small: small.map(str::to_owned), open: Arc::default() }
    }
}

impl Model for InTurn {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let (is_small, open) = (Some(&request.prologue.model) == self.small.as_ref(), self.open.clone());
        let events = self.client.stream(request);
        if is_small {
            open.fetch_add(1, Ordering::Relaxed);
            let asked = Asked(open); // it goes when nobody listens any more
            return events.inspect(move |_| _ = &asked).boxed();
        }
        let looks = if self.small.is_some() { LOOKS } else { 0 };
        let after = async move {
            for look in 0.. {
                if look >= looks && open.load(Ordering::Relaxed) == 0 {
                    break;
                }
                tokio::task::yield_now().await;
            }
            events
        };
        stream::once(after).flatten().boxed()
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        self.client.count_tokens(request)
    }
}
