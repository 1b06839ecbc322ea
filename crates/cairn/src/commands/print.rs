//! `cairn -p`: turns without a terminal. One for the prompt, or one for each message that comes on stdin.
//!
//! Whatever ends the program before its work is done ends the turn first: see [`crate::shutdown`].

mod control_requests;
mod hosted_servers;
mod input_lines;
mod sdk_host;
mod teammate;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use engine::Agent;
use engine::agent::AttachmentSource;
use engine::event::Listener;
use engine::run::{RunEnd, TurnEnd};
use engine::teammates::Teammates;
use settings::BypassPermission;
use settings::permission::{Approver, NoApprover};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::Block;

use crate::args::{InputFormat, OutputFormat, RunArgs};
use crate::exit::Code;
use crate::out;
use crate::output::{Output, TurnFacts};
use crate::program_paths::ProgramPaths;
use crate::server_host::ServerHost;
use crate::setup::{self, PreparedSession};
use crate::shutdown::{ShutdownCause, ShutdownSignals};
use crate::team_memory::TeamMemory;
use control_requests::InputListener;
use input_lines::InputLine;
use sdk_host::SdkHost;

/// Runs the turns and prints what they say.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let args = &RunArgs { print: true, ..args.clone() }; // a pipe alone means it too
    let place = ProgramPaths::from_env().map(|place| place.of_run(args.setting_sources, &args.plugin_dir));
    let directory = place.as_ref().map_or(Path::new(""), |place| &place.directory);
    let output = Arc::new(Output::new(args, directory));
    let ran = match (place, args.input_format) {
        (Err(error), _) => Err(error),
        (Ok(place), _) if args.agent_name.is_some() => teammate::run(args, &place, output.clone()).await,
        (Ok(place), InputFormat::Text) => once(args, &place, output.clone()).await,
        (Ok(place), InputFormat::StreamJson) => each_line(args, &place, output.clone()).await,
    };
    if let Err(error) = &ran
        && args.output_format != OutputFormat::Text
    {
        // A program that reads results is told of trouble in one, too.
        output.trouble(error);
    }
    ran
}

/// A session that nobody watches.
struct HeadlessSession {
    ready: PreparedSession,
    sharing: Option<TeamMemory>,
    output: Arc<Output>,
    closing: ShutdownSignals,
}

impl HeadlessSession {
    /// The code instead, where the program is to end before it has begun.
    async fn open(
        args: &RunArgs,
        place: &ProgramPaths,
        output: Arc<Output>,
        approver: Arc<dyn Approver>,
    ) -> anyhow::Result<Result<Self, Code>> {
        let mut closing = ShutdownSignals::watch_all()?;
        let listener: Listener = {
            let output = output.clone();
            Arc::new(move |event| output.event(&event))
        };
        let mut ready = tokio::select! {
            ready = setup::agent(args, place, approver, listener.clone()) => ready?,
            closed = closing.wanted() => return Ok(Err(closed.code())),
        };
        if let Some(dreaming) = ready.dreaming.take().filter(|_| args.dream) {
            ready.agent = ready.agent.with_dreams(dreaming);
        }
        for warning in &ready.warnings {
            out::warn(warning);
        }
        if let Some(subagents) = ready.agent.agents() {
            output.knows(&subagents.registry());
        }
        if let Some(servers) = ready.agent.servers() {
            output.knows_servers(servers.clone());
        }
        if let Some(skills) = ready.agent.skills() {
            output.knows_skills(&skills.all());
            output.knows_plugins(&ready.plugins);
        }
        let sharing = TeamMemory::start(place, &ready, listener);
        Ok(Ok(Self { ready, sharing, output, closing }))
    }
}

/// One turn for the prompt and what comes from a pipe.
async fn once(args: &RunArgs, place: &ProgramPaths, output: Arc<Output>) -> anyhow::Result<Code> {
    anyhow::ensure!(
        args.resume.as_deref() != Some(""),
        "which session? --resume with -p needs an id; `cairn session list` shows them"
    );
    let said = prompt(args).await?;
    let mut session = match HeadlessSession::open(args, place, output, Arc::new(NoApprover)).await? {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    // What a pipe brings may be anybody's: the files that it names are not attached.
    let named = AttachmentSource::Text(args.prompt.clone().unwrap_or_default());
    session.ready.agent.attach_files_of(named);
    let cancel = CancellationToken::new();
    let started = tokio::time::Instant::now();
    let (mut agent, prices) = (session.ready.agent, session.ready.prices);
    let (teammates, ledger) = (session.ready.mailing.teammates.clone(), agent.ledger().clone());
    let work = async {
        let mut turn = agent.turn(said, &cancel).await;
        // Teammates end with their lead: those who still work are waited for, and heard.
        while matches!(turn.end, TurnEnd::Ended(RunEnd::Answered)) && !agent.mail().busy().is_empty() {
            tokio::select! {
                () = agent.mail().rings() => {}
                () = cancel.cancelled() => break,
            }
            let next = agent.turn(Vec::new(), &cancel).await;
            turn.usage += next.usage;
            turn.rounds += next.rounds;
            turn.end = next.end;
            if next.rounds > 0 {
                turn.text = next.text;
            }
        }
        if let Some(teammates) = &teammates {
            tokio::select! {
                () = teammates.part() => {}
                () = cancel.cancelled() => {}
            }
        }
        if cancel.is_cancelled() && matches!(turn.end, TurnEnd::Ended(RunEnd::Answered)) {
            turn.end = TurnEnd::Cancelled; // it had an answer, and waited for more
        }
        if agent.has_to_learn() {
            return (turn, Some(agent));
        }
        agent.close().await;
        (turn, None)
    };
    Ok(match session.closing.or_done(&cancel, work).await {
        Ok(((turn, left), closed)) => {
            let teammates = teammates.as_ref().map(Teammates::spent).unwrap_or_default();
            let facts = TurnFacts { prices: &prices, took: started.elapsed(), closed, used: ledger.spent(), teammates };
            let code = session.output.result(&turn, &facts);
            if let Some(agent) = left {
                learn(agent, &mut session.closing, closed).await;
            }
            part(session.sharing, &mut session.closing).await;
            code
        }
        Err(closed) => closed.code(),
    })
}

/// Sends what waits for others, after the answer: nobody waits for it who does not want to.
async fn part(sharing: Option<TeamMemory>, closing: &mut ShutdownSignals) {
    if let Some(sharing) = sharing {
        tokio::select! {
            () = sharing.close() => {}
            _ = closing.wanted() => {}
        }
    }
}

/// Writes down what was learnt, after the answer; what ends the program ends this too.
async fn learn(mut agent: Agent, closing: &mut ShutdownSignals, closed: Option<ShutdownCause>) {
    let stop = CancellationToken::new();
    if closed.is_some() {
        stop.cancel();
    }
    let work = async {
        // Here a dream was asked for: it is waited for to its end.
        let dreamt = agent.finish_dreams(learning::dream::run::PATIENCE, &stop).await;
        if let Err(error) = dreamt.and(agent.finish_learning(&stop).await) {
            out::warn(&error.to_string());
        }
        agent.close().await;
    };
    let _ = closing.or_done(&stop, work).await; // told twice, it ends where it stands
}

/// The prompt, with what comes from a pipe before it.
async fn prompt(args: &RunArgs) -> anyhow::Result<Vec<Block>> {
    let prompt = args.prompt.as_deref().map(str::trim).filter(|prompt| !prompt.is_empty());
    let piped = input_lines::piped(prompt.is_some()).await?;
    let texts: Vec<&str> =
        [piped.trim(), prompt.unwrap_or_default()].into_iter().filter(|text| !text.is_empty()).collect();
    anyhow::ensure!(!texts.is_empty(), "nothing to ask: give a prompt, as in  cairn -p 'what does this project do?'");
    Ok(vec![Block::text(texts.join("\n\n"))])
}

/// A turn for each message that comes on stdin, one after the other. The end of the input ends no turn: what has come is
/// done first. A line that cannot be read is the end as well, and is told of when that is done.
async fn each_line(args: &RunArgs, place: &ProgramPaths, output: Arc<Output>) -> anyhow::Result<Code> {
    anyhow::ensure!(
        args.output_format == OutputFormat::StreamJson,
        "--input-format stream-json needs --output-format stream-json"
    );
    let driving = Arc::new(SdkHost::new(output.clone()));
    let approver: Arc<dyn Approver> = match &args.permission_prompt_tool {
        Some(_) => driving.clone(),
        None => Arc::new(NoApprover),
    };
    let mut lines = input_lines::lines();
    // The program may say at once which servers it has: their tools belong to the session from its start.
    let mut first = Some(lines.recv().await);
    let servers = match &first {
        Some(Some(Ok(line))) => line.hosted_servers(),
        _ => Vec::new(),
    };
    let args = &RunArgs { server_host: ServerHost::of(driving.clone(), servers), ..args.clone() };
    let opened = HeadlessSession::open(args, place, output, approver).await?;
    let HeadlessSession { ready, sharing, output, mut closing } = match opened {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    let mut agent = ready.agent;
    let mode = agent.mode().clone();
    let subagents = agent.agents().cloned();
    let skips = args.allow_dangerously_skip_permissions || mode.get() == Mode::BypassPermissions;
    let may_skip = skips && ready.bypass != BypassPermission::Disabled;
    let jobs = agent.scope().jobs().clone();
    let teammates = ready.mailing.teammates.as_ref();
    let agents = subagents.as_ref();
    let lets_hooks = agent.hooks().let_a_programs_run();
    let hears = InputListener {
        mode: &mode,
        may_skip,
        output: &output,
        driving: &driving,
        agents,
        teammates,
        jobs,
        lets_hooks,
        servers: agent.servers().map(|servers| servers.all()).unwrap_or_default(),
    };
    let mut queue = VecDeque::from_iter(args.prompt.iter().map(|prompt| vec![Block::text(prompt)]));
    let (mut turns, mut code, mut gone, mut open, mut unread) = (0, Code::Success, None, true, None);
    loop {
        let Some(said) = queue.pop_front() else {
            // Teammates end with their lead: those who still work are waited for.
            if !open && agent.mail().busy().is_empty() {
                break;
            }
            tokio::select! {
                line = next_line(&mut first, &mut lines), if open => match line {
                    Some(Ok(line)) => {
                        let hooks = hears.take(line, &mut queue, None);
                        if !hooks.is_empty() {
                            agent.call_back(hooks, driving.clone());
                        }
                    }
                    end => {
                        open = false;
                        unread = end.and_then(Result::err);
                        driving.end();
                    }
                },
                // A turn without words is for what others have written.
                () = agent.mail().arrives() => queue.push_back(Vec::new()),
                closed = closing.wanted() => {
                    (code, gone) = (closed.code(), Some(closed));
                    break;
                }
            }
            continue;
        };
        if turns > 0 {
            output.again();
        }
        turns += 1;
        let (cancel, started) = (CancellationToken::new(), tokio::time::Instant::now());
        let mut closed: Option<ShutdownCause> = None;
        let turn = {
            let work = agent.turn(said, &cancel);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    turn = &mut work => break turn,
                    line = next_line(&mut first, &mut lines), if open => match line {
                        Some(Ok(line)) => drop(hears.take(line, &mut queue, Some(&cancel))),
                        end => {
                            open = false;
                            unread = end.and_then(Result::err);
                            driving.end();
                        }
                    },
                    why = closing.wanted() => match closed.replace(why) {
                        None => cancel.cancel(),
                        Some(_) => return Ok(why.code()),
                    },
                }
            }
        };
        let teammates = teammates.map(Teammates::spent).unwrap_or_default();
        let (prices, took, used) = (&ready.prices, started.elapsed(), agent.ledger().spent());
        code = output.result(&turn, &TurnFacts { prices, took, closed, used, teammates });
        if closed.is_some() || code == Code::Unread {
            gone = closed.or(Some(ShutdownCause::Unread));
            break;
        }
    }
    learn(agent, &mut closing, gone).await;
    part(sharing, &mut closing).await;
    unread.map_or(Ok(code), Err)
}

/// The next line of the input: the one that was read before the session began, then the others.
async fn next_line(
    first: &mut Option<Option<anyhow::Result<InputLine>>>,
    lines: &mut UnboundedReceiver<anyhow::Result<InputLine>>,
) -> Option<anyhow::Result<InputLine>> {
    match first.take() {
        Some(line) => line,
        None => lines.recv().await,
    }
}
