//! Whatever a server says, in whatever pieces, each message gets one answer.

use super::super::{Output, Tls};
use super::{Talk, mail, settings};

const NONSENSE: [&str; 16] = [
    "220 x\r\n",
    "250 Ok\r\n",
    "250-x\r\n",
    "250-x\r\n250 PIPELINING\r\n",
    "354 go\r\n",
    "421 bye\r\n",
    "550 5.1.1 no\r\n",
    "450 4.2.1 later\r\n",
    "334 PDE+\r\n",
    "235 in\r\n",
    "221 bye\r\n",
    "25",
    "0 x\r\n",
    "what\r\n",
    "\r\n",
    "\u{0}",
];
const OFFERS: [&str; 3] = [
    "250 x\r\n",
    "250-x\r\n250 PIPELINING\r\n",
    "250-x\r\n250-PIPELINING\r\n250-SIZE 100\r\n250 CHUNKING\r\n",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % count
    }
}

/// What a server that behaves answers to these lines.
fn proper(written: &str, offers: &str) -> String {
    let answer = |line: &str| match line.get(..4) {
        Some("EHLO") => offers.to_owned(),
        Some("MAIL" | "RCPT" | "RSET" | "BDAT") => "250 Ok\r\n".to_owned(),
        Some("DATA") => "354 go\r\n".to_owned(),
        Some("QUIT") => "221 bye\r\n".to_owned(),
        _ if line == "." => "250 2.0.0 Ok\r\n".to_owned(),
        _ => String::new(),
    };
    written.lines().map(answer).collect()
}

/// One run: how many messages were taken.
fn run(seed: u64) -> usize {
    let mut dice = Dice(seed);
    let offers = OFFERS[dice.below(3)];
    let mut talk = Talk::new(settings(Tls::None));
    let mut answer = "220 x\r\n".to_owned();
    let (mut sent, mut accepted) = (0, 0);
    for _ in 0..60 {
        match dice.below(40) {
            0 => talk.client.on_closed("gone"),
            1 => talk.client.on_timeout(),
            2 => talk.hear(NONSENSE[dice.below(NONSENSE.len())]),
            _ => {
                let at = dice.below(answer.len() + 1);
                talk.hear(&answer[..at]);
                talk.hear(&answer[at..]);
            }
        }
        talk.drain();
        let mut replies = 0;
        let is_closed = talk.others.contains(&Output::Close);
        for output in std::mem::take(&mut talk.others) {
            match output {
                Output::Replied { reply, lives } => {
                    replies += 1;
                    accepted += usize::from(reply.is_accepted());
                    assert!(lives || is_closed, "seed {seed}");
                }
                Output::Close => assert!(is_closed),
                Output::Ready | Output::Failed(_) => assert_eq!(sent, 0, "seed {seed}"),
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert!(replies <= sent, "seed {seed}: an answer to nothing");
        sent -= replies;
        if is_closed {
            assert_eq!(sent, 0, "seed {seed}: no answer");
            talk.hear("250 Ok\r\n");
            talk.client.on_closed("again");
            talk.drain();
            assert!(talk.others.is_empty(), "seed {seed}: it goes on");
            return accepted;
        }
        if sent == 0 && talk.client.timeout().is_none() {
            talk.client.deliver(mail(".\r\nhello"));
            talk.drain();
            sent = 1;
        }
        answer = proper(&std::mem::take(&mut talk.written), offers);
    }
    accepted
}

#[test]
fn each_message_gets_one_answer() {
    let accepted: usize = (0..20_000).map(run).sum();
    assert!(accepted > 20_000, "most of it is quite normal: {accepted}");
}
