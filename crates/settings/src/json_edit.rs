//! Changes one value of a JSON text and nothing else: no whitespace, no order, no line endings.

use std::ops::Range;

use serde_json::Value;

use super::json_positions::{Json, JsonContent, Node, ObjectMember, last};

/// Indentation for a text that has none.
const USUAL_INDENT: &str = "  ";

/// The reason why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditFailure {
    /// A value on the path is no object.
    #[error("{0} is not an object, so nothing can be set in it")]
    NoObject(String),
}

impl Json {
    /// The text with `value` under these names; objects are made where they are missing.
    pub fn with(&self, names: &[&str], value: &Value) -> Result<String, EditFailure> {
        let (mut node, mut depth) = (self.root(), 0);
        while let JsonContent::Object(members) = &node.inside {
            let Some(name) = names.get(depth) else { break };
            match last(members, name) {
                Some(member) => (node, depth) = (&member.value, depth + 1),
                None => return Ok(self.inserted(node, members, &names[depth..], value)),
            }
        }
        if depth < names.len() {
            return Err(EditFailure::NoObject(if depth == 0 { "the file".into() } else { names[..depth].join(".") }));
        }
        let form = self.form();
        Ok(self.spliced(node.span.clone(), &form.written(value, &form.indent_at(node.span.start))))
    }

    /// The text without the value under these names; none if there is none.
    pub fn without(&self, names: &[&str]) -> Option<String> {
        let (name, way) = names.split_last()?;
        let mut node = self.root();
        for step in way {
            let JsonContent::Object(members) = &node.inside else { return None };
            node = &last(members, step)?.value;
        }
        let JsonContent::Object(members) = &node.inside else { return None };
        let index = members.iter().rposition(|member| member.name == *name)?;
        let span = if let Some(next) = members.get(index + 1) {
            members[index].start..next.start
        } else if index > 0 {
            members[index - 1].value.span.end..members[index].value.span.end
        } else {
            node.span.start + 1..node.span.end - 1
        };
        let text = self.spliced(span, "");
        // One that stood there twice would come back to life.
        let again = Self::parse(text.as_bytes()).ok().and_then(|json| json.without(names));
        Some(again.unwrap_or(text))
    }

    fn inserted(&self, object: &Node, members: &[ObjectMember], names: &[&str], value: &Value) -> String {
        let (name, inner) = (names[0], &names[1..]);
        let value = inner.iter().rev().fold(value.clone(), |inside, name| serde_json::json!({*name: inside}));
        let form = self.form();
        let text = self.text();
        let key = Value::from(name).to_string();
        let Some(newest) = members.last() else {
            let (outer, newline) = (form.indent_at(object.span.start), form.newline);
            let indent = format!("{outer}{}", form.unit);
            let member = format!("{key}: {}", form.written(&value, &indent));
            return self.spliced(object.span.clone(), &format!("{{{newline}{indent}{member}{newline}{outer}}}"));
        };
        let previous = members.len().checked_sub(2).map_or(object.span.start + 1, |index| {
            let end = members[index].value.span.end;
            end + text[end..newest.start].find(',').map_or(0, |comma| comma + 1)
        });
        let mut gap = &text[previous..newest.start];
        if gap.is_empty() && members.len() == 1 {
            gap = " "; // {"a": 1}
        }
        let end = newest.value.span.end;
        if let Some(newline) = gap.rfind('\n') {
            let indent = &gap[newline + 1..];
            let member = format!("{key}: {}", form.written(&value, indent));
            return self.spliced(end..end, &format!(",{}{indent}{member}", form.newline));
        }
        self.spliced(end..end, &format!(",{gap}{key}: {value}"))
    }

    fn spliced(&self, span: Range<usize>, new: &str) -> String {
        let text = self.text();
        format!("{}{new}{}", &text[..span.start], &text[span.end..])
    }

    fn form(&self) -> Form<'_> {
        let text = self.text();
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let unit = indented.map_or(USUAL_INDENT, |line| &line[..line.len() - line.trim_start().len()]);
        Form { text, newline, unit }
    }
}

/// The layout of a text.
struct Form<'a> {
    text: &'a str,
    newline: &'static str,
    unit: &'a str,
}

impl Form<'_> {
    /// The indentation of the line that contains an offset.
    fn indent_at(&self, at: usize) -> String {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[start..at];
        line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned()
    }

    /// A value, with its inner lines indented from `indent` on.
    fn written(&self, value: &Value, indent: &str) -> String {
        let deeper = format!("{indent}{}", self.unit);
        let newline = self.newline;
        let lines = |inside: Vec<String>, open: char, close: char| {
            let inside = inside.join(&format!(",{newline}{deeper}"));
            format!("{open}{newline}{deeper}{inside}{newline}{indent}{close}")
        };
        match value {
            Value::Object(members) if !members.is_empty() => {
                let member = |(name, value): (&String, &Value)| {
                    format!("{}: {}", Value::from(name.as_str()), self.written(value, &deeper))
                };
                lines(members.iter().map(member).collect(), '{', '}')
            }
            Value::Array(list) if !list.is_empty() => {
                lines(list.iter().map(|value| self.written(value, &deeper)).collect(), '[', ']')
            }
            plain => plain.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn with(text: &str, names: &[&str], value: &Value) -> String {
        Json::parse(text.as_bytes()).unwrap().with(names, value).unwrap()
    }

    fn without(text: &str, names: &[&str]) -> Option<String> {
        Json::parse(text.as_bytes()).unwrap().without(names)
    }

    #[test]
    fn a_value_is_changed_and_every_other_byte_stays() {
        let text = "{\r\n\t\"b\" :  1,\r\n\r\n\t\"a\": [1,2] , \"c\": {}\r\n}";
        assert_eq!(with(text, &["a"], &json!("x")), text.replace("[1,2]", "\"x\""));
        assert_eq!(
            with(text, &["c", "d", "e"], &json!(true)),
            text.replace("{}", "{\r\n\t\t\"d\": {\r\n\t\t\t\"e\": true\r\n\t\t}\r\n\t}")
        );
        assert_eq!(without(text, &["a"]).unwrap(), text.replace("\"a\": [1,2] , ", ""));
        assert_eq!(without(text, &["c"]).unwrap(), text.replace(" , \"c\": {}", ""));
        assert_eq!(without(text, &["c", "d"]), None);
    }

    #[test]
    fn what_is_new_is_laid_out_as_what_is_there() {
        assert_eq!(with("{}", &["a"], &json!(1)), "{\n  \"a\": 1\n}");
        assert_eq!(with("{\"a\":1}", &["b"], &json!([1])), "{\"a\":1, \"b\": [1]}");
        assert_eq!(with("{\"a\":1,\"c\":2}", &["b"], &json!(3)), "{\"a\":1,\"c\":2,\"b\": 3}");
        let four = "{\n    \"p\": {\n        \"x\": 1\n    }\n}\n";
        assert_eq!(
            with(four, &["p", "allow"], &json!(["Read"])),
            "{\n    \"p\": {\n        \"x\": 1,\n        \"allow\": [\n            \"Read\"\n        ]\n    }\n}\n"
        );
    }

    #[test]
    fn a_name_that_stands_twice_is_gone_when_it_is_taken_away() {
        assert_eq!(without("{\"a\":1,\"b\":2,\"a\":3}", &["a"]).unwrap(), "{\"b\":2}");
        assert_eq!(without("{\n \"a\":1\n}", &["a"]).unwrap(), "{}");
    }

    #[test]
    fn nothing_is_put_into_what_is_no_object() {
        let json = Json::parse(b"{\"a\": [1]}").unwrap();
        assert_eq!(json.with(&["a", "b"], &json!(1)), Err(EditFailure::NoObject("a".into())));
        assert!(Json::parse(b"[]").unwrap().with(&["a"], &json!(1)).is_err());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            "[a\"\\\\{}, é]{0,4}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            let object = prop::collection::btree_map("[a-d\"]{1,2}", inner, 0..4).prop_map(|map| json!(map));
            prop_oneof![list, object]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        /// TRUST-1: `config set` and `unset` change one value, and nothing before or after it.
        #[test]
        fn an_edit_says_what_it_should_and_leaves_the_rest(
            file in prop::collection::btree_map("[a-d]", any_value(), 0..4), value in any_value(),
            names in prop::collection::vec("[a-d]", 1..3), pretty in any::<bool>(), crlf in any::<bool>(),
        ) {
            let value_before = json!(file);
            let text = if pretty { serde_json::to_string_pretty(&file).unwrap() } else { json!(file).to_string() };
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let json = Json::parse(text.as_bytes()).unwrap();
            let on_the_way = |value: &Value| (0..names.len()).all(|depth| {
                names[..depth].iter().try_fold(value, |at, name| at.get(name)).is_none_or(Value::is_object)
            });
            match json.with(&names, &value) {
                Err(_) => prop_assert!(!on_the_way(&value_before)),
                Ok(set) => {
                    let mut expected = value_before.clone();
                    let mut at = &mut expected;
                    for name in &names {
                        at = &mut at[*name];
                    }
                    *at = value;
                    let set = Json::parse(set.as_bytes()).unwrap();
                    prop_assert_eq!(set.value(), &expected);
                    let (before, after) = (text.as_bytes(), set.text().as_bytes());
                    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
                    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
                    let there = names.iter().try_fold(&value_before, |at, name| at.get(name));
                    let most = there.map_or(2, |old| serde_json::to_string_pretty(old).unwrap().len() * 2 + 2);
                    prop_assert!(before.len() <= same + tail + most, "{} -> {}", text, set.text());
                    prop_assert!(set.text().contains("\r\n") || !text.contains("\r\n"));
                    let unset = Json::parse(set.without(&names).unwrap().as_bytes()).unwrap();
                    prop_assert!(names.iter().try_fold(unset.value(), |at, name| at.get(name)).is_none());
                }
            }
        }
    }
}
