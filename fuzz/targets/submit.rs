//! The body of `POST /messages`: planned, or refused as the caller's fault.
//! What is planned can be read back.

use outflow_api::auth::Caller;
use outflow_api::extract::Media;
use outflow_api::messages::naming::Naming;
use outflow_api::messages::plan::Planner;
use outflow_core::time::Wall;
use outflow_ports::letter::{Content, Envelope};

const NOW: Wall = Wall(1_790_000_000_000_000_000);

pub fn run(bytes: &[u8]) {
    for media in [Media::Json, Media::Lines] {
        for request_key in [None, Some("key")] {
            plan(bytes, media, request_key);
        }
    }
}

fn plan(bytes: &[u8], media: Media, request_key: Option<&str>) {
    let caller = Caller::unbound();
    let naming = Naming::of(1);
    let planner = Planner {
        caller: &caller,
        now: NOW,
        naming: &naming,
        request_key,
        message_bytes_max: 1 << 20,
    };
    let plan = match planner.plan(bytes, media) {
        Ok(plan) => plan,
        Err(problem) => {
            let status = problem.body().status;
            assert!((400..500).contains(&status), "{status}");
            return;
        }
    };
    assert_eq!(plan.submissions.len(), plan.origins.len());
    assert!(!plan.submissions.is_empty() || !plan.rejected.is_empty());
    for submission in &plan.submissions {
        let envelope = Envelope::from_bytes(&submission.envelope).expect("an envelope");
        assert!(!envelope.to.chars().any(char::is_control));
        assert!(envelope.to.contains('@') && envelope.from.contains('@'));
        let content = Content::from_bytes(&submission.body).expect("a body");
        let mut lines = content
            .headers
            .iter()
            .flat_map(|(name, value)| [name, value]);
        assert!(!lines.any(|line| line.contains(['\r', '\n', '\0'])));
        let subject = content.subject.unwrap_or_default();
        assert!(!subject.contains(['\r', '\n', '\0']));
    }
}
