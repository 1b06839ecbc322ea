use transcript::window::{Window, WindowHints};

use crate::stage::{Stage, say};
use crate::worker;

fn window(size: u64) -> Window {
    Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() })
}

#[tokio::test]
async fn experiment() {
    let mut stage = Stage::new(&format!("[model]\nwindow = 100000\n{}", worker::script(100))).await;
    worker::equip(&stage.project(), 10_000);
    stage.layers.window = window(100_000);
    if std::env::var("ECONOMY").is_ok() {
        stage.layers.when = context::micro::When::Economy;
    }
    if std::env::var("NOCLEAR").is_ok() {
        stage.layers.clear = false;
    }
    if std::env::var("NONOTES").is_ok() {
        stage.layers.notes = false;
    }
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "Do all the steps.").await;
    println!("{:?} {}", turn.end, turn.text);
    let report = stage.simulator.report();
    let mut total = 0.0;
    for line in &report.requests {
        let cost = line.input.uncached as f64
            + (line.input.write_5m as f64) * 1.25
            + line.input.read as f64 * 0.1
            + line.output as f64 * 5.0;
        total += cost;
        println!(
            "{:3} {:20} unc {:6} w {:6} r {:6} out {:5} = {:8.0} {} {}",
            line.index,
            line.rule.clone().unwrap_or_default(),
            line.input.uncached,
            line.input.write_5m,
            line.input.read,
            line.output,
            cost,
            line.status,
            line.error.clone().unwrap_or_default()
        );
    }
    println!("total {total} done {:?}", worker::done(&stage.project()).len());
    for event in stage.events.lock().unwrap().iter() {
        match event {
            engine::Event::Cleared { .. }
            | engine::Event::Compacted { .. }
            | engine::Event::CompactionFailed { .. }
            | engine::Event::NotesUpdated { .. }
            | engine::Event::CacheBroke(_)
            | engine::Event::Warning(_) => println!("{event:?}"),
            _ => {}
        }
    }
}
