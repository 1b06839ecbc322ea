//! `cairn demo`: the main job, without a key.
//!
//! Everything is real but the model: the engine, the log on disk, the tools and what they do to a project in a temporary
//! folder, the HTTP between them, and the accounting of the prompt cache. The model is a script that reacts to what is
//! visible in the request.

mod demo_agents;
mod night;

use std::path::Path;
use std::sync::Arc;

use engine::agent::Parts;
use engine::context::{CompactionReach, Layers, list};
use engine::event::Listener;
use engine::run::{RunEnd, TurnEnd};
use engine::{Agent, Event};
use learning::knowledge::Knowledge;
use memory::instructions::InstructionSources;
use memory::taxonomy::{TaxonomyContext, Variant, rules};
use parking_lot::Mutex;
use provider::anthropic::{Anthropic, Auth, Config};
use session::{Fork, Home, Session, World};
use settings::permission::Policy;
use settings::{BasePaths, Learning};
use simulator::{Clock, Fault, Options, Report, Script, Simulator, When};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tools::permission::{Mode, Rules as PermissionRules};
use transcript::price::Prices;
use transcript::tool_names;
use transcript::window::{Window, WindowHints};

use crate::env;
use crate::exit::Code;
use crate::out::{show, show_part};
use crate::styled_text::{Span, bold, cyan, dim, green, one_line, red};

const SCRIPT: &str = include_str!("demo/script.toml");
const PROJECT: [(&str, &str); 2] =
    [("slug.sh", include_str!("demo/slug.sh")), ("test.sh", include_str!("demo/test.sh"))];
const MODEL: &str = "claude-sonnet-5";
/// The most a reply may be, and the most requests in a turn: far more than the script needs.
const MAX_TOKENS: u64 = 8_000;
const MAX_ROUNDS: u32 = 20;
/// The window of the long piece of work, how many logs it reads, and how many lines each has.
const SMALL_WINDOW: u64 = 48_000;
const DAYS: u32 = 24;
const LOG_LINES: u32 = 160;
/// Delay between the simulated model's words, so that it can be watched.
const PACE_MS: u64 = 25;

/// Play a coding session against a simulated model: no key, no network.
///
/// A test fails in a small project; the agent finds it, reads the code, fixes it and runs the tests again. Then the
/// session is closed, opened again from its file, and asked what it did. A new session, which knows nothing of the first,
/// is asked something that only memory can answer. When it ends, what was learnt in it is written down. Last, a long piece of work is done in a small window: what is too
/// large goes to disk, what is old leaves, a summary takes the place of the rest, what left is found again, and what the
/// user asked to keep is still kept.
/// Then agents are started: three forks on one cache write, and one in the background.
/// Everything but the model is real.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the project and the session, and print their paths.
    #[arg(long)]
    keep: bool,
    /// Do not slow the model down for watching.
    #[arg(long)]
    fast: bool,
}

/// Plays the demo.
pub(crate) async fn run(args: &DemoArgs) -> anyhow::Result<Code> {
    let folder = tempfile::Builder::new().prefix("cairn-demo-").tempdir()?;
    let root = files::real(folder.path())?;
    let stage = DemoStage::set(&root, args).await?;
    show!([bold("A coding session, played against a simulated model. Everything else is real.")]);
    show!([dim(&format!("project {}", stage.project.display()))]);
    show!();

    let (mut agent, first) = stage.agent(None)?;
    let id = agent.session().id().to_owned();
    let file = agent.session().path().to_owned();
    let fixed = first.play(&mut agent, "The tests fail. Make them pass.").await;
    drop(agent);

    chapter("The session is closed and opened again from its file.");
    let (mut agent, second) = stage.agent(Some(&id))?;
    let told = second.play(&mut agent, "What did you change?").await;
    drop(agent);

    chapter("A new session begins. It knows only what the first one saved.");
    let (mut agent, third) = stage.agent(None)?;
    if let Some(knowledge) = agent.knowledge() {
        knowledge.ready().await;
    }
    let recalled = third.play(&mut agent, "How do we turn a title into a file name here?").await;
    let report = stage.simulator.report();

    chapter("The user says how they like to work, and leaves. What was learnt is written down.");
    let mut agent = agent.with_learning(Learning::new(stage.home.clone()));
    let agreed = third.play(&mut agent, "Good. From now on, show me the failing test before you change code.").await;
    agent.finish_learning(&CancellationToken::new()).await?;
    let learnt = print_learnt(&stage.memories);
    drop(agent);

    chapter(&format!("A long piece of work, in a window of {SMALL_WINDOW} tokens."));
    let (mut agent, fourth) = stage.small_agent()?;
    let task = "Something went wrong this month. Look through the logs. Keep every log.";
    let searched = fourth.play(&mut agent, task).await;
    let compacted = agent.compaction(None, CompactionReach::Everything, &CancellationToken::new()).await;
    let found = fourth.play(&mut agent, "What exactly did the log of day 3 say about it?").await;
    let asked = fourth.play(&mut agent, "Make room on the disk.").await;
    let savings = session::savings::of(agent.session().log(), &Prices::default());
    let largest =
        stage.simulator.report().requests[report.requests.len()..].iter().map(|line| line.input.total()).max();

    chapter("Two weeks go by. A dream tidies up the memories.");
    let dreamt = night::play(&root).await?;

    chapter("Agents: three forks look at three files at the same time, and one works in the background.");
    let sent = demo_agents::play(&root).await?;

    print_figures(&report);
    print_savings(&savings, &list::off(agent.layers()), largest.unwrap_or_default());
    stage.simulator.shutdown().await;
    let recalled =
        recalled && agreed && learnt && searched && found && asked && matches!(compacted.end, TurnEnd::Ended(_));
    if args.keep {
        let kept = folder.keep();
        show!("\nkept in {}; look at the session with\n  cairn session show {}", kept.display(), file.display());
    }
    anyhow::ensure!(
        fixed && told && recalled && dreamt && sent,
        "the demo did not reach its end; please report this with the output above"
    );
    Ok(Code::Success)
}

/// Shows what was learnt; whether anything was.
fn print_learnt(memories: &Path) -> bool {
    const LARGEST: u64 = 10_000;
    let Ok(file) = files::read(memories.join("show_the_failing_test.md"), LARGEST) else { return false };
    show!();
    for line in String::from_utf8_lossy(&file.bytes).lines() {
        show!(["  ", dim(line)]);
    }
    true
}

/// A project with a failing test, a config home and a model.
struct DemoStage {
    project: std::path::PathBuf,
    home: Home,
    memories: std::path::PathBuf,
    simulator: Simulator,
}

impl DemoStage {
    async fn set(root: &Path, args: &DemoArgs) -> anyhow::Result<Self> {
        let project = root.join("project");
        for (name, text) in PROJECT {
            files::replace(project.join(name), text.as_bytes())?;
        }
        for day in 1..=DAYS {
            files::replace(project.join(format!("logs/day-{day}.log")), log_of(day).as_bytes())?;
        }
        let home = Home::at(root.join("config"));
        let memories = home.project(&project).join("memory");
        files::create_directory(&memories)?;
        let mut script = Script::parse(SCRIPT)?;
        script.vars.insert("memories".into(), memories.display().to_string());
        script.vars.insert("project".into(), project.display().to_string());
        if !args.fast {
            // The long piece of work is not slowed down: it is long enough.
            let when = When { missing: vec!["Look through the logs".into()], ..When::default() };
            script.faults.push(Fault { when, slow_ms_per_event: PACE_MS, times: Some(1_000), ..Fault::default() });
        }
        let simulator = Simulator::start(script, Options { clock: Clock::Real, ..Options::default() }).await?;
        Ok(Self { project, home, memories, simulator })
    }

    fn agent(&self, resume: Option<&str>) -> anyhow::Result<(Agent, Timeline)> {
        self.agent_with(resume, Timeline::start(), Layers::default())
    }

    /// One whose window is small, and whose calls are not shown one by one.
    fn small_agent(&self) -> anyhow::Result<(Agent, Timeline)> {
        let hints = WindowHints { configured: Some(SMALL_WINDOW), max_output: MAX_TOKENS, ..WindowHints::default() };
        let layers = Layers { window: Window::of(&hints), price: Prices::default().of(MODEL), ..Layers::default() };
        self.agent_with(None, Timeline { brief: true, ..Timeline::start() }, layers)
    }

    fn agent_with(
        &self,
        resume: Option<&str>,
        timeline: Timeline,
        layers: Layers,
    ) -> anyhow::Result<(Agent, Timeline)> {
        let session = match resume {
            Some(id) => Session::resume(&self.home, &self.project, id, Fork::No, World::real())?.0,
            None => Session::create(&self.home, &self.project, None, World::real())?,
        };
        let base_paths = BasePaths { directory: &self.project, home: None };
        let allow = [
            "Bash(bash test.sh)".to_owned(),
            "Bash(cat logs/*)".to_owned(),
            format!("Edit(/{}/**)", self.memories.display()),
        ];
        let allow = settings::rules(&allow, &base_paths).map_err(session::Error::from)?;
        let model = Anthropic::new(Config::new(self.simulator.url(), Auth::ApiKey("demo".into())))?;
        let mut parts = Parts::new(Arc::new(model), MODEL);
        parts.talk.max_tokens = MAX_TOKENS;
        parts.work.guard = env::program();
        parts.talk.layers = layers;
        parts.prompt.sections = vec![rules(&TaxonomyContext {
            variant: Variant::Private,
            directory: &self.memories,
            skip_index: false,
            extra_guidelines: None,
            search_past: None,
        })];
        let rules = PermissionRules { allow, ..PermissionRules::default() };
        parts.consent.policy = Policy { mode: Mode::AcceptEdits.into(), rules, ..Policy::default() };
        parts.talk.limits.max_rounds = Some(MAX_ROUNDS + DAYS);
        parts.out.listener = timeline.listener();
        let agent = Agent::new(session, parts)?;
        let sources = InstructionSources { working_directory: self.project.clone(), ..InstructionSources::default() };
        let knowledge = Knowledge::new(sources, Some(&self.memories), None, agent.session());
        Ok((agent.with_knowledge(knowledge), timeline))
    }
}

/// Prints events line by line, with the time since the start.
#[derive(Clone)]
struct Timeline {
    started: Instant,
    speaking: Arc<Mutex<bool>>,
    /// True if calls are left out.
    brief: bool,
}

impl Timeline {
    fn start() -> Self {
        Self { started: Instant::now(), speaking: Arc::default(), brief: false }
    }

    async fn play(&self, agent: &mut Agent, said: &str) -> bool {
        self.line("you", said);
        let turn = agent.say(said).await;
        self.quiet();
        matches!(turn.end, TurnEnd::Ended(RunEnd::Answered))
    }

    fn listener(&self) -> Listener {
        let timeline = self.clone();
        Arc::new(move |event| timeline.show(&event))
    }

    fn show(&self, event: &Event) {
        if let Some(told) = crate::event_text::of_layers(event) {
            return self.line("layer", &told);
        }
        match event {
            Event::ToolStarted { tool, .. } | Event::ToolEnded { tool, .. }
                if self.brief && tool == tool_names::BASH => {}
            Event::Text(text) => self.speak(text),
            Event::ToolStarted { tool, input, .. } => {
                let about = ["command", "pattern", "file_path"].iter().find_map(|key| input[*key].as_str());
                let about =
                    about.map(|about| about.rsplit('/').next().filter(|_| about.starts_with('/')).unwrap_or(about));
                self.line(tool, about.unwrap_or_default());
            }
            Event::Recalled { memories } => {
                let paths: Vec<&str> = memories.iter().map(|one| one.path.as_str()).collect();
                self.line("recall", &paths.join(", "));
            }
            Event::MemorySaved { .. } => self.line("memory", "saved"),
            Event::MemoryForgotten { .. } => self.line("memory", "forgotten"),
            Event::ToolEnded { output, .. } => {
                let failed = output.outcome == transcript::Outcome::Failed;
                let mark = if failed { red("✗ ") } else { green("✓ ") };
                self.quiet();
                show!([" ".repeat(18), mark, dim(&one_line(&output.summary, 90))]);
            }
            _ => {}
        }
    }

    fn line(&self, who: &str, what: &str) {
        self.quiet();
        show!([self.time(), "  ", cyan(&format!("{who:<8} ")), one_line(what, 100)]);
    }

    fn speak(&self, text: &str) {
        let mut speaking = self.speaking.lock();
        if !*speaking {
            show_part!([self.time(), "  ", bold("model    ")]);
            *speaking = true;
        }
        show_part!("{}", text.replace('\n', " "));
    }

    fn quiet(&self) {
        let mut speaking = self.speaking.lock();
        if std::mem::take(&mut *speaking) {
            show!();
        }
    }

    fn time(&self) -> Span {
        dim(&format!("{:5.2} s", self.started.elapsed().as_secs_f32()))
    }
}

/// Prints the heading of the next part.
fn chapter(title: &str) {
    show!();
    show!([dim(title)]);
    show!();
}

/// A day's log. On the third something went wrong.
fn log_of(day: u32) -> String {
    let line = |n: u32| match (day, n) {
        (3, 41) => "03 02:41 ERROR backup: no space left on /var/backup, 0 of 7 archives written\n".to_owned(),
        _ => format!("{day:02} {:02}:{:02} INFO request served in {} ms\n", n / 60, n % 60, 20 + (n * day) % 37),
    };
    (0..LOG_LINES).map(line).collect()
}

fn print_savings(savings: &[session::savings::Saving], off: &[&str], largest: u64) {
    let (head, rows) = crate::event_text::savings(savings, off);
    show!();
    show!([bold(&head)]);
    for row in rows {
        show!("{row}");
    }
    let net: f64 = savings.iter().map(|one| one.saved_usd - one.cost_usd).sum();
    let text = format!(
        "the long work never had more than {largest} tokens in view; with all of it in view it would have cost ${net:.4} more"
    );
    show!([green(&text)]);
}

fn print_figures(report: &Report) {
    show!();
    show!([bold("request  uncached   written      read    output       cost")]);
    for line in &report.requests {
        let written = line.input.write_5m + line.input.write_1h;
        let (uncached, read) = (line.input.uncached, line.input.read);
        show!("{:>7} {uncached:>9} {written:>9} {read:>9} {:>9}   ${:.5}", line.index, line.output, line.price);
    }
    let totals = &report.totals;
    let all = totals.input.total();
    let without = Prices::default().of(MODEL).map(|price| {
        let usage = transcript::Usage { input_tokens: all, output_tokens: totals.output, ..Default::default() };
        price.cost(&usage)
    });
    show!(
        "\n{} tokens read, {:.0} % of them from the cache; {} written; {} prefix breaks",
        all,
        totals.hit_ratio * 100.0,
        totals.output,
        totals.breaks
    );
    let cost = format!("cost ${:.5}, without the cache ${:.5}", totals.price, without.unwrap_or_default());
    show!([green(&cost)]);
}
