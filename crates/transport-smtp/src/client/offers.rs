//! What a server offers in its answer to EHLO.
//!
//! Read leniently: an extension that is unknown or misspelt is one that is not
//! offered, and never a reason to give up on the server.

/// The extensions that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Commands may be sent together.
    pub pipelining: bool,
    /// Sizes may be announced.
    pub size: bool,
    /// The largest message that is taken, if it is said.
    pub size_max: Option<u64>,
    /// 8-bit text is taken.
    pub eight_bit: bool,
    /// Addresses in UTF-8 are taken.
    pub utf8: bool,
    /// Messages are taken in chunks of a known size.
    pub chunking: bool,
    /// TLS can be begun.
    pub starttls: bool,
    /// Ways to log in.
    pub plain: bool,
    /// The same.
    pub login: bool,
    /// The same.
    pub cram_md5: bool,
}

impl Offers {
    /// Reads the lines of an answer; the first is a greeting.
    pub fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut offers = Self::default();
        for line in lines.skip(1) {
            // `AUTH=PLAIN` is how it was written before there was a standard.
            let words = line.split([' ', '=']).filter(|word| !word.is_empty());
            let mut words = words.map(str::to_ascii_uppercase);
            match words.next().as_deref() {
                Some("PIPELINING") => offers.pipelining = true,
                Some("8BITMIME") => offers.eight_bit = true,
                Some("SMTPUTF8") => offers.utf8 = true,
                Some("CHUNKING") => offers.chunking = true,
                Some("STARTTLS") => offers.starttls = true,
                Some("SIZE") => {
                    offers.size = true;
                    let most = words.next().and_then(|most| most.parse().ok());
                    offers.size_max = most.filter(|most| *most > 0);
                }
                Some("AUTH") => {
                    for mechanism in words {
                        offers.plain |= mechanism == "PLAIN";
                        offers.login |= mechanism == "LOGIN";
                        offers.cram_md5 |= mechanism == "CRAM-MD5";
                    }
                }
                _ => {}
            }
        }
        offers
    }
}
