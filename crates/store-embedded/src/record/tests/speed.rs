//! How fast receipts are applied: a figure for people, no test of a machine.

use std::time::Instant;

use outflow_core::message::State;
use outflow_core::name::Name;

use super::{LONG, Scratch, happening, open, receipt};

#[test]
#[ignore = "a measurement: run it with --release --ignored --nocapture"]
#[expect(clippy::print_stdout, reason = "its result is a figure")]
fn rows_per_second() {
    const ROWS: u64 = 600_000;
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let receipts = (0..ROWS).map(|seq| {
        let is_bad = seq % 50 == 0;
        let state = if is_bad {
            State::Bounced
        } else {
            State::Delivered
        };
        let mut one = receipt(seq, state);
        one.key.tenant = Name::from(format!("tenant-{}", seq.wrapping_mul(0x9e37_79b9) % 500));
        one.envelope = vec![7; 160];
        if !is_bad {
            one.events.remove(1);
            one.events.push(happening(one.settled_at, "sending"));
        }
        one
    });
    let receipts: Vec<_> = receipts.collect();
    let begun = Instant::now();
    for (no, part) in (1..).zip(receipts.chunks(500)) {
        record.settle(part.to_vec(), no * 500);
    }
    let handed_over = begun.elapsed();
    assert!(record.wait_applied(ROWS, LONG));
    let applied = begun.elapsed();
    let cpu_us = cpu_ns_of_the_thread() as f64 / 1_000.0 / ROWS as f64;
    let bytes = std::fs::metadata(scratch.file()).unwrap().len();
    println!(
        "{ROWS} receipts: handed over in {handed_over:.2?}, applied in {applied:.2?}: {:.0} a second, {cpu_us:.1} us of processor and {} bytes each",
        ROWS as f64 / applied.as_secs_f64(),
        bytes / ROWS,
    );
}

/// What the thread that writes has used of a processor, where the system says.
fn cpu_ns_of_the_thread() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let is_ours = |path: &std::path::Path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "record")
    };
    let mut ours = tasks.map(|task| task.path()).filter(|path| is_ours(path));
    ours.next()
        .and_then(|path| std::fs::read_to_string(path.join("schedstat")).ok())
        .and_then(|line| line.split(' ').next()?.parse().ok())
        .unwrap_or_default()
}
