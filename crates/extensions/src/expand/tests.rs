use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::skill::{SkillKind, SkillSource};

fn skill(text: &str) -> Skill {
    Skill::parse(text, "demo:hello".to_owned(), SkillKind::Skill, SkillSource::User, Path::new("/s/hello/SKILL.md")).0
}

fn plan(body: &str, typed: &str) -> ExpandPlan {
    let values = ExpandValues { session: "s1", skill: Some(Path::new("/s/hello")), ..ExpandValues::default() };
    ExpandPlan::new(&skill(&format!("---\narguments: file line\n---\n{body}")), typed, &values)
}

fn text(body: &str, typed: &str) -> String {
    plan(body, typed).text(&[]).unwrap()
}

/// SKILL-2: each placeholder stands for what it says.
#[test]
fn placeholders_are_filled_in_once() {
    for (body, typed, expected) in [
        ("all: $ARGUMENTS.", "a  'b c'", "all: a  'b c'."),
        ("$0, $1, $2", "a 'b c'", "a, b c, $2"),
        ("$ARGUMENTS[1] $ARGUMENTS[7]", "a \"b c\"", "b c $ARGUMENTS[7]"),
        ("$file:$line $filename", "x", "x: $filename"),
        (r"costs \$0 and \$ARGUMENTS, $0", "x", "costs $0 and $ARGUMENTS, x"),
        (
            "${CLAUDE_SESSION_ID} ${CLAUDE_SKILL_DIR} ${HOME} ${CLAUDE_PLUGIN_ROOT}",
            "",
            "s1 /s/hello ${HOME} ${CLAUDE_PLUGIN_ROOT}",
        ),
        ("plain", "more words", "plain\n\nARGUMENTS: more words"),
        ("plain", " ", "plain"),
        ("$0", "$1 ${CLAUDE_SESSION_ID}", "$1"),
        ("$ARGUMENTS", "!`date` $0", "!`date` $0"),
        ("$0", "it's", "it's"),
    ] {
        assert_eq!(text(body, typed), expected, "{body:?} with {typed:?}");
    }
}

/// SKILL-2: commands are found at the start of a line, after a blank and in fences, and nowhere else.
#[test]
fn commands_are_found_where_they_may_stand() {
    let plan = plan("!`a $0` b !`c`x\n```!\nd\ne\n```\nnot!`f` ``!`g` `` !``\n", "A");
    assert_eq!(plan.commands().collect::<Vec<_>>(), ["a A", "c", "d\ne"]);
    let outputs = ["1\n", "$0 !`x`", "3"].map(str::to_owned);
    assert_eq!(plan.text(&outputs).unwrap(), "1 b $0 !`x`x\n3\nnot!`f` ``!`g` `` !``\n");
    assert_eq!(plan.text(&outputs[..2]), None);
}

/// SKILL-2: in a skill that is not trusted, lines that would run are text.
#[test]
fn commands_of_a_skill_without_trust_are_text() {
    let skill = skill("see !`rm -r $0`").withheld();
    let plan = ExpandPlan::new(&skill, "x", &ExpandValues::default());
    assert_eq!((plan.commands().count(), plan.text(&[]).as_deref()), (0, Some("see !`rm -r x`")));
}

/// SKILL-1: a message can begin with up to six skills.
#[test]
fn up_to_six_skills_are_stacked() {
    let known = |name: &str| name.len() == 1;
    assert_eq!(stacked("/a /b /tmp/x rest", known), (vec!["a", "b"], "/tmp/x rest"));
    assert_eq!(stacked("/a /b /c /d /e /f /g", known), (vec!["a", "b", "c", "d", "e", "f"], "/g"));
    assert_eq!(stacked("text /a", known).0, [""; 0]);
}

proptest! {
    /// SKILL-2: any bytes can be expanded, with any arguments.
    #[test]
    fn expansion_is_total(bytes in prop::collection::vec(any::<u8>(), 0..200), typed in ".{0,40}", body in r"([$!`\\{}\[\]0-9a-z \n]|\$ARGUMENTS|```!){0,60}") {
        for body in [String::from_utf8_lossy(&bytes).into_owned(), body] {
            let plan = plan(&body, &typed);
            let outputs: Vec<String> = plan.commands().map(|_| String::new()).collect();
            prop_assert!(plan.text(&outputs).is_some());
        }
    }

    /// SKILL-2: arguments are put in as they are typed, and add no command.
    #[test]
    fn arguments_are_never_looked_at_again(typed in r"([$!`\\{}\[\]0-9a-z \n]|\$ARGUMENTS|!`x`|```!\nx\n```){1,30}") {
        prop_assume!(!typed.trim().is_empty());
        let plan = plan("[ $ARGUMENTS ] !`run $ARGUMENTS`", &typed);
        prop_assert_eq!(plan.pieces(), [PlanPiece::Text(format!("[ {typed} ] ")), PlanPiece::Command(format!("run {typed}"))]);
    }

    /// SKILL-2: output of a command is put in as it is.
    #[test]
    fn output_is_never_looked_at_again(output in r"([$!`\\{}0-9a-z ]|\$ARGUMENTS|!`x`){1,30}") {
        let plan = plan("a !`x` b $0", "word");
        prop_assert_eq!(plan.text(std::slice::from_ref(&output)).unwrap(), format!("a {output} b word"));
    }
}
