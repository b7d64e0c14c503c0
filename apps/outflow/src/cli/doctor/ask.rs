//! Questions to DNS and to mail servers, as many at once as there are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_doctor::{
    Answer, Finding, Known, QUESTIONS_MAX, Question, ROUNDS_MAX, ServerSeen, Subject, examine,
};
use outflow_resolver_dns::Survey;
use outflow_transport_smtp::probe;
use tokio::task::JoinSet;

/// How long a mail server may take to say how it speaks TLS.
const SERVER: Duration = Duration::from_secs(6);
/// When it is judged by what is known.
const ALL: Duration = Duration::from_secs(60);

/// Asks what the judge misses, until it misses nothing.
pub async fn judge(subject: &Subject, survey: &Arc<Survey>) -> Vec<Finding> {
    let mut known = Known::default();
    let until = Instant::now() + ALL;
    let helo = subject.senders.first().map(|sender| sender.helo.clone());
    let helo: Arc<str> = Arc::from(helo.unwrap_or_else(|| "localhost".to_owned()));
    for _ in 0..ROUNDS_MAX {
        let exam = examine(subject, &mut known);
        let room = QUESTIONS_MAX.saturating_sub(known.len());
        if exam.missing.is_empty() || room == 0 || Instant::now() >= until {
            return exam.findings;
        }
        let mut asked = JoinSet::new();
        for question in exam.missing.into_iter().take(room) {
            let (survey, helo) = (Arc::clone(survey), Arc::clone(&helo));
            asked.spawn(async move {
                let answer = answer(&question, &survey, &helo).await;
                (question, answer)
            });
        }
        while let Some(joined) = asked.join_next().await {
            if let Ok((question, answer)) = joined {
                known.learn(question, answer);
            }
        }
    }
    examine(subject, &mut known).findings
}

async fn answer(question: &Question, survey: &Survey, helo: &str) -> Answer {
    let answer = match question {
        Question::Texts(name) => survey.texts(name).await.map(Answer::Texts),
        Question::Hosts(name) => survey.exchangers(name).await.map(Answer::Hosts),
        Question::Addresses(name) => survey.addresses(name).await.map(Answer::Addresses),
        Question::Names(address) => survey.names(*address).await.map(Answer::Names),
        Question::Server {
            host,
            address,
            port,
        } => {
            let address = SocketAddr::new(*address, *port);
            let probed = probe(host, address, helo, SERVER).await;
            probed.map(|probed| {
                Answer::Server(ServerSeen {
                    offers_tls: probed.offers_tls,
                    handshake_error: probed.handshake_error,
                    certificate: probed.certificate,
                    distrust: probed.distrust,
                })
            })
        }
    };
    answer.unwrap_or_else(Answer::Failed)
}
