//! What requests are about: things of the tenant `acme`, and of nobody.

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Server, message};

/// A kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// None: the request names nothing, or what is not there.
    Nothing,
    /// A message of `acme` that waits.
    Message,
    /// A pause of `acme`.
    Pause,
    /// A review of dead letters of `acme`.
    Review,
    /// A recipient that `acme` does not send to.
    Suppression,
    /// What `acme` holds of a limit of its own.
    Permit,
    /// An account; it is nobody's.
    Account,
    /// A policy; it is nobody's.
    Policy,
    /// A token; it is nobody's.
    Token,
}

const NAMES: [(&str, Thing); 9] = [
    ("-", Thing::Nothing),
    ("message", Thing::Message),
    ("pause", Thing::Pause),
    ("review", Thing::Review),
    ("suppression", Thing::Suppression),
    ("permit", Thing::Permit),
    ("account", Thing::Account),
    ("policy", Thing::Policy),
    ("token", Thing::Token),
];

impl Thing {
    pub fn named(name: &str) -> Self {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found
            .unwrap_or_else(|| panic!("no thing is called {name}"))
            .1
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, thing)| *thing == self).unwrap().0
    }

    /// Whether it belongs to `acme`.
    pub fn is_of_tenant(self) -> bool {
        !matches!(
            self,
            Self::Nothing | Self::Account | Self::Policy | Self::Token
        )
    }
}

/// Makes them.
pub struct Things {
    client: Client,
    /// Speaks for `acme`.
    owner: Client,
    count: u32,
}

impl Things {
    /// From now on messages of `acme` wait.
    pub fn new(server: &Server) -> Self {
        let mut client = server.client();
        let form = json!({ "name": "owner", "scope": "submit", "tenant": "acme" });
        let owner = client.post("/api/v1/tokens", &form).unwrap().json();
        let owner = Client::new(server.address, owner["token"].as_str().unwrap());
        let pause = json!({ "match": { "tenant": "acme" }, "reason": "routes" });
        assert_eq!(client.post("/api/v1/pauses", &pause).unwrap().status, 201);
        Self {
            client,
            owner,
            count: 0,
        }
    }

    /// A new one: what it is called, and what only an answer that shows it has
    /// in it.
    pub fn make(&mut self, thing: Thing) -> (String, String) {
        self.count += 1;
        let name = format!("thing{}x", self.count);
        let id = self.made(thing, name.clone());
        match thing {
            // Their numbers are in many answers.
            Thing::Pause | Thing::Review => (id, name),
            _ => (id.clone(), id),
        }
    }

    fn made(&mut self, thing: Thing, name: String) -> String {
        let post = |client: &mut Client, path: &str, form: Value, field: &str| {
            let made = client.post(path, &form).unwrap();
            assert!(made.status < 300, "{path}: {}", made.text);
            made.json()[field].as_str().unwrap_or_default().to_owned()
        };
        let client = &mut self.client;
        match thing {
            Thing::Nothing => String::new(),
            Thing::Message => {
                let form = message(json!({ "tenant": "acme", "to": format!("{name}@gmail.com") }));
                post(client, "/api/v1/messages", form, "id")
            }
            Thing::Pause => {
                let matches = json!({ "tenant": "acme", "campaign": name });
                post(client, "/api/v1/pauses", json!({ "match": matches }), "id")
            }
            Thing::Review => {
                let form = json!({ "match": { "tenant": "acme", "campaign": name } });
                post(client, "/api/v1/dead-letters/reviews", form, "id")
            }
            Thing::Suppression => {
                let form = json!({ "recipient": format!("{name}@b.example"), "tenant": "acme" });
                post(client, "/api/v1/suppressions", form, "recipient");
                format!("{name}@b.example")
            }
            Thing::Permit => {
                let limit = json!({ "key": name, "concurrency": 1 });
                let form = json!({ "limits": [limit] });
                post(&mut self.owner, "/api/v1/throttle/acquire", form, "permit")
            }
            Thing::Account => {
                let form = json!({ "transport": "sandbox", "pool": "routes" });
                let path = format!("/api/v1/accounts/{name}");
                let made = client.call("PUT", &path, Some(&form)).unwrap();
                assert!(made.status < 300, "{}", made.text);
                name
            }
            Thing::Policy => {
                let path = format!("/api/v1/policies/isp/{name}");
                let form = json!({ "rate": "1000/s" });
                let made = client.call("PUT", &path, Some(&form)).unwrap();
                assert!(made.status < 300, "{}", made.text);
                name
            }
            Thing::Token => {
                let form = json!({ "name": name, "scope": "metrics" });
                post(client, "/api/v1/tokens", form, "id")
            }
        }
    }
}
