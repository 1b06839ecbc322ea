//! A storm over the real code: one seed is one world in which everything goes wrong, and four laws hold in it all the same.
//!
//! 1. Nothing acknowledged is lost.
//! 2. Nothing older replaces something newer of somebody else.
//! 3. Every call and every agent is answered once.
//! 4. What is told of the cost is what was billed, for every request whose end was read.
//!
//! There is nothing here but tests (`tests/it`). `team` is a team of three: the real mirrors and clients, the real server on
//! SQLite. `session` is a conversation with agents, mail between them, learning and a ledger, against a model in the same
//! process. `year` is a year of sessions, dreams and memories that the user changes by hand, with a model that believes all it
//! reads; its laws are what the memories say at the end. Below them lies `disk`, a [`files::faults`](../files/faults/index.html) disk: full now and then, with folders that
//! cannot be listed, and gone for a process that is killed before any effect on it; after a power cut, what was not synced
//! is as it was before, or torn. Between the members and the server lies a network that cuts, stalls, doubles and delivers
//! late. The clock is tokio's, paused; chance follows from the seed. There is no sleep, no socket and no process.
//!
//! `CAIRN_TEST_SEED=N` runs one seed and tells everything that happens in it. 100 seeds of each are run in `./test`, 5,000 of
//! each with `CAIRN_TEST_FULL`: a world takes a tenth of a second of one processor. Of years a few are run, with 40 sessions
//! each, and in full 30 with 300.
//!
//! # What it finds
//!
//! Each protection below was taken away once, and the first seeds to break a law were noted, of two that ran at a time:
//!
//! | taken away | seeds | what was seen |
//! |---|---|---|
//! | what is being taken is written down first | 100, 379 | an old text over a newer one |
//! | the server's history is asked about unknown texts | 1, 5 | a last copy lost; an old text over a newer one |
//! | a folder that cannot be listed is named | 1, 8 | deletions that nobody made |
//! | what was merged is compared with the server's sum | 7, 10 | runs that never come to an end after a restore |
//! | a headless turn waits for what is unheard | 10, 17 | a turn that ends before all agents were heard |
//! | agents that were lost are told of | 1, 12 | agents whose end is never told |
//! | replies that break off are paid for | 18, 23 | a ledger that has less than was billed |
//! | mail between agents is on the disk before it is acknowledged | 3, 6 | messages that were sent and never arrive |
//!
//! What the years showed before each of these was there, within fifty seeds of 40 sessions (a seed draws the same schedule, and
//! threads may still race in it):
//!
//! | protection | what was seen without it |
//! |---|---|
//! | a session is in the queue before its first turn | a reading that is never learnt |
//! | a memory that was removed by hand is buried | memories that come back |
//! | a removal by hand is told by the index | readings that are taken for removed |
//! | what was left goes over nothing newer | an edit by hand that an older turn replaced |
//! | a turn is as new as its newest words | a correction that is refused as old |
//!
//! # What it does not do
//!
//! A sync that fails says so after everything has reached the disk. In a session it never fails: a line whose sync failed may
//! stand in the log all the same, and what it says may be entered once more. A member whose state is an old copy cannot tell a
//! file that was deleted for all from a new one, and may bring it back. The server's own disk is SQLite's affair.
