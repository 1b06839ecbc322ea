//! The session for dumb terminals, pipes and screen readers: lines in, lines out, nothing redrawn.
//!
//! The commands are those of the screen. What opens a list there is a numbered list here, and the next line is the
//! choice.

use std::collections::BTreeMap;

use engine::Event;
use engine::agent::Turn;
use engine::context::CompactionReach;
use engine::event::SubagentNews;
use engine::hooks::ExitReason;
use engine::plan::ask::Inquiry;
use engine::run::TurnEnd;
use futures_util::FutureExt;
use mcp::ElicitationRequest;
use settings::permission::{CallQuestion, PermissionAnswer, Question};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::{Block, Outcome};

use super::background_list::done_by;
use super::call_result;
use super::choice_prompt::{self, ChoicePrompt};
use super::conversation::{AgentChannels, Conversation};
use super::conversation_view::{Display, about};
use super::expand::{is_own, recalled};
use super::form_prompt::{FormPrompt, FormStep};
use super::leaving::UnfinishedWork;
use super::modes;
use super::new_memory;
use crate::args::RunArgs;
use crate::exit::Code;
use crate::out::{show, show_part, talk};
use crate::program_paths::ProgramPaths;
use crate::shutdown::{ShutdownCause, ShutdownSignals};
use crate::styled_text::{Colours, Span, first_line, paint};
use crate::{event_text, question_lines, trust_prompt};

/// Runs the session until the input ends or the user leaves.
pub(crate) async fn run(args: &RunArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?.of_run(args.setting_sources, &args.plugin_dir);
    if trust_prompt::ask(args, &place)? == trust_prompt::TrustAnswer::Quit {
        return Ok(Code::Success);
    }
    let (events_in, events) = mpsc::unbounded_channel();
    let (questions_in, questions) = mpsc::unbounded_channel();
    let channels = AgentChannels { events: events_in, questions: questions_in };
    let mut args = args.clone();
    let is_choosing = args.take_choice_of_session();
    let ready = channels.agent(&args, &place).await?;
    for warning in &ready.warnings {
        talk!("warning: {warning}");
    }
    let mut talk = Conversation::new(args.clone(), place, channels, ready, Display::Lines);
    if talk.session.status.mode() == Mode::BypassPermissions {
        talk!("warning: {}", modes::BYPASS_WARNING);
    }
    talk.tell_news();
    let interrupt = signal(SignalKind::interrupt())?;
    let closing = ShutdownSignals::watch()?;
    let mut plain = PlainSession { talk, input: lines(), interrupt, closing, closed: None, events, questions };
    let mut next = args.prompt.clone();
    if is_choosing {
        plain.talk.resume("").await?;
        plain.print();
        while plain.talk.requests.choices.is_some() {
            plain.choose().await?;
        }
    }
    while !plain.talk.requests.leaving {
        let line = match next.take() {
            Some(line) => line,
            None => match plain.typed("> ").await {
                Some(PlainInput::Line(line)) => line,
                Some(PlainInput::Mail) => {
                    show!();
                    let turn = plain.turn(AgentTask::Mail).await;
                    plain.tell(turn);
                    continue;
                }
                None => break,
            },
        };
        plain.submit(line.trim()).await?;
    }
    plain.finish().await;
    if let Some(agent) = plain.talk.session.agent.take() {
        super::put_away(agent, ExitReason::PromptInputExit).await;
    }
    plain.talk.part_from_team().await;
    Ok(plain.closed.map_or(Code::Success, ShutdownCause::code))
}

/// Lines as they are typed. They are read by a thread of its own, which nobody has to wait for in the end.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// The next input.
enum PlainInput {
    /// A line of the user.
    Line(String),
    /// To hear what others have written.
    Mail,
}

/// A task for the agent.
enum AgentTask<'a> {
    Say(&'a str),
    /// Messages from other agents.
    Mail,
    Shell(&'a str),
    Compact(Option<String>, CompactionReach),
}

struct PlainSession {
    talk: Conversation,
    input: mpsc::UnboundedReceiver<String>,
    /// Ctrl-C. It is listened to all the time: what is asked for each time anew misses what comes in between.
    interrupt: Signal,
    closing: ShutdownSignals,
    /// The cause of the shutdown, if there is one.
    closed: Option<ShutdownCause>,
    events: mpsc::UnboundedReceiver<Event>,
    questions: mpsc::UnboundedReceiver<(Question, oneshot::Sender<PermissionAnswer>)>,
}

impl PlainSession {
    /// The next line, or that others have written or agents reported; none at the end of the input, and when Ctrl-C is
    /// pressed.
    async fn typed(&mut self, prompt: &str) -> Option<PlainInput> {
        // One that came too late for what it was to stop does not leave.
        while self.interrupt.recv().now_or_never().is_some() {}
        show_part!("{prompt}");
        loop {
            let reported = self.talk.session.background.agents.as_ref().is_some_and(|agents| agents.has_news());
            let event = tokio::select! {
                biased;
                line = self.input.recv() => return line.map(PlainInput::Line),
                () = self.talk.mail_waits() => return Some(PlainInput::Mail),
                event = self.events.recv() => event?,
                () = std::future::ready(()), if reported => return Some(PlainInput::Mail),
                _ = self.interrupt.recv() => {
                    show!();
                    return None;
                }
                why = self.closing.wanted() => {
                    self.close(why);
                    return None;
                }
            };
            let told = matches!(&event, Event::Agent { subagent, news } if event_text::subagent_news(subagent, news).is_some());
            if told {
                show!(); // the prompt stands there
            }
            self.hear(&event);
            if told {
                show_part!("{prompt}");
            }
        }
    }

    /// The program is to end.
    fn close(&mut self, why: ShutdownCause) {
        self.talk.requests.leaving = true;
        self.closed = Some(why);
    }

    /// Waits for a dream and, where that was asked for, for what is left to learn, for a while; Ctrl-C or a line leaves at once.
    async fn finish(&mut self) {
        let Some(mut agent) = self.talk.session.agent.take() else { return };
        let stop = CancellationToken::new();
        if let (None, Some(awaited)) = (self.closed, UnfinishedWork::of(&agent, &self.talk.args)) {
            talk!("{awaited}; Enter leaves at once");
            let work = awaited.wait(&mut agent, &stop);
            tokio::pin!(work);
            let mut listening = true;
            let ended = loop {
                tokio::select! {
                    biased;
                    ended = &mut work => break ended,
                    _ = self.interrupt.recv() => stop.cancel(),
                    closed = self.closing.wanted() => {
                        self.closed = Some(closed);
                        stop.cancel();
                    }
                    // At the end of the input nobody is there who could be in a hurry.
                    line = self.input.recv(), if listening => match line {
                        Some(_) => stop.cancel(),
                        None => listening = false,
                    },
                }
            };
            if let Err(error) = ended {
                talk!("warning: {error}");
            }
        }
        self.talk.session.agent = Some(agent);
        self.hear_all();
    }

    /// Handles what was typed: a command, a shell escape, or a message for the model.
    async fn submit(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(command) = self.talk.session.command_in(text) {
            self.talk.command(command).await?;
            self.print();
            if let Some((question, reply)) = self.talk.requests.taken.take() {
                self.ask(&question, reply, &CancellationToken::new()).await;
            }
            while self.talk.requests.choices.is_some() {
                self.choose().await?;
            }
            if let Some((wish, part)) = self.talk.requests.compacting.take() {
                let turn = self.turn(AgentTask::Compact(wish, part)).await;
                self.tell(turn);
            }
            if let Some(words) = self.talk.requests.saying.take() {
                let turn = self.turn(AgentTask::Say(&words)).await;
                self.tell(turn);
            }
            return Ok(());
        }
        if let Some(fact) = new_memory::fact_in(text) {
            new_memory::save(&mut self.talk, fact);
            self.print();
            return Ok(());
        }
        let work = match text.strip_prefix('!') {
            Some(command) => AgentTask::Shell(command.trim()),
            None => AgentTask::Say(text),
        };
        let turn = self.turn(work).await;
        self.tell(turn);
        Ok(())
    }

    /// Tells the user what is worth knowing about the end of a turn.
    fn tell(&self, turn: Option<Turn>) {
        if let Some(trouble) = turn.as_ref().and_then(|turn| event_text::trouble_and_hint(&turn.end)) {
            match turn.map(|turn| turn.end) {
                Some(TurnEnd::Failed(_) | TurnEnd::NotWritten(_)) => talk!("error: {trouble}"),
                _ => show!("\n{trouble}"),
            }
        }
    }

    /// One turn, a command of the user's own, or a compaction. Ctrl-C stops it.
    async fn turn(&mut self, work: AgentTask<'_>) -> Option<Turn> {
        let mut agent = self.talk.session.agent.take()?;
        let (cancel, is_shell) = (CancellationToken::new(), matches!(work, AgentTask::Shell(_)));
        let work = async {
            let turn = match work {
                AgentTask::Shell(command) => agent.shell(command, &cancel).await,
                AgentTask::Say(text) => agent.turn(vec![Block::text(text)], &cancel).await,
                AgentTask::Mail => agent.turn(Vec::new(), &cancel).await,
                AgentTask::Compact(wish, part) => agent.compaction(wish, part, &cancel).await,
            };
            (agent, turn)
        };
        tokio::pin!(work);
        let (agent, turn) = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.hear(&event),
                Some((question, reply)) = self.questions.recv() => self.ask(&question, reply, &cancel).await,
                ended = &mut work => break ended,
                _ = self.interrupt.recv() => cancel.cancel(),
                why = self.closing.wanted() => {
                    self.close(why);
                    cancel.cancel();
                }
            }
        };
        self.talk.session.agent = Some(agent);
        self.hear_all();
        if is_shell {
            show!("{}", turn.text.trim_end());
        }
        Some(turn)
    }

    /// Asks on the same input that the prompts come from.
    async fn ask(&mut self, question: &Question, reply: oneshot::Sender<PermissionAnswer>, cancel: &CancellationToken) {
        let mut allowed_in_mode = None;
        if let Question::Server(request) = question {
            return self.respond(question, request, reply, cancel).await;
        }
        if let Question::Call(call) = question {
            if let Some(inquiring) = ChoicePrompt::of(call) {
                return self.inquire(call, inquiring.questions(), reply, cancel).await;
            }
            allowed_in_mode = call.allowed_in_mode;
        }
        question_lines::rows(question).iter().for_each(|row| show!([row.as_str()]));
        let edits = allowed_in_mode.map_or("", |_| " (e: and accept edits in this session)");
        show_part!([question_lines::prompt(question, edits)]);
        let Some(line) = self.answer_line(cancel).await else { return };
        let answer = match (line.trim(), allowed_in_mode) {
            ("e", Some(mode)) => {
                self.talk.session.status.mode.set(mode);
                PermissionAnswer::Allow
            }
            (line, _) => question_lines::answer(line),
        };
        let _ = reply.send(answer); // a turn that is over needs none
    }

    /// The line that answers; none where the turn is to stop.
    async fn answer_line(&mut self, cancel: &CancellationToken) -> Option<String> {
        tokio::select! {
            line = self.input.recv() => Some(line.unwrap_or_default()),
            _ = self.interrupt.recv() => {
                show!();
                cancel.cancel();
                None
            }
            why = self.closing.wanted() => {
                self.close(why);
                cancel.cancel();
                None
            }
        }
    }

    /// Asks what a server wants to know: whether to answer at all, then each field in a line.
    async fn respond(
        &mut self,
        question: &Question,
        request: &ElicitationRequest,
        reply: oneshot::Sender<PermissionAnswer>,
        cancel: &CancellationToken,
    ) {
        question_lines::rows(question).iter().for_each(|row| show!([row.as_str()]));
        show_part!([question_lines::prompt(question, "")]);
        let Some(line) = self.answer_line(cancel).await else { return };
        let mut answer = question_lines::answer(&line);
        if let (PermissionAnswer::Allow, Some(mut form)) = (&answer, FormPrompt::of(request)) {
            let values = loop {
                let lines = form.lines();
                lines.iter().for_each(|line| show!([line.iter().map(Span::text).collect::<String>()]));
                show_part!([form.prompt()]);
                let Some(line) = self.answer_line(cancel).await else { return };
                match form.say(&line) {
                    FormStep::Done(values) => break Some(values),
                    // At the end of the input nothing else comes.
                    _ if form.has_trouble() && line.trim().is_empty() => break None,
                    _ => {}
                }
            };
            answer = match values {
                Some(values) => PermissionAnswer::With { input: Some(values.into()), permissions: Vec::new() },
                None => PermissionAnswer::Deny { why: question_lines::NO.to_owned() },
            };
        }
        let _ = reply.send(answer); // a turn that is over needs none
    }

    /// Asks what the model wants to know, each in a line.
    async fn inquire(
        &mut self,
        question: &CallQuestion,
        asked: &[Inquiry],
        reply: oneshot::Sender<PermissionAnswer>,
        cancel: &CancellationToken,
    ) {
        let mut answers = BTreeMap::new();
        for one in asked {
            show!(["The model asks: ", one.question.as_str()]);
            for (at, option) in one.options.iter().enumerate() {
                let about = option.description.as_deref().filter(|about| !about.is_empty());
                let about = about.map(|about| format!(" — {about}")).unwrap_or_default();
                show!([format!("  {}. {}{about}", at + 1, option.label)]);
            }
            let several = if one.takes_several() { ", several with commas" } else { "" };
            show_part!("A number{several}, or your own words; an empty line answers nothing: ");
            let Some(line) = self.answer_line(cancel).await else { return };
            answers.extend(choice_prompt::answer_in(one, &line).map(|said| (one.question.clone(), said)));
        }
        let answer = match answers.is_empty() {
            true => PermissionAnswer::Deny { why: "The user answered none of it.".to_owned() },
            false => choice_prompt::answer(question, &answers),
        };
        let _ = reply.send(answer); // a turn that is over needs none
    }

    /// Prints an open list with numbers, and takes the next line as the choice.
    async fn choose(&mut self) -> anyhow::Result<()> {
        let Some(open) = &self.talk.requests.choices else { return Ok(()) };
        show!([open.title.as_str()]);
        for (at, choice) in open.list.iter().enumerate() {
            show!([format!("{}. {}  {}", at + 1, choice.label, choice.about)]);
        }
        let choices = open.list.len();
        show_part!("A number, or an empty line for none: ");
        let line = self.answer_line(&CancellationToken::new()).await.unwrap_or_default();
        match line.trim().parse::<usize>() {
            Ok(number) if (1..=choices).contains(&number) => self.talk.chosen(number - 1).await?,
            _ => {
                self.talk.requests.choices = None;
                show!("nothing was chosen");
            }
        }
        self.print();
        Ok(())
    }

    /// Prints what a command had to say.
    fn print(&mut self) {
        self.hear_all();
        self.print_page();
        if let Some(hint) = self.talk.view.hint.take() {
            show!("{hint}");
        }
        if let Some(text) = self.talk.requests.prompt.take().filter(|text| !text.is_empty()) {
            show!("You had said: {text}");
        }
    }

    /// Hears what has come so far.
    fn hear_all(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.hear(&event);
        }
    }

    fn print_page(&mut self) {
        let rows = self.talk.view.page.take();
        for row in rows.iter().skip_while(|row| row.is_empty()) {
            show!("{}", paint(row, Colours::Off));
        }
    }

    fn hear(&mut self, event: &Event) {
        self.talk.heard(event);
        match event {
            Event::Text(text) => show_part!("{text}"),
            // What was said in pieces ends its line; a reply of calls alone has none.
            Event::Replied { reply } => {
                if reply.blocks.iter().filter_map(Block::as_text).any(|text| !text.is_empty()) {
                    show!();
                }
            }
            Event::ToolStarted { id, tool, input } if !is_own(id) => {
                show!("{tool}: {}", first_line(&about(input, &self.talk.place), 100));
            }
            Event::ToolEnded { id, tool, output } if self.talk.view.input_of(id).is_some() => {
                let ended = if output.outcome == Outcome::Done { "done" } else { "failed" };
                show!("{tool} {ended}: {}", first_line(&event_text::ended(output), 100));
                for row in call_result::rows_below(tool, output) {
                    show!("{}", paint(&row, Colours::Off));
                }
            }
            Event::ToolDenied { tool, why, .. } => show!("{tool} denied: {}", first_line(why, 100)),
            Event::Recalled { memories } => show!([recalled(memories)]),
            Event::Restarted => show!("\n(the reply broke off and begins again)"),
            Event::Retrying { attempt, after, why } => {
                talk!("attempt {attempt} failed: {why}; again in {:.1} s", after.as_secs_f32());
            }
            Event::HookMessage { hook_event, text } => show!([hook_event.name(), " hook: ", text.as_str()]),
            Event::Teammate { name, news, used, .. } => {
                if let Some(text) = event_text::mate_news(name, news, used).filter(|_| !super::turns::is_said(news)) {
                    show!([text.as_str()]);
                }
            }
            Event::Agent { subagent, news } => {
                if let SubagentNews::Does(event) = news
                    && let Event::ToolStarted { tool, input, .. } = &**event
                    && self.talk.session.background.is_in_front(subagent)
                {
                    show!([done_by(subagent, tool, input, &self.talk.place)]);
                }
                if let Some(text) = event_text::subagent_news(subagent, news) {
                    show!([text.as_str()]);
                }
            }
            Event::TeammateAsks { name, .. } => show!([name.as_str(), " asks something: /tasks ", name.as_str()]),
            Event::MessageArrived { from, text } => {
                show!(["message from ", from.as_str(), ":"]);
                text.lines().for_each(|line| show!(["  ", line]));
            }
            Event::Warning(text) => talk!("warning: {text}"),
            Event::TeamMemory { sentences: told, changed } => {
                told.iter().for_each(|text| show!("{text}"));
                self.talk.view.team_changes(changed);
                self.print_page();
            }
            _ => {
                if let Some(text) = event_text::of_layers(event) {
                    show!("{text}");
                }
            }
        }
    }
}
