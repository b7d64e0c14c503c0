//! What large providers want included, by the name of their submission host.

use crate::names;

const INCLUDES: [(&str, &str); 16] = [
    ("amazonaws.com", "amazonses.com"),
    ("brevo.com", "spf.brevo.com"),
    ("elasticemail.com", "_spf.elasticemail.com"),
    ("gmail.com", "_spf.google.com"),
    ("mailgun.org", "mailgun.org"),
    ("mailjet.com", "spf.mailjet.com"),
    ("mandrillapp.com", "spf.mandrillapp.com"),
    ("messagingengine.com", "spf.messagingengine.com"),
    ("mtasv.net", "spf.mtasv.net"),
    ("office365.com", "spf.protection.outlook.com"),
    ("outlook.com", "spf.protection.outlook.com"),
    ("postmarkapp.com", "spf.mtasv.net"),
    ("resend.com", "amazonses.com"),
    ("sendgrid.net", "sendgrid.net"),
    ("smtp2go.com", "spf.smtp2go.com"),
    ("sparkpostmail.com", "_spf.sparkpostmail.com"),
];

/// What the records of domains that send through this host include.
pub fn include_for(host: &str) -> Option<&'static str> {
    let host = names::normal(host);
    let found = INCLUDES
        .iter()
        .find(|(own, _)| names::is_within(&host, own));
    found.map(|(_, include)| *include)
}
