//! Laws of every bill.

use context::Layers;
use context::layer_settings::ClearWhen;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use transcript::line::Line;
use transcript::mark::Ttl;
use transcript::price::{Price, Prices};
use transcript::window::{Window, WindowHints};

use super::sample_sessions::{MODEL, PROLOGUE, Sample, text};
use super::{AgeRule, BillTotal, MaskRule, PricePolicy, ProviderRule, Recording, SessionBill, price};

fn bill(sample: &Sample, policy: &PricePolicy) -> BillTotal {
    price(sample.lines(), policy, &Prices::default()).total()
}

fn window(size: u64) -> Window {
    Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() })
}

fn ours(size: u64) -> PricePolicy {
    PricePolicy::Ours(Box::new(Layers { window: window(size), ..Layers::default() }))
}

fn model_price() -> Price {
    Prices::default().of(MODEL).unwrap()
}

/// One round of a generated session: minutes before it, tokens of its result, whether the user speaks first.
type Round = (i64, u64, bool);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let minutes = prop_oneof![8 => Just(0_i64), 1 => 4_i64..7, 1 => 50_i64..80];
    prop::collection::vec((minutes, 100_u64..4_000, any::<bool>()), 1..25)
}

/// The session, and for each request its time and what it had, in tokens.
fn session(rounds: &[Round]) -> (Sample, Vec<(Timestamp, u64)>) {
    let (mut sample, mut requests) = (Sample::default(), Vec::new());
    sample.say(&text(100, "the task"));
    for (at, (minutes, tokens, speaks)) in rounds.iter().enumerate() {
        sample.wait(*minutes);
        if *speaks || *minutes > 0 {
            sample.say(&text(60, &format!("wish {at}")));
        }
        requests.push((Timestamp::from_second(1_770_000_000 + sample.seconds - 1).unwrap(), sample.context));
        sample.round("Bash", json!({"command": format!("make step-{at}")}), &text(*tokens, &format!("step {at}")));
    }
    (sample, requests)
}

/// The cost of keeping everything, from the sizes of the requests alone.
fn tiny_model(requests: &[(Timestamp, u64)], ttl: Ttl) -> f64 {
    let price = model_price();
    let write = if ttl == Ttl::OneHour { price.cache_write_1h } else { price.cache_write_5m };
    let mut cost = 0.0;
    for (at, (time, tokens)) in requests.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| requests[before]);
        let read = before.filter(|before| time.duration_since(before.0) < ttl.duration()).map_or(0, |before| before.1);
        cost += read as f64 * price.cache_read + (tokens - read) as f64 * write + 100.0 * price.output;
    }
    cost / 1_000_000.0
}

proptest! {
    /// PRICE-1: with everything kept, a session costs what its requests' sizes say, at both lifetimes of the cache.
    #[test]
    fn keeping_everything_costs_what_a_tiny_model_says(rounds in rounds()) {
        let (sample, requests) = session(&rounds);
        let total = bill(&sample, &PricePolicy::Everything);
        for ttl in [Ttl::FiveMinutes, Ttl::OneHour] {
            let expected = tiny_model(&requests, ttl);
            let got = total.cost.at(ttl);
            prop_assert!((got / expected - 1.0).abs() < 0.002, "{got} instead of {expected} at {ttl:?}");
        }
        prop_assert_eq!(total.requests, rounds.len());
    }

    /// PRICE-1: a policy that clears nothing costs what keeping everything costs.
    #[test]
    fn a_policy_that_clears_nothing_keeps_everything(rounds in rounds()) {
        let (sample, _) = session(&rounds);
        let everything = bill(&sample, &PricePolicy::Everything);
        for policy in [
            PricePolicy::Ours(Box::new(Layers::none(window(200_000)))),
            PricePolicy::Age(AgeRule { rounds: 5, read_rounds: 5, least_tokens: u64::MAX }),
            PricePolicy::Mask(MaskRule { rounds: usize::MAX }),
            PricePolicy::Provider(ProviderRule { trigger: u64::MAX, keep: 5, least_tokens: 0 }),
        ] {
            prop_assert_eq!(&bill(&sample, &policy).cost, &everything.cost, "{:?}", policy);
        }
    }

    /// PRICE-1: as recorded, a session costs the sum of its usage at list prices: each reply once, however many lines it has.
    #[test]
    fn the_recorded_cost_is_the_sum_of_the_usage(rounds in rounds()) {
        let (mut sample, requests) = session(&rounds);
        sample.beside("msg-elsewhere", &json!({"input_tokens": 1_000, "output_tokens": 10}));
        sample.beside("msg-elsewhere", &json!({"input_tokens": 1_000, "output_tokens": 20}));
        let price = model_price();
        let expected: f64 = requests
            .iter()
            .map(|(_, tokens)| *tokens as f64 * price.cache_write_5m + 100.0 * price.output)
            .chain([1_000.0 * price.input + 20.0 * price.output])
            .sum::<f64>() / 1_000_000.0;
        let total = bill(&sample, &PricePolicy::Recorded);
        prop_assert!((total.cost.five_minutes - expected).abs() < 1e-9, "{:?} instead of {expected}", total.cost);
        prop_assert_eq!(total.cost.five_minutes, total.cost.one_hour);
        prop_assert_eq!(total.requests, rounds.len() + 1);
    }
}

/// PRICE-1: an edit whose text has left the view costs one more request that reads the file again; the next edit of that
/// file does not.
#[test]
fn an_edit_without_its_text_reads_the_file_again() {
    let mut sample = Sample::default();
    sample.say("Mend it.");
    sample.read("/p/a.rs", 9_000);
    sample.edit("/p/a.rs", 3);
    (0..8).for_each(|at| sample.read(&format!("/p/other-{at}.rs"), 3_000));
    sample.edit("/p/a.rs", 7);
    sample.edit("/p/a.rs", 8);
    let (everything, age) = (PricePolicy::Everything, AgeRule { rounds: 5, read_rounds: 5, least_tokens: 10_000 });
    let kept = bill(&sample, &everything);
    assert_eq!((kept.edits, kept.missed_edits, kept.regrets.five_minutes), (3, 0, 0.0));
    let cleared = bill(&sample, &PricePolicy::Age(age));
    assert_eq!((cleared.edits, cleared.missed_edits), (3, 1), "the second edit; the third sees what was read again");
    let price = model_price();
    let read_alone = PROLOGUE as f64 * price.cache_read / 1_000_000.0;
    assert!(cleared.regrets.five_minutes > read_alone, "{cleared:?}");
    assert_eq!(cleared.requests, kept.requests, "the request that reads again belongs to the edit's");
    let never_shown = PricePolicy::Mask(MaskRule { rounds: 1 });
    let mut sample = Sample::default();
    sample.say("Mend it.");
    (0..4).for_each(|at| sample.read(&format!("/p/{at}.rs"), 500));
    sample.edit("/p/new.rs", 1);
    assert_eq!(bill(&sample, &never_shown).missed_edits, 0, "what was never in view is not missed");
}

/// PRICE-1: a file that is read again is seen whole, with what was written and edited since; edits of other parts of it are
/// not missed.
#[test]
fn a_file_that_is_read_again_is_seen_whole() {
    let mut sample = Sample::default();
    sample.say("Mend it.");
    let part = |at: usize| -> String {
        (at..at + 300).map(|line| format!("{line}\tline {line} of /p/a.rs says something\n")).collect()
    };
    for offset in [0, 300] {
        sample.round("Read", json!({"file_path": "/p/a.rs", "offset": offset, "limit": 300}), &part(offset));
    }
    (0..8).for_each(|at| sample.read(&format!("/p/other-{at}.rs"), 3_000));
    sample.edit("/p/a.rs", 7);
    sample.edit("/p/a.rs", 307);
    let age = AgeRule { rounds: 5, read_rounds: 5, least_tokens: 10_000 };
    let cleared = bill(&sample, &PricePolicy::Age(age));
    assert_eq!((cleared.edits, cleared.missed_edits), (2, 1));
}

/// PRICE-1, COMPACT-4: after a compaction the files come back that a session would bring back, as they were then.
#[test]
fn files_come_back_after_a_compaction() {
    let mut sample = Sample::default();
    sample.say("Mend it.");
    sample.read("/p/a.rs", 2_000);
    let talk = |sample: &mut Sample| {
        for at in 0..30 {
            sample.reply(&text(3_000, &format!("thought {at}")), &[]);
            sample.say("Go on.");
        }
    };
    talk(&mut sample);
    sample.edit("/p/a.rs", 7);
    let layers = Layers { window: window(100_000), ..Layers::default() };
    let priced = |layers: Layers| bill(&sample, &PricePolicy::Ours(Box::new(layers)));
    let (restored, forgotten) = (priced(layers.clone()), priced(Layers { restored_files: 0, ..layers }));
    assert!(restored.compactions() > 0 && forgotten.compactions() > 0);
    assert_eq!((restored.missed_edits, forgotten.missed_edits), (0, 1));
}

/// PRICE-1: the plain rules clear in batches, or at every step; what changes has to be written again.
#[test]
fn plain_rules_pay_for_what_they_change() {
    let mut sample = Sample::default();
    sample.say("Look around.");
    (0..24).for_each(|at| sample.read(&format!("/p/{at}.rs"), 2_000));
    let everything = bill(&sample, &PricePolicy::Everything).cost.five_minutes;
    let age = |least_tokens| PricePolicy::Age(AgeRule { rounds: 5, read_rounds: 5, least_tokens });
    let (batches, steps) = (bill(&sample, &age(20_000)), bill(&sample, &age(0)));
    assert_eq!(batches.times("clear"), 1, "{batches:?}");
    assert_eq!(steps.times("clear"), 18);
    assert!(steps.cost.five_minutes > batches.cost.five_minutes);
    assert!(batches.cost.five_minutes < everything);
    let masked = bill(&sample, &PricePolicy::Mask(MaskRule { rounds: 10 }));
    assert!(masked.times("clear") == 13 && masked.cost.five_minutes > everything, "{masked:?}");
}

/// PRICE-1, MICRO-4: the provider clears from its trigger on, all but the newest, and goes on with every request.
#[test]
fn the_providers_clearing_begins_at_its_trigger() {
    let rule = ProviderRule::of(&Layers { window: window(200_000), ..Layers::default() });
    assert_eq!(rule, ProviderRule { trigger: 147_000, keep: 5, least_tokens: 107_000 });
    let mut sample = Sample::default();
    sample.say("Look around.");
    (0..30).for_each(|at| sample.read(&format!("/p/{at}.rs"), 5_000));
    let total = bill(&sample, &PricePolicy::Provider(rule));
    let begins = (147_000 - PROLOGUE) / 5_000;
    assert!((30 - begins as usize).abs_diff(total.times("clear")) <= 2, "{total:?}");
}

/// PRICE-1: our layers are the real ones: in a small window they clear and compact, and what they ask a model for is in the
/// bill.
#[test]
fn our_layers_are_billed_with_their_digests_and_summaries() {
    let mut sample = Sample::default();
    sample.say("Look around.");
    for at in 0..40 {
        sample.round("Bash", json!({"command": format!("make step-{at}")}), &text(3_000, &format!("step {at}")));
    }
    (0..30).for_each(|at| sample.say(&text(2_000, &format!("wish {at}"))));
    sample.reply("Done.", &[]);
    let small = bill(&sample, &ours(100_000));
    assert!(small.times("clear") > 0 && small.compactions() > 0, "{small:?}");
    assert!(small.forks.five_minutes > 0.0 && small.forks.one_hour > 0.0);
    assert!(small.cost.five_minutes < bill(&sample, &PricePolicy::Everything).cost.five_minutes);
    let when_full = Layers { window: window(1_000_000), clear_when: ClearWhen::Window, ..Layers::default() };
    let large = bill(&sample, &PricePolicy::Ours(Box::new(when_full)));
    assert_eq!((large.times("clear"), large.compactions(), large.forks.five_minutes), (0, 0, 0.0));
}

/// PRICE-1: what the recording program compacted is priced whole under a policy, and counted as it was recorded.
#[test]
fn a_compaction_in_the_record_is_not_played() {
    let mut sample = Sample::default();
    sample.say("Mend it.");
    sample.read("/p/a.rs", 9_000);
    sample.compact();
    sample.edit("/p/a.rs", 3);
    let everything = bill(&sample, &PricePolicy::Everything);
    assert_eq!((everything.compactions(), everything.missed_edits, everything.requests), (0, 0, 2));
    let last = price(sample.lines(), &PricePolicy::Everything, &Prices::default()).requests.pop().unwrap();
    let all = (PROLOGUE + 9_000) as f64 * model_price().cache_read / 1_000_000.0;
    assert!(last.cost.five_minutes > all, "the file is still there: {last:?}");
    assert_eq!(bill(&sample, &PricePolicy::Recorded).compactions(), 1);
}

/// PRICE-1: what was asked outside the conversation is recorded; what layers asked for is no part of what stays the same under
/// other policies, and what a subagent used is left out where its own file is priced.
#[test]
fn forks_in_the_record_count_once() {
    let mut sample = Sample::default();
    sample.say("Mend it.");
    sample.reply("Done.", &[]);
    let mut lines = sample.lines();
    for agent in ["clear", "extract", "explore", "explore: hook"] {
        let usage = json!({"input_tokens": 1_000_000});
        let fact = json!({"kind": "side", "agent": agent, "model": MODEL, "usage": usage});
        let line = json!({"type": "meta", "uuid": agent, "version": "cairn-1", "meta": fact});
        lines.push(Line::parse(line.to_string().as_bytes()).unwrap());
    }
    let cost = |bill: SessionBill| (bill.total().cost.five_minutes / model_price().input).round();
    let recording = Recording::of(lines, &Prices::default());
    assert_eq!(cost(recording.bill(&PricePolicy::Recorded)), 4.0);
    assert_eq!(cost(recording.bill_beside()), 3.0, "without what is for a layer");
    let recording = recording.without_subagents(&["explore".to_owned()]);
    assert_eq!(cost(recording.bill(&PricePolicy::Recorded)), 2.0);
    assert_eq!(cost(recording.bill_beside()), 1.0);
}
