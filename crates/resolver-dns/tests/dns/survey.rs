//! Records as they are written.

use outflow_resolver_dns::Survey;

use crate::server::{DnsServer, Mood};

#[test]
fn records_come_as_they_are_and_none_is_no_error() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let dns = DnsServer::start();
    let long = format!("v=DKIM1; p={}", "a".repeat(300));
    dns.texts("example.test", 60, &["one", &long]);
    dns.mx("example.test", 60, &[(20, "b.test"), (10, "A.test")]);
    dns.mx("null.test", 60, &[(0, "")]);
    dns.addresses("a.test", 60, &["192.0.2.1", "2001:db8::1"]);
    dns.names("192.0.2.1", 60, &["a.test", "other.test"]);
    dns.set_broken("broken.test");
    runtime.block_on(async {
        let survey = Survey::new(&[dns.address]).unwrap();
        let mut texts = survey.texts("example.test").await.unwrap();
        texts.sort();
        assert_eq!(texts, ["one", long.as_str()]);
        let mut hosts = survey.exchangers("example.test").await.unwrap();
        hosts.sort();
        assert_eq!(
            hosts,
            [(10, "a.test".to_owned()), (20, "b.test".to_owned())]
        );
        let null = survey.exchangers("null.test").await.unwrap();
        assert_eq!(null, [(0, String::new())]);
        let addresses = survey.addresses("a.test").await.unwrap();
        assert_eq!(addresses.len(), 2);
        let mut names = survey.names("192.0.2.1".parse().unwrap()).await.unwrap();
        names.sort();
        assert_eq!(names, ["a.test", "other.test"]);
        // Nothing there is an answer.
        assert!(survey.texts("nothing.test").await.unwrap().is_empty());
        assert!(survey.exchangers("a.test").await.unwrap().is_empty());
        assert!(
            survey
                .names("192.0.2.2".parse().unwrap())
                .await
                .unwrap()
                .is_empty()
        );
        assert!(
            survey
                .names("2001:db8::2".parse().unwrap())
                .await
                .unwrap()
                .is_empty()
        );
        // What failed is told.
        assert!(survey.texts("broken.test").await.is_err());
        dns.set_mood(Mood::Silent);
        let silence = survey.texts("silent.test").await.unwrap_err();
        assert!(silence.contains("does not answer"), "{silence}");
    });
}
