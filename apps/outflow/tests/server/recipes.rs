//! The recipes of `docs/recipes`, as they stand there, against the real binary:
//! the server's own log of grants says whether a limit was kept. Beside them run
//! the limits that come with those programs; what these let through is printed.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::peers::peer;
use crate::process::{Place, Server, wait_for};
use crate::programs::{answers, free_ports, run};

/// The limit of most of them: 100/s burst 10.
const RATE_PER_S: u64 = 100;
const BURST: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// Enough to be held back by the limit for some seconds.
const TASKS: usize = 600;
const JOBS: usize = 401;

/// A program that ends with the test, and with it all that it has started.
struct Program(Child);

impl Program {
    /// What it says goes to a file.
    fn start(command: &mut Command, said: &Path, package: &str) -> Self {
        let said = File::create(said).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .process_group(0);
        let child = command.spawn().unwrap_or_else(|error| {
            let program = command.get_program().to_string_lossy().into_owned();
            panic!("{program}: {error}. Install it: apt-get install {package}")
        });
        Self(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill")
            .args(["-s", "KILL", "--", &group])
            .status();
        let _ = self.0.wait();
    }
}

/// A server with a throttle, which writes down what it grants.
struct Stage {
    server: Server,
    place: Place,
}

impl Stage {
    fn start(name: &str) -> Self {
        let place = Place::new(name);
        let log = place.dir.join("grants.jsonl");
        place.configure(&format!(
            "[throttle]\nlisten = \"127.0.0.1:0\"\ngrants_log = {log:?}\n"
        ));
        fs::create_dir(place.dir.join("starts")).unwrap();
        Self {
            server: place.start(),
            place,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Where it speaks the Redis protocol.
    fn address(&self) -> &str {
        let mut lines = self.server.greeting.iter();
        let line = lines.find_map(|line| line.strip_prefix("throttle"));
        line.unwrap().split_whitespace().next().unwrap()
    }

    /// A Redis for queues, and its port.
    fn redis(&self) -> (Program, u16) {
        let port = free_ports(1)[0];
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(&self.place.dir);
        let said = self.place.dir.join("redis.log");
        let redis = Program::start(&mut command, &said, "redis-server");
        assert!(answers(port), "redis-server does not listen");
        (redis, port)
    }

    /// Tells a program where the server is, over both protocols if `by_redis`.
    fn tell(&self, command: &mut Command, by_redis: bool) {
        command
            .current_dir(&self.place.dir)
            .env("OUTFLOW_SERVER", self.url())
            .env("OUTFLOW_TOKEN", &self.server.token)
            .env_remove("OUTFLOW_THROTTLE");
        if by_redis {
            command.env("OUTFLOW_THROTTLE", self.address());
        }
    }

    /// The lines that tasks of this name have written when they began.
    fn started(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.place.dir.join("starts").join(name));
        let text = text.unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until so many have begun: their lines.
    fn wait_started(&self, name: &str, count: usize) -> Vec<String> {
        wait_for(&format!("{count} starts of {name}"), || {
            let lines = self.started(name);
            (lines.len() >= count).then_some(lines)
        })
    }

    /// Stops the server, which writes its log to the end.
    fn stop(self) -> Grants {
        self.server.stop();
        let text = fs::read_to_string(self.place.dir.join("grants.jsonl")).unwrap();
        let lines = text.lines().map(|it| serde_json::from_str(it).unwrap());
        Grants(lines.collect())
    }
}

/// What a server has granted.
struct Grants(Vec<Value>);

impl Grants {
    /// When something of this key was granted, in order.
    fn of(&self, key: &str) -> Vec<u64> {
        let lines = self.0.iter().filter(|line| line["key"] == key);
        let mut times: Vec<u64> = lines
            .inspect(|line| assert_eq!(line["cost"], 1, "{line}"))
            .map(|line| line["at_ns"].as_u64().unwrap())
            .collect();
        times.sort_unstable();
        times
    }

    /// In no stretch of time was there more than the burst and what the rate
    /// gives meanwhile; and each start has had a grant of its own before it.
    fn judge(&self, key: &str, starts: &[u64]) {
        let grants = self.of(key);
        for (i, first) in grants.iter().enumerate() {
            for (j, last) in grants.iter().enumerate().skip(i) {
                let taken = (j - i + 1) as u64;
                assert!(
                    taken * SECOND_NS <= BURST * SECOND_NS + RATE_PER_S * (last - first),
                    "{key}: {taken} grants in {} ns",
                    last - first
                );
            }
        }
        assert_eq!(grants.len(), starts.len(), "{key}: grants and starts");
        for (no, (grant, start)) in grants.iter().zip(starts).enumerate() {
            assert!(grant <= start, "{key}: start {no} was before its grant");
        }
    }
}

/// The times at the beginning of lines, in order.
fn times<T: AsRef<str>>(lines: &[T]) -> Vec<u64> {
    let first = |line: &T| -> u64 {
        let word = line.as_ref().split(' ').next();
        word.unwrap().parse().unwrap()
    };
    let mut times: Vec<u64> = lines.iter().map(first).collect();
    times.sort_unstable();
    times
}

/// The most in any second.
fn most_in_a_second(times: &[u64]) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (last, time) in times.iter().enumerate() {
        while time - times[first] >= SECOND_NS {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most
}

/// Prints what a limit of 100 a second has let through.
fn print(who: &str, times: &[u64]) {
    let most = most_in_a_second(times);
    let ratio = most as f64 / RATE_PER_S as f64;
    let count = times.len();
    eprintln!("{who}: {count} in all, at most {most} in a second, {ratio:.2} times 100");
}

fn recipe(path: &str) -> PathBuf {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    docs.join(path).canonicalize().unwrap()
}

fn script(path: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/recipes");
    tests.join(path)
}

/// Celery with the recipe and the tasks of the test.
struct Celery<'a> {
    stage: &'a Stage,
    broker: String,
}

impl Celery<'_> {
    fn tell(&self, command: &mut Command) {
        let folders = [recipe("celery"), recipe("python"), script("")];
        self.stage.tell(command, true);
        command
            .env("BROKER_URL", &self.broker)
            .env("STARTS", self.stage.place.dir.join("starts"))
            .env("PYTHONPATH", std::env::join_paths(folders).unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1");
    }

    fn worker(&self, name: &str, more: &[&str]) -> Program {
        let mut command = Command::new(peer("celery/bin/celery"));
        self.tell(&mut command);
        command
            .args(["-A", "celery_tasks", "worker", "--loglevel", "WARNING"])
            .args(["--concurrency", "4", "--hostname", &format!("{name}@test")])
            .args(["--without-gossip", "--without-mingle"])
            .args(more);
        let said = self.stage.place.dir.join(format!("{name}.log"));
        Program::start(&mut command, &said, "python3-venv")
    }

    /// Adds tasks: their name and how many, as Python has it.
    fn fill(&self, tasks: &str) {
        let mut command = Command::new(peer("celery/bin/python"));
        self.tell(&mut command);
        let text = format!("import celery_tasks as tasks; tasks.fill(tasks.{tasks})");
        run(command.args(["-c", &text]), "python3-venv");
    }
}

#[test]
fn celery_keeps_a_limit_over_all_workers() {
    let stage = Stage::start("recipe-celery");
    let (_redis, port) = stage.redis();
    let celery = Celery {
        stage: &stage,
        broker: format!("redis://127.0.0.1:{port}/0"),
    };
    celery.fill(&format!("by_recipe, {TASKS}"));
    let workers = [celery.worker("one", &[]), celery.worker("two", &[])];
    let ours = times(&stage.wait_started("celery-recipe", TASKS));

    // Who goes back to the broker spends no attempt, and is not lost.
    celery.fill("put_off, 30");
    let put_off = stage.wait_started("celery-put-off", 30);
    assert!(put_off.iter().all(|it| it.ends_with(" 0")), "{put_off:?}");
    // Who fails does, and its slot is there for the next.
    celery.fill("fails_once, 5");
    let failed = stage.wait_started("celery-fails", 10);
    let first = failed.iter().filter(|it| it.ends_with(" 0"));
    assert_eq!(first.count(), 5, "{failed:?}");
    drop(workers);

    // Celery's own limit wakes up when tasks come in, so they do all the time.
    let quick = ["--prefetch-multiplier", "100"];
    let workers = [
        celery.worker("three", &quick),
        celery.worker("four", &quick),
    ];
    celery.fill("by_celery, 2");
    stage.wait_started("celery-own", 2);
    celery.fill("by_celery, 1200, 400");
    let theirs = times(&stage.started("celery-own"));
    drop(workers);

    let grants = stage.stop();
    grants.judge("celery", &ours);
    assert_eq!(grants.of("put-off").len(), 30);
    assert_eq!(grants.of("slot").len(), 10);
    print("Celery, grants of the recipe", &grants.of("celery"));
    print("Celery, starts by the recipe, two workers", &ours);
    print("Celery, starts by its rate_limit, two workers", &theirs);
}

/// Runs jobs of BullMQ: when they began.
fn bullmq(stage: &Stage, port: u16, mode: &str) -> Vec<u64> {
    let mut command = Command::new("node");
    stage.tell(&mut command, false);
    command.env("REDIS_PORT", port.to_string());
    command.args(["bullmq.mjs", mode, &JOBS.to_string()]);
    let said = run(&mut command, "nodejs");
    times(&said.lines().collect::<Vec<_>>())
}

#[test]
fn bullmq_keeps_a_limit_where_its_windows_meet() {
    let stage = Stage::start("recipe-bullmq");
    let (_redis, port) = stage.redis();
    // Node looks for modules beside the file that wants them.
    let dir = &stage.place.dir;
    symlink(peer("bullmq/node_modules"), dir.join("node_modules")).unwrap();
    for file in ["bullmq/throttle.mjs", "bullmq/worker.mjs"].map(recipe) {
        fs::copy(&file, dir.join(file.file_name().unwrap())).unwrap();
    }
    fs::copy(script("bullmq.mjs"), dir.join("bullmq.mjs")).unwrap();

    let ours = bullmq(&stage, port, "recipe");
    let theirs = bullmq(&stage, port, "own");
    let grants = stage.stop();
    grants.judge("bullmq", &ours);
    print("BullMQ, grants of the recipe", &grants.of("bullmq"));
    print("BullMQ, starts by the recipe", &ours);
    print("BullMQ, starts by its limiter", &theirs);
}

#[test]
fn python_asks_over_both_protocols() {
    let stage = Stage::start("recipe-python");
    let url = stage.url();
    // The package `redis` of Debian, which is old, and one of today.
    for (name, python) in [
        ("old", PathBuf::from("/usr/bin/python3")),
        ("new", peer("celery/bin/python")),
    ] {
        let mut command = Command::new(python);
        command
            .arg(script("client.py"))
            .args([url.as_str(), stage.address(), &stage.server.token, name])
            .env("PYTHONPATH", recipe("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let said = run(&mut command, "python3 python3-redis");
        assert_eq!(said, "done");
    }
    let grants = stage.stop();
    for key in ["old-http", "old-redis", "new-http", "new-redis"] {
        assert_eq!(grants.of(key).len(), 60, "{key}");
        assert_eq!(grants.of(&format!("{key}-slow")).len(), 2, "{key}");
        assert_eq!(grants.of(&format!("{key}-fork")).len(), 2, "{key}");
    }
}

/// Runs a command by the shell's recipe.
fn throttled(stage: &Stage, by_redis: bool, words: &[&str]) -> Output {
    let mut command = Command::new(recipe("shell/throttled"));
    stage.tell(&mut command, by_redis);
    let output = command.args(words).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{error}. Install it: apt-get install bash"))
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}

#[test]
fn a_shell_command_waits_for_its_turn() {
    let stage = Stage::start("recipe-shell");
    for by_redis in [false, true] {
        let throttled = |words: &[&str]| throttled(&stage, by_redis, words);
        let key = format!("shell \"{by_redis}\"");
        for _ in 0..5 {
            let done = throttled(&["-k", &key, "-r", "20/s burst 1", "--", "echo", "ran"]);
            assert_eq!(said(&done), "ran", "apt-get install curl redis-tools");
        }

        // It ends as its command does, and its slot is free again.
        let slot = format!("{key} slot");
        let holds = ["-k", &slot, "-c", "1", "-p", "0", "--"];
        let done = throttled(&[&holds[..], &["sh", "-c", "exit 7"]].concat());
        assert_eq!(done.status.code(), Some(7), "{}", said(&done));
        // Within the command nobody else has it.
        let inner = recipe("shell/throttled").display().to_string();
        let inner = inner.as_str();
        let done = throttled(&[&holds[..], &[inner], &holds[..], &["echo", "ran"]].concat());
        assert_eq!(done.status.code(), Some(75), "{}", said(&done));
        assert!(said(&done).contains("has nothing left"), "{}", said(&done));

        let both = ["-k", &slot, "-c", "1", "-k", &key, "-r", "20/s burst 1"];
        let done = throttled(&[&both[..], &["-u", "critical", "--", "echo", "ran"]].concat());
        assert_eq!(said(&done), "ran");
        for wrong in [["-r", "often"], ["-n", "2"]] {
            let limit = ["-k", "wrong", "-r", "1/s burst 1"];
            let done = throttled(&[&limit[..], &wrong, &["--", "echo", "ran"]].concat());
            assert_eq!(done.status.code(), Some(64), "{}", said(&done));
        }
    }
    let grants = stage.stop();
    for by_redis in [false, true] {
        let key = format!("shell \"{by_redis}\"");
        assert_eq!(grants.of(&key).len(), 6, "{key}");
        assert_eq!(grants.of(&format!("{key} slot")).len(), 3, "{key}");
    }
}

#[test]
fn nothing_runs_while_the_server_is_away() {
    let stage = Stage::start("recipe-away");
    // Nobody listens at port 1.
    let ask = |by_redis: bool, words: &[&str]| {
        let mut command = Command::new(recipe("shell/throttled"));
        stage.tell(&mut command, by_redis);
        command.env("OUTFLOW_SERVER", "http://127.0.0.1:1");
        if by_redis {
            command.env("OUTFLOW_THROTTLE", "127.0.0.1:1");
        }
        let limit = ["-k", "away", "-r", "10/s", "-p", "1"];
        let output = command.args(limit).args(words).output().unwrap();
        (output.status.code(), said(&output))
    };
    for by_redis in [false, true] {
        let (code, said) = ask(by_redis, &["--", "echo", "ran"]);
        assert_eq!(code, Some(75), "{said}");
        assert!(!said.contains("ran"), "{said}");
        let (code, said) = ask(by_redis, &["-o", "--", "echo", "ran"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("ran"), "{said}");
    }
    assert!(stage.stop().0.is_empty());
}

#[test]
fn the_ruby_recipe_is_ruby() {
    // Sidekiq is not run here; where there is a Ruby, it reads the files.
    for file in ["sidekiq/throttle.rb", "sidekiq/throttled_jobs.rb"].map(recipe) {
        let Ok(output) = Command::new("ruby").arg("-c").arg(&file).output() else {
            eprintln!("there is no ruby, so {} was not read", file.display());
            continue;
        };
        assert!(output.status.success(), "{}", said(&output));
    }
}
