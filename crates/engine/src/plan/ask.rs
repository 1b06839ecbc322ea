//! Questions from the model to the user, each with options to choose from.
//!
//! The tool does not ask by itself: whoever decides on its call puts the answers into its input. Answers that the model
//! writes itself are dropped.

use std::collections::BTreeMap;

use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tools::{Access, Output, Scope, TypedTool};
use transcript::tool_names;

/// The tool's name.
pub const NAME: &str = tool_names::ASK_USER_QUESTION;
/// Input field for the answers.
pub const ANSWERS: &str = "answers";
/// Limit on questions in one call.
const MOST_QUESTIONS: usize = 4;
/// Limit on options of a question.
const MOST_OPTIONS: usize = 4;

/// Asks the user what only they can decide: 1-4 questions, 2-4 answers each, the best first. They can also say
/// something else.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub struct AskUserQuestionInput {
    pub questions: Vec<Inquiry>,
    // What the user said, by question.
    #[serde(default)]
    #[schemars(skip)]
    pub answers: BTreeMap<String, String>,
}

// A question, with what it is about in a word or two.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub struct Inquiry {
    pub question: String,
    pub header: Option<String>,
    pub options: Vec<Offer>,
    pub multi_select: Option<bool>,
}

// An answer, with what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub struct Offer {
    pub label: String,
    pub description: Option<String>,
}

impl Inquiry {
    /// Returns whether several options can be chosen.
    pub fn takes_several(&self) -> bool {
        self.multi_select == Some(true)
    }
}

/// The questions of a call, if they are valid.
pub fn inquiries(input: &Value) -> Option<Vec<Inquiry>> {
    let asked: AskUserQuestionInput = serde_json::from_value(input.clone()).ok()?;
    wrong(&asked.questions).is_none().then_some(asked.questions)
}

/// Adds the user's answers to a call's input, by question.
pub fn answered(input: &Value, answers: &BTreeMap<String, String>) -> Value {
    let mut input = input.clone();
    input[ANSWERS] = serde_json::json!(answers);
    input
}

/// Removes answers from a call's input: only the user gives them.
pub(crate) fn unanswered(tool: &str, input: &mut Value) {
    if tool == NAME
        && let Some(fields) = input.as_object_mut()
    {
        fields.shift_remove(ANSWERS);
    }
}

/// Reason why these questions are invalid.
fn wrong(questions: &[Inquiry]) -> Option<String> {
    if !(1..=MOST_QUESTIONS).contains(&questions.len()) {
        return Some(format!("ask 1 to {MOST_QUESTIONS} questions at once, not {}", questions.len()));
    }
    let mut known = std::collections::BTreeSet::new();
    for asked in questions {
        if asked.question.trim().is_empty() || !known.insert(&asked.question) {
            return Some("each question has words of its own".to_owned());
        }
        if !(2..=MOST_OPTIONS).contains(&asked.options.len()) {
            let count = asked.options.len();
            return Some(format!("{:?} has {count} answers to choose from; give 2 to {MOST_OPTIONS}", asked.question));
        }
        let labels: std::collections::BTreeSet<&str> = asked.options.iter().map(|one| one.label.trim()).collect();
        if labels.len() < asked.options.len() || labels.contains("") {
            return Some(format!("the answers to {:?} need names, each its own", asked.question));
        }
    }
    None
}

/// The tool that asks the user.
#[derive(Debug, Clone, Copy)]
pub struct AskUserQuestion;

impl TypedTool for AskUserQuestion {
    type Input = AskUserQuestionInput;
    const NAME: &'static str = NAME;

    fn access(&self, input: &AskUserQuestionInput) -> Access {
        // What cannot be asked fails when it runs, and what is answered needs no asking.
        if input.answers.is_empty() && wrong(&input.questions).is_none() { Access::Asks } else { Access::Session }
    }

    fn run(&self, input: AskUserQuestionInput, _: Scope) -> BoxFuture<'static, Output> {
        Box::pin(ready(result_of(&input)))
    }
}

/// The tool's result.
fn result_of(input: &AskUserQuestionInput) -> Output {
    if let Some(why) = wrong(&input.questions) {
        return Output::failed(format!("Nobody was asked: {why}."));
    }
    let said = |asked: &Inquiry| input.answers.get(&asked.question).map(|said| (asked.question.clone(), said.clone()));
    let said: Vec<(String, String)> = input.questions.iter().filter_map(said).collect();
    if said.is_empty() {
        return Output::failed("The user answered none of it.");
    }
    let lines: Vec<String> = said.iter().map(|(question, said)| format!("{question}\n→ {said}")).collect();
    let summary = said.iter().map(|(_, said)| said.as_str()).collect::<Vec<_>>().join(" · ");
    Output::done(format!("The user answers:\n{}", lines.join("\n")), summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tools::Tool;

    fn asking(question: &str, options: &[&str]) -> Value {
        let options: Vec<Value> = options.iter().map(|label| json!({"label": label, "description": ""})).collect();
        json!({"question": question, "header": "", "options": options, "multiSelect": false})
    }

    /// PLAN-1: valid questions are asked in every mode; invalid and answered ones are not.
    #[test]
    fn questions_are_asked_once_and_only_if_they_can_be() {
        let access = |input: &Value| Tool::access(&AskUserQuestion, input);
        let good = json!({"questions": [asking("Which?", &["one", "two"])]});
        assert_eq!(access(&good), Access::Asks);
        let said = BTreeMap::from([("Which?".to_owned(), "two".to_owned())]);
        assert_eq!(access(&answered(&good, &said)), Access::Session);
        for bad in [
            json!({"questions": []}),
            json!({"questions": [asking("Which?", &["one"])]}),
            json!({"questions": [asking("Which?", &["one", "one"])]}),
            json!({"questions": [asking("A?", &["1", "2"]), asking("A?", &["1", "2"])]}),
            json!({"questions": [asking("A?", &["1", "2", "3", "4", "5"])]}),
        ] {
            assert_eq!((access(&bad), inquiries(&bad)), (Access::Session, None), "{bad}");
            let input: AskUserQuestionInput = serde_json::from_value(bad.clone()).unwrap();
            assert!(result_of(&input).text().starts_with("Nobody was asked"), "{bad}");
        }
    }

    /// PLAN-1: answers that the model writes itself do not count.
    #[test]
    fn nobody_answers_for_the_user() {
        let mut input = json!({"questions": [asking("Which?", &["one", "two"])], "answers": {"Which?": "one"}});
        unanswered(NAME, &mut input);
        assert_eq!(Tool::access(&AskUserQuestion, &input), Access::Asks);
        let input: AskUserQuestionInput = serde_json::from_value(input).unwrap();
        assert_eq!(result_of(&input).text(), "The user answered none of it.");
    }
}
