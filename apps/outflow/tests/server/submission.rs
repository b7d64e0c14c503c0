//! Programs that people send mail with, not made for us, submit to the real
//! binary; what it delivers is read at the far end.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};

use crate::client::Client;
use crate::peers::peer;
use crate::process::{Place, Server, listed, show, wait_for, wait_state};
use crate::smtp_sink::SmtpSink;

/// So large that it comes in many pieces, with every byte.
const FILE_BYTES: usize = 100_000;

/// Where the server's log goes.
const TOLD: &str = "told.log";

/// A server that takes mail over SMTP and sends it to a sink.
struct Post {
    sink: SmtpSink,
    server: Server,
    place: Place,
    token: String,
}

impl Post {
    fn start(name: &str) -> Self {
        let (place, sink) = (Place::new(name), SmtpSink::start("-d", &[]));
        let (cert, key) = (place.dir.join("cert.pem"), place.dir.join("key.pem"));
        renew(&place);
        place.configure(&format!(
            "[dns]\nlookups = \"never\"\n\
             [smtp]\nlisten = \"127.0.0.1:0\"\ntls_cert = {cert:?}\ntls_key = {key:?}\n\
             [[account]]\nid = \"relay\"\ntransport = \"smtp\"\nhost = \"127.0.0.1\"\n\
             port = {}\ntls = \"none\"\nhelo = \"client.example\"\n",
            sink.port
        ));
        let told = format!("exec \"$@\" 2> {TOLD}");
        let server = place.start_by(&["sh", "-c", &told, "sh"], &place.data());
        let form = json!({ "name": "shop", "scope": "submit" });
        let answer = server.client().post("/api/v1/tokens", &form).unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text);
        let token = answer.json()["token"].as_str().unwrap().to_owned();
        Self {
            sink,
            server,
            place,
            token,
        }
    }

    fn port(&self) -> String {
        let mut lines = self.server.greeting.iter();
        let line = lines.find_map(|line| line.strip_prefix("smtp "));
        let address = line.unwrap().split_whitespace().next().unwrap();
        address.rsplit_once(':').unwrap().1.to_owned()
    }

    fn ca_file(&self) -> PathBuf {
        self.place.dir.join("cert.pem")
    }

    /// A letter of this program to two people, written down for it and for
    /// whoever reads it at the far end.
    fn letter(&self, program: &str) -> Value {
        let file = self.place.dir.join("file.bin");
        let bytes: Vec<u8> = (0..FILE_BYTES).map(|no| (no * no / 7) as u8).collect();
        fs::write(&file, bytes).unwrap();
        // swaks sends what it is given, and does not say in which letters it is.
        let (greeting, lines) = match program {
            "swaks" => ("Hello", "Hello"),
            _ => ("Grüße 🎉", "Schöne Grüße 🎈"),
        };
        let text = format!("{lines}\n.\n..two dots\nso long\n");
        let letter = json!({
            "program": program, "port": self.port(), "ca_file": self.ca_file(),
            "token": self.token, "message_id": format!("<{program}@shop.example>"),
            "subject": format!("{greeting} from {program}"), "text": text, "file": file,
            "from": "orders@shop.example", "campaign": program,
            "to": [format!("ann.{program}@example.org"), format!("bob.{program}@example.net")],
        });
        let path = self.place.dir.join(format!("{program}.json"));
        fs::write(path, letter.to_string()).unwrap();
        letter
    }

    /// Runs one of our scripts by its interpreter.
    fn script(&self, interpreter: &str, script: &str, arguments: &[&str]) -> Output {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/submission");
        let mut command = Command::new(interpreter);
        command.arg(scripts.join(script)).args(arguments);
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Output {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.current_dir(&self.place.dir).output();
        output.unwrap_or_else(|error| {
            panic!("{program}: {error}: apt-get install swaks libnet-ssleay-perl nodejs python3")
        })
    }

    fn swaks(&self, letter: &Value, token: Option<&str>) -> Output {
        let text = |key: &str| letter[key].as_str().unwrap().to_owned();
        let (cert, to) = (text("ca_file"), &letter["to"]);
        let to = format!("{},{}", to[0].as_str().unwrap(), to[1].as_str().unwrap());
        let body = self.place.dir.join("body.txt");
        fs::write(&body, text("text")).unwrap();
        let mut command = Command::new("swaks");
        command
            .args(["--server", "localhost", "--port", &text("port")])
            .args(["--tls", "--tls-verify", "--tls-ca-path", &cert])
            .args(["--from", &text("from"), "--to", &to])
            .args(["--h-Subject", &text("subject")])
            .args(["--h-Message-Id", &text("message_id")])
            .args([
                "--h-X-Outflow-Class",
                "high",
                "--h-X-Outflow-Tenant",
                "acme",
            ])
            .args(["--h-X-Outflow-Campaign", &text("campaign")])
            .args(["--body", &format!("@{}", body.display())])
            .args(["--attach-type", "application/octet-stream"])
            .args(["--attach-name", "file.bin"])
            .args(["--attach", &format!("@{}", text("file"))]);
        if let Some(token) = token {
            let login = ["--auth", "LOGIN", "--auth-user", "any", "--auth-password"];
            command.args(login).arg(token);
        }
        self.run(command)
    }

    /// Files of the journal that name this id, and how often.
    fn stored(&self, message_id: &str) -> usize {
        let mut count = 0;
        let mut folders = vec![self.place.data().join("journal")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = fs::read(path).unwrap_or_default();
                let found = bytes.windows(message_id.len());
                count += found.filter(|it| *it == message_id.as_bytes()).count();
            }
        }
        count
    }

    fn is_untouched(&self) {
        let mut client = self.server.client();
        assert!(listed(&mut client, "queued,delivered").is_empty());
        assert!(self.sink.came().is_empty());
    }
}

/// Another certificate for the place.
fn renew(place: &Place) {
    let made = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(place.dir.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(place.dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Where `scripts/fetch-peers` puts nodemailer.
fn nodemailer() -> String {
    let path = peer("node/node_modules/nodemailer");
    path.display().to_string()
}

/// The messages of a letter: one for each recipient, marked as the letter said.
fn marked(client: &mut Client, letter: &Value) {
    let messages = wait_for("both are delivered", || {
        let ids = listed(client, "delivered");
        let mut shown: Vec<Value> = ids.iter().map(|id| show(client, id)).collect();
        shown.retain(|message| message["campaign"] == letter["campaign"]);
        (shown.len() == 2).then_some(shown)
    });
    let recipients: BTreeSet<&str> = messages
        .iter()
        .map(|it| it["to"].as_str().unwrap())
        .collect();
    let to = letter["to"].as_array().unwrap();
    let expected: BTreeSet<&str> = to.iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(recipients, expected);
    for message in &messages {
        assert_eq!(message["class"], "high", "{message}");
        assert_eq!(message["tenant"], "acme", "{message}");
        assert_eq!(message["subject"], letter["subject"], "{message}");
    }
}

#[test]
fn programs_submit_over_tls_and_their_mail_arrives_intact() {
    let post = Post::start("submission");
    let nodemailer = nodemailer();
    let mut client = post.server.client();
    let mut files = Vec::new();
    for (no, program) in ["smtplib", "swaks", "nodemailer"].into_iter().enumerate() {
        let letter = post.letter(program);
        let written = format!("{program}.json");
        let output = match program {
            "smtplib" => post.script("python3", "submit.py", &["send", &written]),
            "swaks" => post.swaks(&letter, Some(&post.token)),
            _ => post.script("node", "submit.mjs", &[&nodemailer, &written]),
        };
        let said = said(&output);
        assert!(output.status.success(), "{program}: {said}");
        assert!(said.contains("Ok: queued as "), "{program}: {said}");
        marked(&mut client, &letter);
        let message_id = letter["message_id"].as_str().unwrap();
        assert_eq!(post.stored(message_id), 1, "{program}");
        assert_eq!(post.sink.came().len(), 2 * (no + 1), "{program}");
        files.push(written);
    }
    let came = post.sink.folder.join("came").display().to_string();
    let mut arguments = vec![came.as_str()];
    arguments.extend(files.iter().map(String::as_str));
    let output = post.script("python3", "read.py", &arguments);
    assert!(output.status.success(), "{}", said(&output));
    post.server.stop();
}

#[test]
fn programs_without_a_good_token_are_refused_before_any_data() {
    let post = Post::start("strangers");
    let mut letter = post.letter("stranger");
    let output = post.script("python3", "submit.py", &["stranger", "stranger.json"]);
    let heard = said(&output);
    assert!(output.status.success(), "{heard}");
    for expected in ["mail 530 5.7.0 ", "data 503 5.5.1 ", "login 535 5.7.8 "] {
        assert!(heard.contains(expected), "{expected}: {heard}");
    }
    let heard = said(&post.swaks(&letter, None));
    assert!(heard.contains("<~* 530 5.7.0 "), "{heard}");
    assert!(!heard.contains("DATA"), "{heard}");
    let heard = said(&post.swaks(&letter, Some("wrong")));
    assert!(heard.contains("<~* 535 5.7.8 "), "{heard}");
    for (token, code) in [("wrong", 535), ("", 530)] {
        letter["token"] = token.into();
        fs::write(post.place.dir.join("bad.json"), letter.to_string()).unwrap();
        let output = post.script("node", "submit.mjs", &[&nodemailer(), "bad.json"]);
        let heard = said(&output);
        assert_eq!(output.status.code(), Some(1), "{heard}");
        assert!(heard.contains(&format!("responseCode: {code}")), "{heard}");
    }
    post.is_untouched();
    // An operator's word that nobody knows is no reason to guess.
    let answer = post.script("python3", "submit.py", &["misspelt", "stranger.json"]);
    assert!(said(&answer).contains("554 5.6.0 "), "{}", said(&answer));
    post.is_untouched();
    post.server.stop();
}

#[test]
fn a_hangup_has_the_certificate_read_again() {
    let post = Post::start("renewal");
    post.letter("renewal");
    let shown = || {
        let output = post.script("python3", "submit.py", &["certificate", "renewal.json"]);
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        said
    };
    let first = shown();
    renew(&post.place);
    // The old one is shown until the server is told.
    let output = post.script("python3", "submit.py", &["certificate", "renewal.json"]);
    let heard = said(&output);
    assert!(heard.contains("CERTIFICATE_VERIFY_FAILED"), "{heard}");
    post.server.signal("HUP");
    let second = wait_for("the new certificate", || {
        let output = post.script("python3", "submit.py", &["certificate", "renewal.json"]);
        output.status.success().then(|| said(&output))
    });
    assert_ne!(first, second);
    // One that cannot be read changes nothing, and mail goes on.
    let path = post.ca_file();
    let good = fs::read(&path).unwrap();
    fs::write(&path, "no certificate").unwrap();
    post.server.signal("HUP");
    wait_for("the complaint", || {
        let told = fs::read_to_string(post.place.dir.join(TOLD)).unwrap();
        told.contains("its certificate stays as it was")
            .then_some(())
    });
    fs::write(&path, good).unwrap();
    assert_eq!(shown(), second);
    post.letter("smtplib");
    let output = post.script("python3", "submit.py", &["send", "smtplib.json"]);
    assert!(output.status.success(), "{}", said(&output));
    let mut client = post.server.client();
    let ids = listed(&mut client, "queued,sending,deferred,delivered");
    assert_eq!(ids.len(), 2);
    for id in ids {
        wait_state(&mut client, &id, "delivered");
    }
    post.server.stop();
}
