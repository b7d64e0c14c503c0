//! What comes back: the suppression list, the keys of return addresses, and who
//! hears reports.

use std::fs::{self, File};
use std::hash::RandomState;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use outflow_api::Clock as _;
use outflow_config::Settings;
use outflow_core::classify::Rules;
use outflow_core::message_id::MessageId;
use outflow_core::suppression::surge::Surge;
use outflow_core::time::Mono;
use outflow_feedback::{Desk, Learner, Once, ReturnPaths, SuppressionList};
use outflow_ports::control::Control;
use outflow_ports::hearing::{Hearing, HearingError, Hearsay, Tale};
use outflow_ports::query::Query;
use outflow_ports::receipts::Receipts;
use outflow_ports::suppression::{NoSuchRecipient, Suppressions};
use outflow_telemetry::catalogue::{Event, Level, Reported};
use outflow_telemetry::sink::Sink;

use super::files::{KEYS, create_private};
use super::paced::{Paced, and_more};
use super::server::ServeError;
use super::wiring::SystemClock;

const KEY_BYTES: usize = 32;
/// Bounces that are written at once, and how long they are collected.
const BATCH_MAX: usize = 1_000;
const COLLECT: Duration = Duration::from_millis(20);
/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// That the audit cannot be written is logged so often.
const UNWRITTEN_EVERY: Duration = Duration::from_secs(60);
/// Reports that nobody understands are logged so often.
const UNMATCHED_EVERY: Duration = Duration::from_secs(60);

/// What it stands on.
pub struct Grounds {
    /// Where the list is kept.
    pub suppressions: Arc<dyn Suppressions>,
    /// What became of messages.
    pub receipts: Arc<dyn Receipts>,
    /// Who knows what was counted.
    pub query: Arc<dyn Query>,
    /// Who counts.
    pub control: Arc<dyn Control>,
    /// What replies mean.
    pub rules: Rules,
    /// Where everything that happens goes.
    pub sink: Arc<dyn Sink>,
}

/// What comes back, and what is learnt from it.
pub struct Returns {
    /// The suppression list.
    pub list: Arc<SuppressionList>,
    /// Who hears reports.
    pub hearing: Arc<dyn Hearing>,
    /// Our own return addresses.
    pub paths: Option<Arc<ReturnPaths>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Returns {
    /// Reads the list and the keys, and begins to learn.
    pub fn open(settings: &Settings, grounds: Grounds) -> Result<Self, ServeError> {
        let feedback = &settings.feedback;
        let unread = |error: outflow_ports::suppression::SuppressionError| ServeError::DataDir {
            path: settings.server.data_dir.clone(),
            error: io::Error::other(error.to_string()),
        };
        let (entries_max, keys) = (feedback.suppressions_max, RandomState::new());
        let opened = SuppressionList::open(grounds.suppressions, entries_max, keys);
        let (list, bounces) = opened.map_err(unread)?;
        let list = Arc::new(list);
        let domain = feedback.bounce_domain.as_deref();
        let paths = domain.map(|domain| paths(&settings.server.data_dir, domain));
        let paths = paths.transpose()?.map(Arc::new);
        let started = Instant::now();
        let clocks = move || {
            let mono = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            (Mono(mono), SystemClock.now())
        };
        let alarmed = Arc::clone(&grounds.sink);
        let learner = Arc::new(Learner::new(
            Arc::clone(&list) as _,
            grounds.query,
            Arc::new(clocks),
            Arc::new(move |surge: &Surge| alarmed.emit(&Event::Surge(surge))),
            feedback.surge,
        ));
        let desk = Desk {
            paths: paths.clone(),
            learner: Arc::clone(&learner),
            receipts: grounds.receipts,
            control: grounds.control,
            rules: grounds.rules,
            once: Once::default(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, sink) = (Arc::clone(&stop), Arc::clone(&grounds.sink));
        let thread = thread::Builder::new()
            .name("suppress".to_owned())
            .spawn(move || learn(&bounces, &learner, &sink, &ended))
            .map_err(ServeError::System)?;
        Ok(Self {
            list,
            hearing: Arc::new(Told {
                desk,
                sink: grounds.sink,
                unmatched: Paced::every(UNMATCHED_EVERY),
            }),
            paths,
            stop,
            thread: Some(thread),
        })
    }

    /// Writes what waits, and ends the thread.
    pub fn close(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Puts what the node saw bounce on the list, until it is to end and nothing
/// waits.
fn learn(
    bounces: &Receiver<NoSuchRecipient>,
    learner: &Learner,
    sink: &Arc<dyn Sink>,
    stop: &AtomicBool,
) {
    let failed = |text: &str| {
        sink.emit(&Event::Noted {
            level: Level::Error,
            part: "suppressions",
            text,
        });
    };
    let unwritten = Paced::every(UNWRITTEN_EVERY);
    loop {
        let first = match bounces.recv_timeout(LOOK) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Acquire) => None,
            Err(_) => break,
        };
        if let Some(first) = first {
            thread::sleep(COLLECT);
            let mut batch = vec![first];
            batch.extend(bounces.try_iter().take(BATCH_MAX));
            if let Err(error) = learner.bounced(&batch) {
                failed(&format!(
                    "{} bounces are not on the list: {error}",
                    batch.len()
                ));
            }
        }
        if let Err(error) = learner.write_notes(false)
            && unwritten.pass(Instant::now()).is_some()
        {
            failed(&format!("the audit lacks what was learnt: {error}"));
        }
    }
    if let Err(error) = learner.write_notes(true) {
        failed(&format!("the audit lacks what was learnt: {error}"));
    }
}

/// Counts what is heard, and has logged what nobody understands.
struct Told {
    desk: Desk,
    sink: Arc<dyn Sink>,
    unmatched: Paced,
}

impl Told {
    fn tell(&self, heard: Hearsay, is_mail: bool) {
        let reported = Reported {
            unread: u64::from(is_mail && heard.read == 0),
            unmatched: heard.read - heard.matched.min(heard.read),
            matched: heard.matched,
            suppressed: heard.suppressed,
        };
        self.sink.emit(&Event::Reported(reported));
        let is_lost = reported.unread + reported.unmatched > 0;
        if is_lost && let Some(left_out) = self.unmatched.pass(Instant::now()) {
            let more = and_more(left_out);
            let text = format!("a report is about no message that is known here{more}");
            self.sink.emit(&Event::Noted {
                level: Level::Info,
                part: "feedback",
                text: &text,
            });
        }
    }
}

impl Hearing for Told {
    fn return_address(&self, address: &str) -> Option<MessageId> {
        self.desk.return_address(address)
    }

    fn mail(
        &self,
        mail: &[u8],
        about: Option<MessageId>,
        tenant: Option<&str>,
    ) -> Result<Hearsay, HearingError> {
        let heard = self.desk.mail(mail, about, tenant)?;
        self.tell(heard, true);
        Ok(heard)
    }

    fn tales(&self, tales: &[Tale], tenant: Option<&str>) -> Result<Hearsay, HearingError> {
        let heard = self.desk.tales(tales, tenant)?;
        self.tell(heard, false);
        Ok(heard)
    }
}

/// Return addresses at this domain, signed with the keys of the data directory.
fn paths(dir: &Path, domain: &str) -> Result<ReturnPaths, ServeError> {
    let path = dir.join(KEYS);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_key(dir, &path).map_err(at(&path))?
        }
        Err(error) => return Err(at(&path)(error)),
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Option<Vec<Vec<u8>>> = lines.map(bytes_of).collect();
    let keys = keys.ok_or_else(|| {
        let text = "a line is not a key: each has 64 hexadecimal digits";
        at(&path)(io::Error::new(io::ErrorKind::InvalidData, text))
    })?;
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let made = ReturnPaths::new(domain, &keys);
    made.map_err(|error| {
        at(&path)(io::Error::new(
            io::ErrorKind::InvalidData,
            error.to_string(),
        ))
    })
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ServeError {
    let path: PathBuf = path.to_owned();
    |error| ServeError::DataDir { path, error }
}

/// Makes a key, readable by this user only, whole or not at all.
fn make_key(dir: &Path, path: &Path) -> io::Result<String> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let mut text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    let begun = dir.join("return-address-keys.new");
    let mut file = create_private(&begun)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&begun, path)?;
    File::open(dir)?.sync_all()?;
    Ok(text)
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let is_hex = hex.len() == 2 * KEY_BYTES && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pairs = (0..hex.len()).step_by(2);
    let byte = |from: usize| u8::from_str_radix(hex.get(from..from + 2)?, 16).ok();
    is_hex.then(|| pairs.map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn a_key_is_sixty_four_digits() {
        let key = "0f".repeat(32);
        assert_eq!(bytes_of(&key), Some(vec![15; 32]));
        assert_eq!(bytes_of(&"0g".repeat(32)), None);
        assert_eq!(bytes_of(&key[2..]), None);
    }
}
