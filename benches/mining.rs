//! Template mining alone: the lines of a file, whole and in memory, go to the miner as messages, as `benches/logs.py` gives
//! them to Drain3. Prints the seconds that it took.
//!
//! `cargo bench --workspace --bench mining -- FILE`

use std::time::Instant;

use oncall::analysis::patterns::{Assignments, Miner, MinerOptions, Services};
use oncall::domain::LogEvent;

fn main() {
    // Cargo adds `--bench` of its own.
    let path = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let path = path.expect("usage: cargo bench --workspace --bench mining -- FILE");
    let text = std::fs::read_to_string(&path).expect("a text file");
    let options = MinerOptions { window: None, services: Services::Together, assignments: Assignments::Dropped };
    let mut miner = Miner::new(options);
    let mut event =
        LogEvent { at: None, level: None, service: None, instance: None, message: String::new(), line: 1, lines: 1 };
    let started = Instant::now();
    for line in text.lines() {
        event.message.clear();
        event.message.push_str(line);
        miner.add(&event);
    }
    let mined = miner.finish();
    println!("{} {}", started.elapsed().as_secs_f64(), mined.patterns.len());
}
