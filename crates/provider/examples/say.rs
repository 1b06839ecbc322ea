//! Says something to a model and shows what comes back, to try a server by hand.
//!
//! ```text
//! cargo run -p provider --example say -- --openai http://127.0.0.1:8080/v1 MODEL "text"
//! cargo run -p provider --example say -- --anthropic http://127.0.0.1:8080 MODEL "text"
//! cargo run -p provider --example say -- --tools --openai http://127.0.0.1:8080/v1 MODEL "text"
//! cargo run -p provider --example say -- --discover
//! ```
//!
//! The reply's text goes to stdout, everything else to stderr. `--tools` offers a tool; a call of it is answered, and
//! the model is asked once more. With a fourth argument, that is the key.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program to be looked at")]

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::StreamExt;
use provider::anthropic::{Anthropic, Auth};
use provider::openai::{OpenAi, QUICK, USUAL, discover};
use provider::{Error, Event, Model, Retry, anthropic, openai};
use serde_json::json;
use transcript::block::Kind;
use transcript::mark::Marks;
use transcript::{Block, Message, Outcome, Prologue, Reply, Request, Role, ToolDefinition};

const USAGE: &str = "say [--tools] --openai|--anthropic URL MODEL TEXT [KEY]\nsay --discover [URL…]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let tools = arguments.iter().position(|argument| argument == "--tools").map(|at| arguments.remove(at)).is_some();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = match words[..] {
        ["--discover"] => return show(&USUAL).await,
        ["--discover", ref urls @ ..] => return show(urls).await,
        ["--openai", url, model, text, ref key @ ..] => {
            let config = openai::Config::new(url, key.first().map(|key| (*key).into()));
            let client = OpenAi::new(openai::Config { retry: Retry::never(), ..config });
            client.map(|client| (Box::new(client) as Box<dyn Model>, model, text))
        }
        ["--anthropic", url, model, text, ref key @ ..] => {
            let auth = Auth::ApiKey((*key.first().unwrap_or(&"none")).into());
            let config = anthropic::Config { retry: Retry::never(), ..anthropic::Config::new(url, auth) };
            Anthropic::new(config).map(|client| (Box::new(client) as Box<dyn Model>, model, text))
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let outcome = match said {
        Ok((client, model, text)) => converse(&*client, model, text, tools).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("\nhint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn show(urls: &[&str]) -> ExitCode {
    for server in discover(urls, QUICK).await {
        println!("{server:?}");
    }
    ExitCode::SUCCESS
}

/// One question, and one more if the model calls the tool.
async fn converse(client: &dyn Model, model: &str, text: &str, tools: bool) -> Result<(), Error> {
    let bash = ToolDefinition {
        name: "Bash".into(),
        description: "Runs a shell command and returns its output.".into(),
        input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
    };
    let prologue = Arc::new(Prologue {
        model: model.to_owned(),
        max_tokens: 64,
        system: vec![Block::text("You are a helpful assistant."), Block::text("Be brief.")],
        static_blocks: 1,
        own_blocks: 0,
        loaded: Vec::new(),
        tools: if tools { vec![bash] } else { vec![] },
        thinking: None,
        effort: None,
        betas: vec![],
        format: None,
        context_management: None,
        web_search: None,
    });
    let mut messages = vec![Message { role: Role::User, blocks: vec![Block::text(text)] }];
    let request = |messages: &[Message]| {
        let (prologue, messages) = (Arc::clone(&prologue), messages.to_vec());
        Request { prologue, messages, marks: Marks::default() }
    };
    let reply = ask(client, request(&messages)).await?;
    let result = |block: &Block| match block.kind() {
        Kind::ToolUse { id, .. } => Some(Block::tool_result(id, &[Block::text("Cargo.toml\nsrc")], Outcome::Done)),
        _ => None,
    };
    let results: Vec<Block> = reply.blocks.iter().filter_map(result).collect();
    if results.is_empty() {
        return Ok(());
    }
    messages.push(Message { role: Role::Assistant, blocks: reply.blocks });
    messages.push(Message { role: Role::User, blocks: results });
    ask(client, request(&messages)).await.map(|_| ())
}

async fn ask(client: &dyn Model, request: Request) -> Result<Reply, Error> {
    let mut events = client.stream(request);
    while let Some(event) = events.next().await {
        match event {
            Event::Text(text) => print!("{text}"),
            Event::Thinking(text) => eprint!("{text}"),
            Event::Done(reply) => {
                println!();
                eprintln!("{} {} {:?} {:?}", reply.id, reply.model, reply.stop, reply.usage);
                for block in reply.blocks.iter().filter(|block| block.as_text().is_none()) {
                    eprintln!("{}", block.json());
                }
                return Ok(reply);
            }
            Event::Failed(error) => return Err(error),
            _ => {}
        }
    }
    Err(Error::Cut { host: "the model".into(), cause: "no last event".into() })
}
