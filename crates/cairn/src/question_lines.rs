//! A permission question in plain lines, and what a line says in answer to it.
//!
//! Each value stands on rows of its own, indented: no name or value can look like the words that ask for the answer.

use mcp::ElicitationRequest;
use settings::permission::{CallQuestion, IncludeQuestion, PermissionAnswer, Question, SenderQuestion};

/// Text for the model when the user gives no reason.
pub(crate) const NO: &str = "The user said no.";
/// Text for the model before the user's reason.
pub(crate) const NO_BECAUSE: &str = "The user said no, and why: ";

/// The rows that say what is asked.
pub(crate) fn rows(question: &Question) -> Vec<String> {
    match question {
        Question::Call(call) => call_rows(call),
        Question::Sender(SenderQuestion { from, message, teammate }) => {
            let head = format!("{from} wants to write to {}:", session(teammate.as_deref()));
            std::iter::once(head).chain(message.split('\n').map(|line| format!("  {line}"))).collect()
        }
        Question::Include(IncludeQuestion { place, file, teammate }) => vec![
            format!(
                "{place} wants to include a file from outside the project, as instructions for {}:",
                teammate.as_ref().map_or_else(|| "the model".to_owned(), |name| format!("the teammate {name}"))
            ),
            format!("  {}", file.display()),
        ],
        Question::Server(request) => server_rows(request),
    }
}

/// A server's question: its words, and the address that would be opened, whole.
fn server_rows(request: &ElicitationRequest) -> Vec<String> {
    let mut rows = vec![format!("the MCP server {} asks you:", request.server())];
    rows.extend(request.message().split('\n').map(|line| format!("  {line}")));
    if let ElicitationRequest::Url { url, .. } = request {
        rows.push("and wants this page opened in your browser:".to_owned());
        rows.push(format!("  {url}"));
    }
    rows
}

/// The session that somebody writes to.
pub(crate) fn session(teammate: Option<&str>) -> String {
    teammate.map_or_else(|| "this session".to_owned(), |name| format!("the teammate {name}"))
}

fn call_rows(call: &CallQuestion) -> Vec<String> {
    let mut rows = vec![format!("{} wants to run, in {}:", call.tool, call.directory.display())];
    if call.agent.is_some() {
        rows.push(format!("  {}", call.why));
    }
    for (key, value) in call.input.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut lines = text.split('\n');
        rows.push(format!("  {key}: {}", lines.next().unwrap_or_default()));
        rows.extend(lines.map(|line| format!("    {line}")));
    }
    rows
}

/// The words that ask for the answer; `more` names other answers there are.
pub(crate) fn prompt(question: &Question, more: &str) -> String {
    match question {
        Question::Call(_) => format!("Allow it once{more}? y or n, or say why not: "),
        Question::Sender(_) | Question::Include(_) => {
            "Allow it from now on? Your answer is remembered. y or n: ".to_owned()
        }
        Question::Server(_) => "Your answer goes to this server. y or n: ".to_owned(),
    }
}

/// The answer in a line.
pub(crate) fn answer(line: &str) -> PermissionAnswer {
    match line.trim() {
        "y" | "yes" => PermissionAnswer::Allow,
        "" | "n" | "no" => PermissionAnswer::Deny { why: NO.to_owned() },
        why => PermissionAnswer::Deny { why: format!("{NO_BECAUSE}{why}") },
    }
}
