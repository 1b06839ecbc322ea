//! NotebookEdit: changes one cell of a Jupyter notebook.
//!
//! As with Edit, the file must have been read before and be unchanged since. All other cells, the outputs of every cell and
//! the metadata stay as they were; the file keeps its indentation.

use std::path::{Path, PathBuf};

use files::Error;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Serializer, Value, json};
use transcript::tool_names;

use crate::read::WHOLE;
use crate::run_calls::off_the_loop;
use crate::scope::Scope;
use crate::show;
use crate::subject::{Access, Subject};
use crate::tool::{Output, TypedTool};
use crate::write::refusal;

/// The indentation of notebooks that have none to keep, as Jupyter writes them.
const INDENTATION: &str = " ";
/// Version of the format since which cells have ids: 4.5.
const WITH_IDS: (u64, u64) = (4, 5);

/// Changes a cell of a Jupyter notebook (.ipynb) that was read before. Outputs stay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookEditInput {
    /// Its absolute path.
    pub notebook_path: String,
    /// The cell's id, or its index from 0. To insert: the cell before; absent for the start.
    pub cell_id: Option<String>,
    /// The cell's new text.
    #[serde(default)]
    pub new_source: String,
    /// `code` or `markdown`; needed to insert.
    pub cell_type: Option<CellType>,
    /// `replace` if absent.
    pub edit_mode: Option<CellEdit>,
}

/// The type of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CellType {
    Code,
    Markdown,
}

/// A change of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CellEdit {
    Replace,
    Insert,
    Delete,
}

impl CellType {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

/// Edits notebooks.
#[derive(Debug, Clone, Copy)]
pub struct NotebookEdit;

impl TypedTool for NotebookEdit {
    type Input = NotebookEditInput;
    const NAME: &'static str = tool_names::NOTEBOOK_EDIT;
    const ACCESS: Access = Access::Changes;

    fn subject(&self, input: &NotebookEditInput, scope: &Scope) -> Subject {
        scope.subject(&input.notebook_path)
    }

    fn changes(&self, input: &NotebookEditInput, scope: &Scope) -> Option<PathBuf> {
        Some(scope.place(&input.notebook_path).1)
    }

    fn run(&self, input: NotebookEditInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || {
            let (named, real) = scope.place(&input.notebook_path);
            edit(&named, &real, &input, &scope).unwrap_or_else(|error| Output::failed(refusal(&error, &scope)))
        }))
    }
}

fn edit(named: &Path, real: &Path, input: &NotebookEditInput, scope: &Scope) -> Result<Output, Error> {
    let shown = named.display();
    if real.extension().is_none_or(|extension| extension != "ipynb") {
        return Ok(Output::failed(format!("{shown} is not a notebook (.ipynb). Use Edit.")));
    }
    let snapshot = files::exact::read(real, WHOLE)?;
    let Some(seen) = scope.seen(real) else {
        return Ok(Output::failed(format!("{shown} has not been read. Read it before editing it.")));
    };
    if !seen.same_content(&snapshot.stamp) {
        return Err(Error::Changed { path: named.to_owned() });
    }
    let (text, what) = match changed(&snapshot.bytes, input) {
        Ok(changed) => changed,
        Err(why) => return Ok(Output::failed(format!("{why} ({shown})"))),
    };
    let written = files::exact::replace_unchanged(real, &text, &seen)?;
    scope.note(real, written);
    Ok(Output::done(format!("{what} in {shown}."), what).with_changed(named))
}

/// The notebook with the change, and the change in words; or the reason why it cannot be made.
fn changed(bytes: &[u8], input: &NotebookEditInput) -> Result<(Vec<u8>, String), String> {
    let no = |why: &str| why.to_owned();
    let mut notebook: Value = serde_json::from_slice(bytes).map_err(|error| format!("This is not JSON: {error}."))?;
    let version = |key: &str| notebook[key].as_u64().unwrap_or_default();
    let has_ids = (version("nbformat"), version("nbformat_minor")) >= WITH_IDS;
    let cells = notebook.get_mut("cells").and_then(Value::as_array_mut);
    let cells = cells.ok_or_else(|| no("This notebook has no list of cells."))?;
    let mode = input.edit_mode.unwrap_or(CellEdit::Replace);
    let at = input.cell_id.as_deref().map(|id| find(cells, id)).transpose()?;
    let lines = show::count(show::lines(&input.new_source), "line");
    let what = match (mode, at) {
        (CellEdit::Insert, at) => {
            let kind = input.cell_type.ok_or_else(|| no("To insert a cell, say its cell_type."))?;
            let place = at.map_or(0, |at| at + 1);
            cells.insert(place, new_cell(kind, &input.new_source, has_ids.then(|| fresh_id(cells))));
            format!("Inserted cell {place} with {lines}")
        }
        (_, None) => return Err(no("Say which cell, by its cell_id.")),
        (CellEdit::Delete, Some(at)) => {
            let old = cells.remove(at);
            format!("Deleted cell {at} with {}", show::count(show::lines(&text_of(&old)), "line"))
        }
        (CellEdit::Replace, Some(at)) => {
            let before = show::lines(&text_of(&cells[at]));
            let cell = cells[at].as_object_mut().ok_or_else(|| no("This cell is not an object."))?;
            cell.insert("source".to_owned(), source(&input.new_source));
            if let Some(kind) = input.cell_type.filter(|kind| cell.get("cell_type").is_none_or(|it| it != kind.name()))
            {
                retype(cell, kind);
            }
            format!("Replaced cell {at}, {} by {lines}", show::count(before, "line"))
        }
    };
    Ok((written(&notebook, bytes), what))
}

/// The place of a cell, by its id or its index.
fn find(cells: &[Value], id: &str) -> Result<usize, String> {
    if let Some(at) = cells.iter().position(|cell| cell["id"] == id) {
        return Ok(at);
    }
    let index = id.strip_prefix("cell-").unwrap_or(id).parse().ok().filter(|at| *at < cells.len());
    index.ok_or_else(|| format!("There is no cell {id:?}; there are {}.", show::count(cells.len(), "cell")))
}

fn new_cell(kind: CellType, text: &str, id: Option<String>) -> Value {
    let mut cell = json!({"cell_type": kind.name()});
    if let Some(id) = id {
        cell["id"] = id.into();
    }
    cell["metadata"] = json!({});
    cell["source"] = source(text);
    if let (CellType::Code, Some(cell)) = (kind, cell.as_object_mut()) {
        cell.insert("execution_count".to_owned(), Value::Null);
        cell.insert("outputs".to_owned(), json!([]));
    }
    cell
}

/// A cell that becomes another type has what that type has.
fn retype(cell: &mut Map<String, Value>, kind: CellType) {
    cell.insert("cell_type".to_owned(), kind.name().into());
    match kind {
        CellType::Code => {
            cell.insert("execution_count".to_owned(), Value::Null);
            cell.insert("outputs".to_owned(), json!([]));
        }
        CellType::Markdown => {
            cell.shift_remove("execution_count");
            cell.shift_remove("outputs");
        }
    }
}

/// An id that no cell has.
fn fresh_id(cells: &[Value]) -> String {
    let is_free = |id: &String| !cells.iter().any(|cell| cell["id"] == id.as_str());
    (cells.len()..).map(|number| format!("cell-{number}")).find(is_free).unwrap_or_default()
}

/// A text as notebooks keep it: a list of lines, each with its end.
fn source(text: &str) -> Value {
    text.split_inclusive('\n').map(Value::from).collect()
}

fn text_of(cell: &Value) -> String {
    match &cell["source"] {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// The notebook's bytes, indented as before.
fn written(notebook: &Value, before: &[u8]) -> Vec<u8> {
    let second = before.split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
    let indent: Vec<u8> = second.iter().copied().take_while(|byte| matches!(byte, b' ' | b'\t')).collect();
    let indent = if indent.is_empty() { INDENTATION.as_bytes() } else { &indent };
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(indent));
    // Values of JSON can always be written to memory.
    let _ = notebook.serialize(&mut serializer);
    if before.ends_with(b"\n") {
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTEBOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"id\": \"a1\",\n   \"execution_count\": 3,\n   \"metadata\": {},\n   \"outputs\": [\n    {\n     \"text\": \"42\"\n    }\n   ],\n   \"source\": [\n    \"x = 1\\n\",\n    \"x\"\n   ]\n  },\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"b2\",\n   \"metadata\": {},\n   \"source\": \"# T\"\n  }\n ],\n \"metadata\": {\n  \"z\": 1,\n  \"a\": 2\n },\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

    fn edit(input: &Value) -> Result<(String, String), String> {
        let mut input = input.clone();
        input["notebook_path"] = "/n.ipynb".into();
        let input = serde_json::from_value(input).unwrap();
        changed(NOTEBOOK.as_bytes(), &input).map(|(bytes, what)| (String::from_utf8(bytes).unwrap(), what))
    }

    /// TOOL-1: one cell changes; outputs, other cells, the order of keys and the indentation stay.
    #[test]
    fn one_cell_changes_and_all_else_stays() {
        let (text, what) = edit(&json!({"cell_id": "a1", "new_source": "x = 2\nx"})).unwrap();
        assert_eq!((text, what.as_str()), (NOTEBOOK.replace("x = 1", "x = 2"), "Replaced cell 0, 2 lines by 2 lines"));
        let (text, what) = edit(&json!({"cell_id": "1", "edit_mode": "delete"})).unwrap();
        assert!(!text.contains("# T") && text.contains("42"), "{text}");
        assert_eq!(what, "Deleted cell 1 with 1 line");
        let insert = json!({"cell_id": "a1", "edit_mode": "insert", "cell_type": "code", "new_source": "y"});
        let notebook: Value = serde_json::from_str(&edit(&insert).unwrap().0).unwrap();
        let expected = json!({"cell_type": "code", "id": "cell-2", "metadata": {}, "source": ["y"], "execution_count": null, "outputs": []});
        assert_eq!((&notebook["cells"][1], &notebook["cells"][2]["id"]), (&expected, &json!("b2")));
        let turned = json!({"cell_id": "a1", "cell_type": "markdown", "new_source": "y"});
        let notebook: Value = serde_json::from_str(&edit(&turned).unwrap().0).unwrap();
        assert!(notebook["cells"][0].get("outputs").is_none(), "{notebook}");
    }

    /// TOOL-1: what cannot be done says why.
    #[test]
    fn a_cell_that_is_not_there_is_an_error() {
        for (input, why) in [
            (json!({"cell_id": "zz", "new_source": ""}), "There is no cell \"zz\"; there are 2 cells."),
            (json!({"new_source": ""}), "Say which cell"),
            (json!({"edit_mode": "insert", "new_source": "x"}), "say its cell_type"),
        ] {
            assert!(edit(&input).unwrap_err().contains(why), "{input}");
        }
        let input = NotebookEditInput {
            notebook_path: String::new(),
            cell_id: None,
            new_source: String::new(),
            cell_type: None,
            edit_mode: None,
        };
        assert!(changed(b"{", &input).unwrap_err().contains("not JSON"));
        assert!(changed(b"[]", &input).unwrap_err().contains("no list of cells"));
    }
}
