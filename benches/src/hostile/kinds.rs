//! Clients that mean harm: what each kind says, and whether it listens.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Where a server listens, and a token that submits.
#[derive(Clone, Debug)]
pub struct Target {
    pub http: SocketAddr,
    pub smtp: SocketAddr,
    pub resp: SocketAddr,
    pub token: String,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Http,
    Smtp,
    Resp,
}

impl Target {
    /// Where it speaks this protocol.
    pub fn address(&self, door: Door) -> SocketAddr {
        match door {
            Door::Http => self.http,
            Door::Smtp => self.smtp,
            Door::Resp => self.resp,
        }
    }
}

/// What a connection does until it is closed.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Said at once, as far as the far end takes it.
    pub first: Vec<u8>,
    /// Said again and again, so often.
    pub drip: Option<(Vec<u8>, Duration)>,
    /// Whether it reads what it hears.
    pub reads: bool,
}

/// A kind of client.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub door: Door,
    script: fn(&Target) -> Script,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Kind {
    /// What a client of this kind does.
    pub fn script(&self, target: &Target) -> Script {
        (self.script)(target)
    }
}

const fn kind(name: &'static str, door: Door, script: fn(&Target) -> Script) -> Kind {
    Kind { name, door, script }
}

/// Every kind.
pub const KINDS: [Kind; 17] = [
    kind("http_idle", Door::Http, |_| Script::default()),
    kind("http_slow_head", Door::Http, |_| {
        dripping("GET /healthz HTTP/1.1\r\nHost: x\r\nX: ", "x")
    }),
    kind("http_slow_body", Door::Http, |it| {
        dripping(announced(it, 1_000_000), " ")
    }),
    kind("http_announcing", Door::Http, |it| {
        silent(announced(it, 60 << 20))
    }),
    kind("http_not_reading", Door::Http, |_| {
        silent("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(50))
    }),
    kind("http_pipelining", Door::Http, |it| {
        let list = format!(
            "GET /api/v1/messages HTTP/1.1\r\nHost: x\r\nX-API-Token: {}\r\n\r\n",
            it.token
        );
        silent(list.repeat(100))
    }),
    kind("smtp_idle", Door::Smtp, |_| Script::default()),
    kind("smtp_slow", Door::Smtp, |_| {
        dripping("EHLO a.example\r\n", "N")
    }),
    kind("smtp_slow_data", Door::Smtp, |it| {
        let mail = "MAIL FROM:<a@shop.example>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n";
        dripping(format!("{}{mail}", login(it)), "x\r\n")
    }),
    kind("smtp_announcing", Door::Smtp, |it| {
        let mail = "MAIL FROM:<a@shop.example>\r\nRCPT TO:<b@example.org>\r\nBDAT 25000000\r\n";
        silent(format!("{}{mail}", login(it)))
    }),
    kind("smtp_not_reading", Door::Smtp, |_| {
        silent("EHLO a.example\r\n".repeat(2_000))
    }),
    kind("smtp_pipelining", Door::Smtp, |it| {
        silent(format!("{}{}", login(it), "RSET\r\n".repeat(5_000)))
    }),
    kind("resp_idle", Door::Resp, |_| Script::default()),
    kind("resp_slow", Door::Resp, |_| dripping("*1\r\n$4\r\n", "P")),
    kind("resp_announcing", Door::Resp, |it| {
        silent(format!("{}*128\r\n$16384\r\n", auth(it)))
    }),
    kind("resp_not_reading", Door::Resp, |it| {
        silent(format!(
            "{}{}",
            auth(it),
            "*1\r\n$4\r\nPING\r\n".repeat(5_000)
        ))
    }),
    kind("resp_pipelining", Door::Resp, |it| Script {
        reads: true,
        ..dripping(auth(it), &"CL.THROTTLE k 100 100 1\r\n".repeat(20))
    }),
];

fn silent(first: impl Into<Vec<u8>>) -> Script {
    Script {
        first: first.into(),
        ..Script::default()
    }
}

fn dripping(first: impl Into<Vec<u8>>, drop: &str) -> Script {
    Script {
        drip: Some((drop.into(), Duration::from_secs(1))),
        ..silent(first)
    }
}

/// The head of a submission of so many bytes, and the first of them.
fn announced(target: &Target, bytes: usize) -> String {
    format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nX-API-Token: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{{",
        target.token
    )
}

fn login(target: &Target) -> String {
    let login = STANDARD.encode(format!("\0app\0{}", target.token));
    format!("EHLO a.example\r\nAUTH PLAIN {login}\r\n")
}

fn auth(target: &Target) -> String {
    let token = &target.token;
    format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{token}\r\n", token.len())
}
