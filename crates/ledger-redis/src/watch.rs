//! Looks at what others did: losses of state, pauses, new policies. Mostly they
//! are heard of at once, and looked at now and then in case they are not.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use outflow_core::ledger::debits::{DebitPlace, DebitReport, QUIET};
use outflow_core::ledger::paid;
use outflow_core::limit::LimitSpec;
use outflow_core::policy::key::LimitKey;
use outflow_core::time::{Nanos, Wall};
use redis::Value;
use tokio::time::MissedTickBehavior;

use crate::answer::{Answer, text};
use crate::ask;
use crate::desk::{Desk, lock};
use crate::health::Phase;
use crate::script::{Call, Script};
use crate::server::{Fault, Server};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Of so many tags one is looked at without a reason.
const PARTS: u8 = 4;
/// Limits of one tag whose pauses are looked at.
const PAUSES_MAX: usize = 100;
/// Limits that are reported at once.
const REPORTS_MAX: usize = 100;
/// The wait before another subscription.
const SUBSCRIBE_PAUSE: Duration = Duration::from_millis(250);

/// Looks now and then, and whenever there is a reason.
pub(crate) async fn look(desk: Arc<Desk>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut tick = 0;
    loop {
        // Whoever loses state loses all that one server keeps: a look at some
        // tags finds it out, and then there is a reason to look at all.
        let part = tokio::select! {
            _ = ticks.tick() => {
                tick = (tick + 1) % PARTS;
                Some(tick)
            }
            () = desk.look.notified() => None,
        };
        if let Some((server, phase)) = desk.server()
            && let Err(error) = look_once(&desk, &server, part).await
        {
            desk.failed(phase, &error);
        }
    }
}

async fn look_once(desk: &Desk, server: &Server, part: Option<u8>) -> Result<(), String> {
    let mut tags = desk.used_tags();
    tags.retain(|tag| part.is_none_or(|part| tag.0 % PARTS == part));
    let calls: Vec<Call> = tags
        .iter()
        .map(|tag| Call {
            script: Script::Look,
            keys: vec![desk.names.epoch(*tag), desk.names.pauses(*tag)],
            args: vec![PAUSES_MAX.to_string()],
        })
        .collect();
    let mut version = redis::cmd("GET");
    version.arg(desk.names.version());
    let answers = server.send(&[version]).await?;
    if let Some(Ok(value)) = answers.first() {
        let version = text(Some(value)).and_then(|text| text.parse().ok());
        desk.learn_version(version.unwrap_or_default());
    }
    for (tag, answer) in tags.iter().zip(call(desk, server, &calls).await?) {
        let Some(answer) = answer else { continue };
        desk.learn(*tag, &answer);
        for (key, lasts) in &answer.paused {
            hear_pause(desk, key, *lasts);
        }
    }
    report(desk, server).await
}

/// Calls scripts, whether the server knows them or not.
pub(crate) async fn call(
    desk: &Desk,
    server: &Server,
    calls: &[Call],
) -> Result<Vec<Option<Answer>>, String> {
    let values = call_raw(desk, server, calls).await?;
    let values = values.into_iter();
    Ok(values
        .map(|value| value.and_then(|value| Answer::read(&value)))
        .collect())
}

/// The same for scripts that answer otherwise.
pub(crate) async fn call_raw(
    desk: &Desk,
    server: &Server,
    calls: &[Call],
) -> Result<Vec<Option<Value>>, String> {
    let mut values = vec![None; calls.len()];
    let mut open: Vec<usize> = (0..calls.len()).collect();
    for by_source in [false, true] {
        if open.is_empty() {
            break;
        }
        let picked = open.iter().filter_map(|place| calls.get(*place));
        let commands: Vec<_> = picked
            .map(|call| desk.scripts.command(call, by_source))
            .collect();
        let answers = server.send(&commands).await?;
        let mut unknown = Vec::new();
        for (place, answer) in open.into_iter().zip(answers) {
            match answer {
                Ok(value) => {
                    if let Some(slot) = values.get_mut(place) {
                        *slot = Some(value);
                    }
                }
                Err(Fault::NoScript) => unknown.push(place),
                Err(Fault::Gone(error)) if !server.is_cluster() => return Err(error),
                Err(Fault::Gone(error) | Fault::Broken(error)) => desk.note_error(&error),
            }
        }
        open = unknown;
    }
    Ok(values)
}

/// Tells a ledger that lost its counts what this node debited.
async fn report(desk: &Desk, server: &Server) -> Result<(), String> {
    let unreported = lock(&desk.debits).unreported(|key| desk.epoch_of(key));
    for some in unreported.chunks(REPORTS_MAX) {
        let (now, wall) = (desk.mono(), desk.ledger_wall());
        let mut reports = Vec::new();
        for (key, epoch) in some {
            let report = lock(&desk.debits).report(now, wall, key, *epoch);
            let call = report.and_then(|report| report_call(desk, key, *epoch, &report));
            reports.extend(call.map(|call| (key, *epoch, call)));
        }
        let calls: Vec<Call> = reports.iter().map(|(_, _, call)| call.clone()).collect();
        let answers = call(desk, server, &calls).await?;
        for ((key, epoch, _), answer) in reports.iter().zip(answers) {
            if answer.is_some_and(|answer| answer.epoch == *epoch) {
                lock(&desk.debits).reported(key, *epoch);
            }
        }
    }
    Ok(())
}

fn report_call(desk: &Desk, key: &LimitKey, epoch: u64, report: &DebitReport) -> Option<Call> {
    let (kind, window) = match report.spec {
        LimitSpec::SlidingWindow { window, .. } => {
            // As long as the ledger counts: see the terms of a window.
            ("window", window + paid(desk.settings.leasing.life_max))
        }
        LimitSpec::CalendarWindow { .. } => ("calendar", Nanos::ZERO),
        _ => return None,
    };
    let (tag, limit) = desk.names.limit(key);
    let mut args = vec![
        report.version.to_string(),
        kind.to_owned(),
        desk.reporter.clone(),
        epoch.to_string(),
        ask::micros_up(QUIET).to_string(),
        ask::grain(window).to_string(),
        ask::micros_up(window).to_string(),
    ];
    for (place, tokens) in &report.debits {
        args.push(match place {
            DebitPlace::Age(age) => (age.0 / 1_000).to_string(),
            DebitPlace::Span(start, end) => {
                let micros = |wall: Wall| wall.0.div_euclid(1_000);
                format!("{}-{}", micros(*start), micros(*end))
            }
        });
        args.push(tokens.to_string());
    }
    Some(Call {
        script: Script::Report,
        keys: vec![desk.names.epoch(tag), limit],
        args,
    })
}

/// Hears what is published, over a connection of its own.
pub(crate) async fn listen(desk: Arc<Desk>) {
    let mut phases = desk.phases();
    loop {
        let up = phases.wait_for(|phase| matches!(phase, Phase::Up(_)));
        let Ok(phase) = up.await.map(|phase| *phase) else {
            return;
        };
        if let Some((server, _)) = desk.server() {
            match server.subscribe(&desk.names.channel()).await {
                Ok(mut subscription) => {
                    // What was said before this is looked at.
                    desk.look.notify_one();
                    let mut messages = subscription.on_message();
                    loop {
                        tokio::select! {
                            message = messages.next() => match message {
                                Some(message) => hear(&desk, message.get_payload_bytes()),
                                None => break,
                            },
                            _ = phases.wait_for(|now| *now != phase) => break,
                        }
                    }
                }
                Err(error) => desk.note_error(&error),
            }
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}

fn hear(desk: &Desk, message: &[u8]) {
    let Ok(message) = std::str::from_utf8(message) else {
        return;
    };
    match message.split_once(' ') {
        Some(("policies", version)) => {
            if let Ok(version) = version.parse() {
                desk.learn_version(version);
            }
        }
        Some(("pause", pause)) => {
            if let Some((micros, key)) = pause.split_once(' ')
                && let Ok(micros) = micros.parse()
            {
                hear_pause(desk, key, Nanos(micros).times(1_000));
            }
        }
        _ => {}
    }
}

fn hear_pause(desk: &Desk, key: &str, lasts: Nanos) {
    if let Ok(key) = key.parse::<LimitKey>() {
        desk.paused(&key, lasts);
    }
}
