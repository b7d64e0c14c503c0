//! The incident runbook, in virtual time.

mod restarts;

use std::collections::BTreeMap;

use outflow_core::runbook::{Answered, Due, Incident, Reading, Runbook, Settings, State, Step};
use outflow_core::tally::{Counter, Tally, Window};
use outflow_core::time::{Mono, Nanos, Wall};
use proptest::prelude::*;

const GOOGLE: &str = "isp:google";

struct Counted<'a> {
    tally: &'a Tally,
    now: Mono,
    has_rate: bool,
}

impl Reading for Counted<'_> {
    fn destination(&self) -> &str {
        GOOGLE
    }

    fn count(&self, window: Window, counter: Counter) -> u64 {
        self.tally.count(self.now, window, counter)
    }

    fn has_rate(&self) -> bool {
        self.has_rate
    }
}

/// A destination that is sent to once a second, and its runbook.
struct Scene {
    book: Runbook,
    settings: Settings,
    tally: Tally,
    secs: u64,
    canary: Option<Answered>,
    has_rate: bool,
    done: Vec<(u64, Step)>,
    last: Option<Incident>,
}

impl Scene {
    fn new(settings: Settings) -> Self {
        Self {
            book: Runbook::new(settings.clone(), [], Wall(0)),
            settings,
            tally: Tally::default(),
            secs: 0,
            canary: None,
            has_rate: true,
            done: Vec::new(),
            last: None,
        }
    }

    /// Another process goes on with what was last written down. It has counted
    /// nothing yet.
    fn restart(&mut self) {
        self.book = Runbook::new(self.settings.clone(), self.last.clone(), self.now());
        self.tally = Tally::default();
    }

    /// Sends so many a second for so long, of which `refused` in a hundred are
    /// refused as too fast; looks every 10 s.
    fn send(&mut self, secs: u64, a_second: u32, refused: u32) {
        for _ in 0..secs {
            self.secs += 1;
            let mono = Mono(self.secs * 1_000_000_000);
            self.tally.add(mono, Counter::Attempts, a_second);
            let bad = a_second * refused / 100;
            self.tally.add(mono, Counter::Reply429, bad);
            self.tally.add(mono, Counter::Accepted, a_second - bad);
            if self.secs.is_multiple_of(10) {
                self.look();
            }
        }
    }

    fn now(&self) -> Wall {
        Wall(0) + Nanos::from_secs(self.secs)
    }

    fn look(&mut self) {
        let now = Mono(self.secs * 1_000_000_000);
        let reading = Counted {
            tally: &self.tally,
            now,
            has_rate: self.has_rate,
        };
        let canaries = self.canary.map(|it| (GOOGLE.to_owned(), it));
        let canaries = BTreeMap::from_iter(canaries);
        for Due { incident, steps } in self.book.step(self.now(), &[reading], &canaries) {
            self.done
                .extend(steps.into_iter().map(|step| (self.secs, step)));
            self.last = Some(incident);
        }
    }

    fn incident(&self) -> Option<&Incident> {
        self.book.incidents().next()
    }

    /// Times and rates of all changes of the rate.
    fn rates(&self) -> Vec<(u64, u16)> {
        let mut rates: Vec<(u64, u16)> = Vec::new();
        for (at, step) in &self.done {
            let rate = match step {
                Step::Slow { permille, .. } => *permille,
                Step::Lift => 1_000,
                _ => continue,
            };
            if rates.last().is_none_or(|(_, last)| *last != rate) {
                rates.push((*at, rate));
            }
        }
        rates
    }

    fn count(&self, wanted: Step) -> usize {
        self.done.iter().filter(|(_, step)| *step == wanted).count()
    }
}

fn all() -> Settings {
    Settings {
        can_pause: true,
        can_detour: true,
        ..Settings::default()
    }
}

#[test]
fn an_incident_goes_by_the_book() {
    let mut scene = Scene::new(all());
    scene.send(3_600, 10, 0);
    assert_eq!(scene.done, [], "all is well");
    scene.send(60, 10, 20);
    let opened = scene.done.first().unwrap().0;
    let steps: Vec<Step> = scene.done.iter().map(|(_, step)| *step).collect();
    assert!(
        matches!(
            steps[..],
            [
                Step::Open,
                Step::Pause,
                Step::Detour,
                Step::Slow { permille: 500, .. }
            ]
        ),
        "{steps:?}"
    );
    let incident = scene.incident().unwrap().clone();
    assert_eq!(incident.state, State::Mitigating);
    let evidence = &incident.evidence[0];
    assert_eq!(
        (evidence.rule.as_str(), evidence.window.as_str()),
        ("too fast", "15m")
    );
    assert!(evidence.part * 100 > evidence.whole, "{evidence:?}");
    assert!(
        incident.sentence().contains("50%"),
        "{}",
        incident.sentence()
    );

    // It is quiet from now on: 30 min calm, then a tenth each 10 min.
    scene.send(4 * 3_600, 10, 0);
    let rates = scene.rates();
    let steps: Vec<u16> = rates.iter().map(|(_, rate)| *rate).collect();
    assert_eq!(steps, [500, 600, 700, 800, 900, 1_000]);
    assert!(rates[1].0 - opened >= 1_800, "{rates:?}");
    for pair in rates[1..].windows(2) {
        assert!(pair[1].0 - pair[0].0 >= 600, "{rates:?}");
    }
    assert_eq!(scene.count(Step::Resume), 1);
    assert_eq!(scene.count(Step::Return), 1);
    let resumed = scene.done.iter().find(|(_, step)| *step == Step::Resume);
    assert_eq!(resumed.unwrap().0, rates[1].0, "with the first step up");
    assert!(scene.incident().is_none());
    let last = scene.last.unwrap();
    assert_eq!((last.state, last.rate_permille), (State::Closed, 1_000));
}

#[test]
fn few_refusals_and_little_mail_open_nothing() {
    let mut scene = Scene::new(all());
    scene.send(4 * 3_600, 200, 1);
    assert_eq!(scene.done, [], "1 % is not more than 1 %");
    let mut scene = Scene::new(all());
    // 90 in 15 minutes.
    for _ in 0..90 {
        scene.send(1, 1, 100);
        scene.send(9, 0, 0);
    }
    assert_eq!(scene.done, [], "fewer than 100 say nothing");
}

#[test]
fn what_goes_on_is_cut_again_and_what_comes_back_too_but_not_for_ever() {
    let mut scene = Scene::new(all());
    scene.send(3 * 3_600, 10, 20);
    let rates = scene.rates();
    let steps: Vec<u16> = rates.iter().map(|(_, rate)| *rate).collect();
    assert_eq!(steps, [500, 250, 125], "then a person must decide");
    for pair in rates.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= 1_800, "one at a time: {rates:?}");
    }
    assert_eq!(scene.count(Step::Open), 1);
    assert_eq!(scene.count(Step::Pause), 1);
    assert_eq!(scene.incident().unwrap().state, State::Mitigating);
    scene.send(2_000, 10, 0);
    scene.send(600, 10, 0);
    let before = scene.incident().unwrap().rate_permille;
    assert_eq!(scene.incident().unwrap().state, State::Recovering);
    scene.send(300, 10, 30);
    let incident = scene.incident().unwrap();
    assert_eq!(incident.state, State::Mitigating, "it came back");
    assert_eq!(incident.rate_permille, before / 2);
    assert_eq!(
        scene.count(Step::Pause),
        2,
        "what was taken back is asked for again"
    );
    assert_eq!(scene.count(Step::Open), 1);
}

#[test]
fn without_leave_to_act_it_only_tells() {
    let mut scene = Scene::new(Settings {
        act: false,
        ..all()
    });
    scene.send(120, 10, 20);
    assert_eq!(scene.incident().unwrap().state, State::Open);
    scene.send(3_600, 10, 0);
    assert!(scene.incident().is_none());
    let steps: Vec<Step> = scene.done.iter().map(|(_, step)| *step).collect();
    let told = steps.iter().filter(|step| **step != Step::Note);
    assert_eq!(told.collect::<Vec<_>>(), [&Step::Open, &Step::Close]);
}

#[test]
fn deferrals_slow_down_and_no_more() {
    let mut scene = Scene::new(all());
    for second in 1..=300_u64 {
        let now = Mono(second * 1_000_000_000);
        scene.tally.add(now, Counter::Attempts, 100);
        scene.tally.add(now, Counter::Reply4xx, 10);
    }
    scene.secs = 300;
    scene.look();
    let steps: Vec<Step> = scene.done.iter().map(|(_, step)| *step).collect();
    assert!(
        matches!(steps[..], [Step::Open, Step::Slow { permille: 500, .. }]),
        "{steps:?}"
    );
}

#[test]
fn bounces_of_yesterday_do_not_open_another_incident_today() {
    let mut scene = Scene::new(all());
    let bounce = |scene: &mut Scene, secs: u64, bounced: u32| {
        for _ in 0..secs {
            scene.secs += 1;
            let now = Mono(scene.secs * 1_000_000_000);
            scene.tally.add(now, Counter::Attempts, 10);
            scene.tally.add(now, Counter::Bounced, bounced);
            if scene.secs.is_multiple_of(10) {
                scene.look();
            }
        }
    };
    // More than 2 % of the day, also eight hours later.
    bounce(&mut scene, 3_600, 3);
    assert_eq!(scene.count(Step::Open), 1);
    bounce(&mut scene, 8 * 3_600, 0);
    assert_eq!((scene.count(Step::Open), scene.count(Step::Close)), (1, 1));
    bounce(&mut scene, 600, 3);
    assert_eq!(scene.count(Step::Open), 2, "but those of today do");
}

#[test]
fn canaries_go_before_each_step_and_a_refused_one_holds_it() {
    let mut scene = Scene::new(Settings {
        canaries: [GOOGLE.to_owned()].into(),
        ..all()
    });
    scene.send(120, 10, 20);
    // Nobody answers.
    scene.send(2 * 3_600, 10, 0);
    assert_eq!(scene.rates().len(), 1, "{:?}", scene.rates());
    assert!(scene.count(Step::Canary) >= 3);
    scene.canary = Some(Answered::Refused);
    scene.send(3_600, 10, 0);
    assert_eq!(scene.rates().len(), 1);
    let lines = &scene.incident().unwrap().lines;
    assert!(lines.last().unwrap().why.contains("refused"), "{lines:?}");
    scene.canary = Some(Answered::Taken);
    let before = scene.count(Step::Canary);
    scene.send(2 * 3_600, 10, 0);
    let steps: Vec<u16> = scene.rates().iter().map(|(_, rate)| *rate).collect();
    assert_eq!(steps, [500, 600, 700, 800, 900, 1_000]);
    let sent = scene.count(Step::Canary) - before;
    assert!((5..=6).contains(&sent), "one before each step: {sent}");
}

#[test]
fn somebody_can_end_it() {
    let mut scene = Scene::new(all());
    scene.send(120, 10, 20);
    let id = scene.incident().unwrap().id;
    assert!(
        scene
            .book
            .close(id + 1, scene.now(), String::new())
            .is_none()
    );
    let due = scene
        .book
        .close(id, scene.now(), "enough".to_owned())
        .unwrap();
    let steps = [Step::Resume, Step::Return, Step::Lift, Step::Close];
    assert_eq!(due.steps, steps);
    assert!(scene.incident().is_none());
    // It goes on all the same: who ended it knows.
    scene.send(3_600, 10, 20);
    assert!(scene.incident().is_none(), "not before all was quiet");
    scene.send(600, 10, 0);
    scene.send(120, 10, 20);
    assert_eq!(scene.incident().unwrap().id, id + 1, "but then");
}

#[test]
fn leave_to_act_that_is_taken_away_holds_for_what_is_under_way() {
    let mut scene = Scene::new(all());
    scene.send(120, 10, 20);
    scene.settings.act = false;
    scene.restart();
    scene.send(2 * 3_600, 10, 20);
    assert_eq!(scene.rates().len(), 1, "no cut: {:?}", scene.rates());
    // It still comes back, and does not go down again.
    scene.send(3_000, 10, 0);
    let before = scene.incident().unwrap().rate_permille;
    assert_eq!(scene.incident().unwrap().state, State::Recovering);
    scene.send(300, 10, 30);
    let incident = scene.incident().unwrap();
    assert_eq!(
        (incident.state, incident.rate_permille),
        (State::Mitigating, before),
        "it waits"
    );
    assert!(incident.lines.last().unwrap().why.contains("too fast"));
    assert_eq!(scene.count(Step::Pause), 1);
}

#[test]
fn without_a_rate_what_was_sent_is_cut() {
    let mut scene = Scene::new(all());
    scene.has_rate = false;
    scene.send(600, 10, 0);
    scene.send(60, 40, 20);
    let incident = scene.incident().unwrap();
    assert_eq!(
        (incident.state, incident.rate_permille),
        (State::Mitigating, 500)
    );
    let measured = incident.measured.unwrap().in_a_second();
    // Looked at while the last minute was still filling up.
    assert!((10.0..=40.0).contains(&measured), "{measured}");
}

#[test]
fn canaries_that_nobody_can_send_are_none() {
    let mut scene = Scene::new(Settings {
        canaries: [GOOGLE.to_owned()].into(),
        ..all()
    });
    scene.canary = Some(Answered::Absent);
    scene.send(120, 10, 20);
    scene.send(3 * 3_600, 10, 0);
    assert_eq!(scene.count(Step::Canary), 0);
    assert_eq!(scene.count(Step::Close), 1);
}

/// Refusals in a hundred, for so many minutes.
fn weather() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let spell = (1_u64..90, prop_oneof![3 => Just(0_u32), 1 => 1_u32..60]);
    proptest::collection::vec(spell, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// No step up before its time, one at a time, and a slower rate always
    /// holds for longer than until the next look.
    #[test]
    fn no_step_comes_before_its_time(weather in weather()) {
        let mut scene = Scene::new(all());
        for (minutes, refused) in weather {
            scene.send(minutes * 60, 20, refused);
        }
        let (mut rate, mut changed, mut held) = (1_000_u16, 0_u64, None::<Wall>);
        let mut is_open = false;
        for (at, step) in &scene.done {
            let now = Wall(0) + Nanos::from_secs(*at);
            match *step {
                Step::Open => {
                    prop_assert!(!is_open);
                    is_open = true;
                }
                Step::Close => is_open = false,
                Step::Slow { permille, until } => {
                    prop_assert!(is_open && until > now);
                    prop_assert!(held.is_none_or(|held| held >= now), "it ran out at {at}");
                    if permille > rate {
                        prop_assert!(permille - rate <= 100 && at - changed >= 600);
                    }
                    if permille != rate {
                        (rate, changed) = (permille, *at);
                    }
                    held = Some(until);
                }
                Step::Lift => {
                    prop_assert!(at - changed >= 600 && rate >= 900);
                    (rate, changed, held) = (1_000, *at, None);
                }
                _ => {}
            }
        }
    }
}
