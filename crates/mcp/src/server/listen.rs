//! Changes that a server of the current revision tells of on a stream of its own.
//!
//! Older servers tell of them unasked. A server whose stream cannot be had still answers.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ServerCapabilities, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::time::{Instant, sleep};

use super::shared::{List, ServerCore};

/// Attempts at a stream that always ends at once.
const ATTEMPTS: u32 = 5;
/// The wait before the second attempt; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// A stream that lived so long was a good one, however it ended: many servers end all of them after a minute.
const GOOD: Duration = Duration::from_secs(10);

/// Marks lists as stale for as long as the server tells of changes. Never ends.
pub(super) async fn listen(shared: &Arc<ServerCore>, peer: &Peer<RoleClient>) {
    let wanted = match peer.peer_info() {
        Some(info) if !info.protocol_version.has_initialize() => told_lists(&info.capabilities),
        _ => Vec::new(),
    };
    let (mut failed, mut wait) = (0, FIRST_WAIT);
    while !wanted.is_empty() && failed < ATTEMPTS {
        let begun = Instant::now();
        match peer.listen(filter(&wanted)).await {
            Ok(subscription) => {
                follow(shared, subscription).await;
                // What changed until the next stream begins is not told.
                wanted.iter().for_each(|list| shared.stale.mark(*list));
            }
            // It said no.
            Err(ServiceError::McpError(_)) => break,
            Err(_) => {}
        }
        match begun.elapsed() >= GOOD {
            true => (failed, wait) = (0, FIRST_WAIT),
            false => failed += 1,
        }
        sleep(wait).await;
        wait *= 2;
    }
    pending::<()>().await;
}

async fn follow(shared: &ServerCore, mut subscription: Subscription) {
    while let Ok(Some(notification)) = subscription.next().await {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => shared.stale.mark(List::Tools),
            ServerNotification::PromptListChangedNotification(_) => shared.stale.mark(List::Prompts),
            ServerNotification::ResourceListChangedNotification(_) => shared.stale.mark(List::Resources),
            _ => {}
        }
    }
}

/// Lists whose changes the server says it tells of.
fn told_lists(capabilities: &ServerCapabilities) -> Vec<List> {
    let tells = |list: &List| match list {
        List::Tools => capabilities.tools.as_ref().and_then(|tools| tools.list_changed),
        List::Resources => capabilities.resources.as_ref().and_then(|resources| resources.list_changed),
        List::Prompts => capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed),
    };
    List::ALL.into_iter().filter(|list| tells(list) == Some(true)).collect()
}

fn filter(lists: &[List]) -> SubscriptionFilter {
    let wants = |list| lists.contains(&list).then_some(true);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = wants(List::Tools);
    filter.resources_list_changed = wants(List::Resources);
    filter.prompts_list_changed = wants(List::Prompts);
    filter
}
