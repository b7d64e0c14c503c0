//! The power goes again and again, in the middle of random work, and one store
//! goes on: after each time it is as it was before the last piece of work, or
//! after it, and every body can be read.

use std::sync::atomic::Ordering::SeqCst;

use outflow_ports::conformance::store::Harness;

use super::model::Game;

/// Power losses of the short form.
const LOSSES: u64 = 24;
/// The disk works at most so many times more before it stops.
const OPERATIONS_MAX: u64 = 60;

/// Works until the disk stops, at a moment that the seed decides.
fn work_until_death(game: &mut Game) {
    let at = game.entropy.between(1, OPERATIONS_MAX);
    let mood = &game.driver.rig.disk.mood;
    mood.dies_at
        .store(mood.operations.load(SeqCst) + at, SeqCst);
    while !game.driver.is_dead() {
        // Some commits fail before, or find no room.
        match game.entropy.between(0, 19) {
            0 => game.driver.rig.fail_commits(true),
            1 => game.driver.rig.fill_disk(true),
            2..=9 => heal(game),
            _ => {}
        }
        game.step();
        if !game.driver.is_dead() {
            game.check();
        }
    }
    heal(game);
}

fn heal(game: &mut Game) {
    game.driver.rig.fail_commits(false);
    game.driver.rig.fill_disk(false);
}

/// Every third time a process is killed before, and what the next one does may
/// be lost with what the first one left in the machine's memory.
#[test]
#[expect(clippy::print_stderr, reason = "what was tried is told")]
fn the_power_goes_again_and_again() {
    let number = |name, usual| std::env::var(name).map_or(usual, |it| it.parse().unwrap());
    let losses: u64 = number("OUTFLOW_POWER_LOSSES", LOSSES);
    let seed = number("OUTFLOW_FIRST_SEED", 0);
    let (mut game, mut kills) = (Game::new(seed), 0);
    for no in 0..losses {
        if no % 3 == 2 {
            work_until_death(&mut game);
            game.kill();
            kills += 1;
        }
        work_until_death(&mut game);
        game.restart();
    }
    let tally = game.tally;
    eprintln!(
        "{losses} power losses, {kills} of them after a kill: {} acknowledged, none lost; {} times \
         a body was read back and held; {} times the work under way was there afterwards, else \
         it was not",
        tally.accepted, tally.read, tally.done_unheard
    );
    assert_eq!(tally.deaths, losses + kills);
    assert!(
        tally.accepted > losses,
        "there was hardly any work: {tally:?}"
    );
}
