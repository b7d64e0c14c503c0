//! Logging in: PLAIN, LOGIN, and CRAM-MD5 where nothing else is offered.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};

use super::offers::Offers;
use super::reply::SmtpReply;

/// The block size of MD5.
const BLOCK_BYTES: usize = 64;

/// Who we are to a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password, which is never shown.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

/// What the server is to say next.
#[derive(Debug)]
pub(super) enum LoginStep {
    /// Whether it lets us in.
    Verdict,
    /// That it wants PLAIN's message after all.
    Plain,
    /// That it wants the name.
    User,
    /// That it wants the password.
    Password,
    /// Its challenge.
    Challenge,
}

/// What to do now.
#[derive(Debug)]
pub(super) enum Step {
    Done,
    Say(LoginStep, Vec<u8>),
    Refused,
}

impl LoginStep {
    /// The first line, in the best way that is offered. `in_clear` if a password
    /// may be said as it is.
    pub fn begin(
        login: &Login,
        offers: &Offers,
        in_clear: bool,
    ) -> Result<(Self, Vec<u8>), String> {
        if offers.plain && in_clear {
            let message = plain(login);
            return Ok((
                Self::Plain,
                format!("AUTH PLAIN {message}\r\n").into_bytes(),
            ));
        }
        if offers.login && in_clear {
            return Ok((Self::User, b"AUTH LOGIN\r\n".to_vec()));
        }
        if offers.cram_md5 {
            return Ok((Self::Challenge, b"AUTH CRAM-MD5\r\n".to_vec()));
        }
        Err(match offers.plain || offers.login {
            true => "a password is not sent over an open line: use TLS".to_owned(),
            false => "the server offers no login by PLAIN, LOGIN or CRAM-MD5".to_owned(),
        })
    }

    pub fn on_reply(self, login: &Login, reply: &SmtpReply) -> Step {
        let line = |text: String| format!("{text}\r\n").into_bytes();
        match (reply.code, self) {
            (235, _) => Step::Done,
            (334, Self::Plain) => Step::Say(Self::Verdict, line(plain(login))),
            (334, Self::User) => Step::Say(Self::Password, line(STANDARD.encode(&login.user))),
            (334, Self::Password) => {
                Step::Say(Self::Verdict, line(STANDARD.encode(&login.password)))
            }
            (334, Self::Challenge) => {
                let challenge = reply.lines().next().unwrap_or_default();
                match STANDARD.decode(challenge.trim()) {
                    Ok(challenge) => Step::Say(Self::Verdict, line(response(login, &challenge))),
                    // A lone star gives up (RFC 4954).
                    Err(_) => Step::Say(Self::Verdict, line("*".to_owned())),
                }
            }
            _ => Step::Refused,
        }
    }
}

fn plain(login: &Login) -> String {
    STANDARD.encode(format!("\0{}\0{}", login.user, login.password))
}

/// CRAM-MD5 (RFC 2195): the name, and the challenge keyed with the password.
fn response(login: &Login, challenge: &[u8]) -> String {
    let digest = hmac_md5(login.password.as_bytes(), challenge);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    STANDARD.encode(format!("{} {hex}", login.user))
}

fn hmac_md5(key: &[u8], text: &[u8]) -> [u8; 16] {
    let mut block = [0; BLOCK_BYTES];
    let short: [u8; 16] = Md5::digest(key).into();
    let key = if key.len() > BLOCK_BYTES { &short } else { key };
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let inner = block.map(|byte| byte ^ 0x36);
    let outer = block.map(|byte| byte ^ 0x5c);
    let inside = Md5::new().chain_update(inner).chain_update(text).finalize();
    Md5::new()
        .chain_update(outer)
        .chain_update(inside)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::{Login, response};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    /// The example of RFC 2195.
    #[test]
    fn a_challenge_is_answered() {
        let login = Login {
            user: "tim".to_owned(),
            password: "tanstaaftanstaaf".to_owned(),
        };
        let challenge = b"<1896.697170952@postoffice.reston.mci.net>";
        let answer = STANDARD.decode(response(&login, challenge)).unwrap();
        assert_eq!(answer, b"tim b913a602c7eda7a495b4e6e7334d3890");
    }
}
