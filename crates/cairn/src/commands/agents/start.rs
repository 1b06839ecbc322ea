//! `cairn agents start`: a teammate whose lead is whoever runs this command.
//!
//! What it writes to its lead is printed. What it has to ask about is asked in this terminal; where there is none it is
//! denied. It runs below a guard, and ends with this command however that ends.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use engine::Event;
use engine::teammates::{Lead, TeammateRequest, Teammates};
use futures_util::future::BoxFuture;
use mail::mailbox::ControlMessage;
use mail::task_file::TaskBoard;
use mail::{Mail, Messenger, Team, in_words, name_of};
use session::World;
use settings::agent_definitions::{Isolation, Registry};
use settings::permission::{Approver, NoApprover, PermissionAnswer, Question, Respondent};
use tools::Jobs;
use tools::permission::{Mode, git_runs_programs};

use crate::args::modes;
use crate::exit::Code;
use crate::out::{self, data, talk, warn};
use crate::program_paths::ProgramPaths;
use crate::question_lines::{self, NO};
use crate::shutdown::ShutdownSignals;
use crate::styled_text::{bold, dim};
use crate::{env, event_text, trusted_settings};

/// Interval at which its end is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// Flags for starting a teammate.
#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// Its name.
    name: String,

    /// The task.
    prompt: String,

    /// Its type: an agent from `cairn agents list`.
    #[arg(long = "type", value_name = "AGENT")]
    kind: Option<String>,

    /// The model.
    #[arg(long)]
    model: Option<String>,

    /// The permission mode: how much may happen without asking. You are asked about the rest in this terminal; without a
    /// terminal it is denied.
    #[arg(long, value_name = "MODE", value_parser = modes(), default_value = "default")]
    permission_mode: Mode,

    /// Let it work in its own git worktree, on its own branch.
    #[arg(long)]
    worktree: bool,

    /// Keep it when its task is done; `cairn send` gives it more.
    #[arg(long)]
    stay: bool,

    /// More flags for its session, such as --allowedTools 'Bash(cargo *)'.
    #[arg(last = true)]
    flags: Vec<String>,
}

/// Starts it, and stays with it to its end.
pub(super) async fn run(place: &ProgramPaths, registry: &Registry, args: &StartArgs) -> anyhow::Result<Code> {
    let (world, mail) = (World::real(), Mail::default());
    let session = world.fresh_id().to_string();
    let team = Team::led_by(place.home.path(), &session)?;
    let post = Messenger::new(world.clone(), mail.clone(), None);
    let program = env::program().ok_or_else(|| anyhow::anyhow!("the path of this program is unknown"))?;
    let lead = Lead {
        session,
        folder: team.tasks().to_owned(),
        sessions: place.home.project(&place.directory),
        prices: trusted_settings::settings(place, None)?.prices,
        directory: place.directory.clone(),
        guard: Some(program.clone()),
        program,
        flags: args.flags.clone(),
        world,
    };
    let mode = args.permission_mode;
    let (name, jobs) = (args.name.as_str(), Jobs::default());
    let plans = mode == Mode::Plan;
    let isolation = if args.worktree { Isolation::Worktree } else { Isolation::None };
    let (prompt, model) = (args.prompt.clone(), args.model.clone());
    let wanted = TeammateRequest { name: name.to_owned(), prompt, kind: None, model, plans, isolation };
    let wanted = match &args.kind {
        Some(kind) => wanted.of_type(super::named(registry, kind)?.clone()),
        None => wanted,
    };
    if wanted.isolation == Isolation::Worktree
        && let Some(why) = git_runs_programs(&place.directory, place.user_home.as_deref())
    {
        anyhow::bail!(
            "no worktree was made, because git would run other programs here ({why}). Make one with `git \
                worktree add` and start the agent there"
        );
    }
    let mut closing = ShutdownSignals::watch_all()?;
    let teammates = Teammates::new(team.clone(), post.clone(), TaskBoard::default(), mode.into(), lead);
    let approver: Arc<dyn Approver> = match std::io::stdin().is_terminal() && out::stderr().is_terminal() {
        true => Arc::new(TerminalApprover::default()),
        false => Arc::new(NoApprover),
    };
    let listener = Arc::new(|event: Event| {
        if let Event::Teammate { name, news, used, .. } = &event
            && let Some(text) = event_text::mate_news(name, news, used)
        {
            talk!([dim(&text)]);
        }
    });
    teammates.answered_by(approver, listener);
    teammates.start(&wanted, &jobs).map_err(anyhow::Error::msg)?;
    talk!("{name} is working in the team {}; Ctrl-C stops it.", team.name());
    let (mut code, mut asked) = (Code::Success, false);
    loop {
        let is_over = team.others().is_empty();
        for arrived in mail.waiting()? {
            mail.obey(&arrived.message);
            teammates.heard(&arrived.message);
            data!([bold(&name_of(&arrived.message.from)), " ", in_words(&arrived.message)])?;
            mail.forget(&arrived.message.id);
        }
        mail.mark()?;
        if is_over {
            break;
        }
        if !args.stay && !asked && mail.busy().is_empty() {
            asked = true;
            let word = ControlMessage::ShutdownRequest { request: post.fresh(), reason: "the work is done".to_owned() };
            post.say(name, &word, None).await?;
        }
        tokio::select! {
            () = mail.rings() => {}
            () = tokio::time::sleep(LOOK) => {}
            closed = closing.wanted() => {
                code = closed.code();
                break;
            }
        }
    }
    let failed = jobs.list().iter().any(|job| matches!(job.state, tools::JobState::Exited { code } if code != Some(0)));
    if failed {
        warn(&jobs.recent(name).unwrap_or_default());
        code = Code::Failure;
    }
    jobs.stop_all().await;
    teammates.end();
    Ok(code)
}

/// Asks whoever sits at this terminal, one thing at a time.
#[derive(Debug, Default)]
struct TerminalApprover(tokio::sync::Mutex<()>);

impl Approver for TerminalApprover {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let _turn = self.0.lock().await;
            talk!([question.why()]);
            question_lines::rows(&question).iter().for_each(|row| talk!([row.as_str()]));
            talk!([question_lines::prompt(&question, "").trim_end()]);
            // A thread that nobody has to wait for in the end.
            let (sender, line) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || sender.send(std::io::stdin().lines().next().and_then(Result::ok)));
            match line.await.ok().flatten() {
                Some(line) => question_lines::answer(&line),
                None => PermissionAnswer::Unanswered { why: NO.to_owned() },
            }
        })
    }

    fn respondent(&self) -> Respondent {
        Respondent::Program // asked at once, as long as this command runs
    }
}
