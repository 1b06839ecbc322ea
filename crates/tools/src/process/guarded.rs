//! A shell below a guard: we send the command and the order to end, the guard does the rest and reports.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use process_wrap::tokio::ChildWrapper;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{EndedShell, LAST_WORDS, Pipe, ShellEnd, ShellTrouble, Stream, group};
use crate::guard_protocol::{END, GuardOrder, GuardReport};

/// Time for a guard to end everything, or to show that it is still working: longer than its own two waits together.
const PATIENCE: Duration = Duration::from_secs(5);

/// A started guard. Dropping it closes the socket, and that ends everything below it.
pub(super) struct GuardProcess {
    child: Box<dyn ChildWrapper>,
    socket: BufReader<UnixStream>,
    order: GuardOrder,
}

/// A socket for a guard, and our end of it.
pub(super) fn socket() -> io::Result<(OwnedFd, UnixStream)> {
    let (ours, its) = UnixStream::pair()?;
    let its = its.into_std()?;
    its.set_nonblocking(false)?;
    Ok((its.into(), ours))
}

impl GuardProcess {
    pub(super) fn new(child: Box<dyn ChildWrapper>, socket: UnixStream, order: GuardOrder) -> Self {
        Self { child, socket: BufReader::new(socket), order }
    }

    /// Reads its report. It may scan many directories before, and sends signs of life meanwhile.
    async fn last_words(&mut self, report: &mut Vec<u8>) -> io::Result<()> {
        while report.last() != Some(&b'\n') {
            let Ok(read) = timeout(PATIENCE, self.socket.fill_buf()).await else { break };
            let bytes = read?;
            if bytes.is_empty() {
                break;
            }
            report.extend(bytes);
            let length = bytes.len();
            self.socket.consume(length);
        }
        Ok(())
    }

    /// Watches it until nothing is left below it.
    pub(super) async fn watch<P: FnMut(Stream, &[u8])>(
        mut self,
        mut output: Pipe<P>,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<EndedShell, ShellTrouble> {
        let mut line = serde_json::to_vec(&self.order).map_err(io::Error::other)?;
        line.push(b'\n');
        self.socket.write_all(&line).await?;
        let mut report = Vec::new();
        let stopped = tokio::select! {
            read = self.socket.read_until(b'\n', &mut report) => { read?; None }
            () = sleep(limit) => Some(ShellEnd::TimedOut),
            () = cancel.cancelled() => Some(ShellEnd::Cancelled),
            never = output.drain_on() => match never {},
        };
        if stopped.is_some() {
            let _ = self.socket.write_all(&[END]).await;
            tokio::select! {
                read = self.last_words(&mut report) => read?,
                never = output.drain_on() => match never {},
            }
        }
        let _ = timeout(LAST_WORDS, output.drain()).await;
        // It has nothing left to do, unless it hangs, and then nobody can help it.
        drop(self.socket);
        let leader = self.child.id();
        if timeout(PATIENCE, self.child.inner_mut().wait()).await.is_err() {
            self.child.start_kill()?;
        }
        let Ok(report) = serde_json::from_slice(&report) else {
            // It was in nobody's hands from then on, unless it has left its session on purpose.
            if let Some(leader) = leader {
                let _ = timeout(PATIENCE, group::kill_session(leader)).await;
            }
            return Err(io::Error::other("its guard was killed").into());
        };
        match report {
            GuardReport::NotStarted { error, code } => Err(ShellTrouble::NotStarted(
                code.map_or_else(|| io::Error::other(error), io::Error::from_raw_os_error),
            )),
            GuardReport::Ended { status, others, made } => {
                let end = stopped.unwrap_or(ShellEnd::Exited(ExitStatus::from_raw(status)));
                Ok(EndedShell { end, stopped_others: others && stopped.is_none(), made })
            }
        }
    }
}
