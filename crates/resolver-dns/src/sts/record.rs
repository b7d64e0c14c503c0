//! The record by which a domain says that it has a policy, and which one.

/// What a record begins with.
const VERSION: &[u8] = b"v=STSv1";
/// What an id may be long.
const ID_MAX: usize = 32;
/// What a record may be long; real ones have less than a hundred bytes.
const BYTES_MAX: usize = 1_024;

/// The record at `_mta-sts.DOMAIN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Another id, another policy.
    pub id: String,
}

impl Record {
    /// The one record among these texts. Others may stand there too; two that
    /// claim to be one are as good as none, and so is one that is malformed.
    pub fn of_texts(texts: &[Vec<u8>]) -> Option<Self> {
        let mut found = texts.iter().filter_map(|text| after_version(text));
        match (found.next(), found.next()) {
            (Some(fields), None) => Self::parse(fields),
            _ => None,
        }
    }

    fn parse(fields: &[u8]) -> Option<Self> {
        if fields.len() > BYTES_MAX {
            return None;
        }
        let mut id = None;
        let mut fields = fields.split(|byte| *byte == b';').peekable();
        while let Some(field) = fields.next() {
            let field = field.trim_ascii();
            // Only a delimiter at the very end has nothing behind it.
            if field.is_empty() && fields.peek().is_none() {
                break;
            }
            let at = field.iter().position(|byte| *byte == b'=')?;
            let (key, value) = field.split_at(at);
            let (key, value) = (key.trim_ascii(), value.get(1..)?.trim_ascii());
            if key.is_empty() || value.is_empty() || !value.iter().all(u8::is_ascii_graphic) {
                return None;
            }
            if key == b"id" && id.is_none() {
                let fits = value.len() <= ID_MAX && value.iter().all(u8::is_ascii_alphanumeric);
                id = Some(String::from_utf8(value.to_vec()).ok().filter(|_| fits)?);
            }
        }
        id.map(|id| Self { id })
    }
}

/// The fields of a text that claims to be a record.
fn after_version(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(VERSION)?.trim_ascii_start();
    rest.strip_prefix(b";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(texts: &[&str]) -> Option<String> {
        let texts: Vec<Vec<u8>> = texts.iter().map(|it| it.as_bytes().to_vec()).collect();
        Record::of_texts(&texts).map(|record| record.id)
    }

    #[test]
    fn a_record_has_an_id() {
        for text in [
            "v=STSv1; id=20160831085700Z;",
            "v=STSv1;id=20160831085700Z",
            "v=STSv1 ; id = 20160831085700Z ; more=a:b/c;",
            "v=STSv1; more=1; id=20160831085700Z; id=another",
        ] {
            assert_eq!(id(&[text]).as_deref(), Some("20160831085700Z"), "{text}");
        }
        let among = ["v=spf1 -all", "", "v=STSv1; id=a;", "v=STSv10; id=b;"];
        assert_eq!(id(&among).as_deref(), Some("a"));
    }

    #[test]
    fn whatever_is_not_one_record_is_none() {
        assert_eq!(id(&[]), None);
        assert_eq!(id(&["v=STSv1; id=a;", "v=STSv1; id=a;"]), None);
        let (long, much) = ("x".repeat(33), "x".repeat(2_000));
        for text in [
            "",
            "v=STSv1",
            "v=STSv1;",
            "v=STSv1;;id=a",
            "v=stsv1; id=a",
            " v=STSv1; id=a",
            "v=STSv2; id=a",
            "v=STSv1; id=",
            "v=STSv1; id",
            "v=STSv1; id=a b;",
            "v=STSv1; id=a-b;",
            "v=STSv1; id=\u{fc}",
            "id=a; v=STSv1",
            &format!("v=STSv1; id={long};"),
            &format!("v=STSv1; id=a; more={much};"),
        ] {
            assert_eq!(id(&[text]), None, "{text}");
        }
        assert_eq!(Record::of_texts(&[b"v=STSv1; id=\xff;".to_vec()]), None);
    }
}
