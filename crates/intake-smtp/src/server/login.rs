//! AUTH PLAIN and AUTH LOGIN: whoever it is, the password is a token.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Tokens longer than this are none of ours.
const TOKEN_BYTES_MAX: usize = 512;

/// A token that somebody showed. It is not written to logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// What was shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn new(bytes: Vec<u8>) -> Option<Self> {
        let fits = (1..=TOKEN_BYTES_MAX).contains(&bytes.len());
        String::from_utf8(bytes).ok().filter(|_| fits).map(Self)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What is asked for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All of PLAIN.
    Plain,
    /// The user of LOGIN.
    User,
    /// The password of LOGIN.
    Password,
}

/// What an answer to a step leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask for this.
    Ask(Step),
    /// A token was shown.
    Shown(Token),
    /// It was not base64, or not what the mechanism says.
    Garbled,
}

impl Step {
    /// The line that asks for it.
    pub fn question(self) -> &'static [u8] {
        match self {
            Self::Plain => b"334 \r\n",
            Self::User => b"334 VXNlcm5hbWU6\r\n",
            Self::Password => b"334 UGFzc3dvcmQ6\r\n",
        }
    }

    /// Reads the answer.
    pub fn answer(self, text: &str) -> Next {
        // A lone `=` is how nothing is said at once.
        let text = if text == "=" { "" } else { text };
        let Ok(bytes) = STANDARD.decode(text) else {
            return Next::Garbled;
        };
        let token = match self {
            Self::User => return Next::Ask(Self::Password),
            Self::Password => Token::new(bytes),
            Self::Plain => {
                let mut parts = bytes.split(|byte| *byte == 0);
                match (parts.next(), parts.next(), parts.next(), parts.next()) {
                    (Some(_), Some(_), Some(password), None) => Token::new(password.to_vec()),
                    _ => return Next::Garbled,
                }
            }
        };
        token.map_or(Next::Garbled, Next::Shown)
    }
}
