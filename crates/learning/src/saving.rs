//! Write and Edit of memories: whole texts, through the one way to save.
//!
//! To the model they are the tools it knows. An existing memory must have been read and be unchanged since; an empty
//! text removes it. Every refusal says what would be right.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tools::{Access, EditInput, Limit, Output, Runs, Scope, Subject, Tool, TypedTool, WriteInput};
use transcript::ToolDefinition;
use transcript::tool_names;

use crate::saver::Saver;

/// Writes memories.
pub(crate) struct WriteMemory(pub(crate) Arc<Saver>);

/// Edits memories.
pub(crate) struct EditMemory(pub(crate) Arc<Saver>);

impl TypedTool for WriteMemory {
    type Input = WriteInput;
    const NAME: &'static str = tool_names::WRITE;

    fn access(&self, _: &WriteInput) -> Access {
        Access::Changes
    }

    fn subject(&self, input: &WriteInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn run(&self, input: WriteInput, scope: Scope) -> BoxFuture<'static, Output> {
        let saver = self.0.clone();
        let save = move || {
            let subject = scope.subject(&input.file_path);
            answered(&saver, || saver.save(&subject, &input.content, |_| Ok(input.content.clone()), &scope))
        };
        Box::pin(off_the_loop(save))
    }
}

impl TypedTool for EditMemory {
    type Input = EditInput;
    const NAME: &'static str = tool_names::EDIT;

    fn access(&self, _: &EditInput) -> Access {
        Access::Changes
    }

    fn subject(&self, input: &EditInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn run(&self, input: EditInput, scope: Scope) -> BoxFuture<'static, Output> {
        let saver = self.0.clone();
        let save = move || {
            let subject = scope.subject(&input.file_path);
            let text = |before: Option<&str>| match before {
                None if input.old_string.is_empty() => Ok(input.new_string.clone()),
                None => Err("There is no such memory. Write makes a new one.".to_owned()),
                Some(before) => tools::edited(before, &input),
            };
            answered(&saver, || saver.save(&subject, &input.new_string, text, &scope))
        };
        Box::pin(off_the_loop(save))
    }
}

/// Output of a write.
pub(crate) fn answered(saver: &Saver, save: impl FnOnce() -> Result<String, String>) -> Output {
    match save() {
        Ok(said) => Output::done(&said, said.clone()),
        Err(why) => {
            saver.refused(true);
            Output::failed(why)
        }
    }
}

/// Runs blocking work outside the async loop.
pub(crate) async fn off_the_loop(work: impl FnOnce() -> Output + Send + 'static) -> Output {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Output::failed("It failed, and nothing was saved."))
}

/// The tools of a conversation, with Write and Edit saving memories through a saver and other files as before.
pub fn with_saver(tools: &[Arc<dyn Tool>], saver: &Arc<Saver>) -> Vec<Arc<dyn Tool>> {
    let saves = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
        let memories: Arc<dyn Tool> = match tool.name() {
            tool_names::WRITE => Arc::new(WriteMemory(saver.clone())),
            tool_names::EDIT => Arc::new(EditMemory(saver.clone())),
            _ => return tool.clone(),
        };
        Arc::new(FilesOrMemories { files: tool.clone(), memories, saver: saver.clone() })
    };
    tools.iter().map(saves).collect()
}

/// One tool for files, another for memories.
struct FilesOrMemories {
    files: Arc<dyn Tool>,
    memories: Arc<dyn Tool>,
    saver: Arc<Saver>,
}

impl Tool for FilesOrMemories {
    fn name(&self) -> &str {
        self.files.name()
    }

    fn definition(&self) -> ToolDefinition {
        self.files.definition()
    }

    fn access(&self, input: &Value) -> Access {
        self.files.access(input)
    }

    fn subject(&self, input: &Value, scope: &Scope) -> Subject {
        self.files.subject(input, scope)
    }

    fn runs(&self, input: &Value) -> Runs {
        self.files.runs(input)
    }

    fn changes(&self, input: &Value, scope: &Scope) -> Option<PathBuf> {
        self.files.changes(input, scope)
    }

    fn limit(&self) -> Limit {
        self.files.limit()
    }

    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        let is_memory = match self.files.subject(&input, &scope) {
            Subject::Path { real, .. } => self.saver.keeps(&real),
            _ => false,
        };
        if is_memory { self.memories.run(input, scope) } else { self.files.run(input, scope) }
    }
}
