//! One session: a task that opens a connection, carries messages one after the
//! other and says goodbye.

use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::engine::event::Event;
use outflow_core::reply::{Enhanced, Reply};
use outflow_mail::Keyring;
use outflow_ports::parcel::ParcelRef;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout};

use crate::berths::{Berth, Berths, Claim};
use crate::client::Output;
use crate::connect;
use crate::exchangers::{Exchangers, Missing, Takes};
use crate::line::{self, Line, Unopened};
use crate::outbox::{Duty, Leaving, Opening, Outbox};
use crate::prepare::{ReturnAddresses, domain_of, prepare};
use crate::relay::{Prepared, Target};

/// A message that needs another connection may use this part of its time for it.
const STEERING: u32 = 4;

/// A message to carry.
pub(crate) struct Job {
    pub duty: Duty,
    pub parcel: Option<ParcelRef>,
    pub keys: Arc<Keyring>,
    /// By which addresses reports find it.
    pub return_to: Option<ReturnAddresses>,
}

/// Hears whether a session was opened, and why it could not be.
pub(crate) type OnOpened = Box<dyn FnOnce(&Destination, Result<(), &Reply>) + Send>;

/// One session.
pub(crate) struct Session {
    pub opening: Opening,
    pub relay: Arc<Prepared>,
    pub destination: Destination,
    pub outbox: Arc<Outbox>,
    pub berths: Arc<Berths>,
    pub claim: Claim,
    /// Told whether it was opened.
    pub on_opened: OnOpened,
}

impl Session {
    /// Runs it until nobody sends it jobs, or the connection ends. Jobs that
    /// come too late answer for themselves when they are dropped.
    pub async fn run(self, mut jobs: Receiver<Job>) {
        let _leaving = Leaving {
            opening: self.opening,
            outbox: Arc::clone(&self.outbox),
        };
        // Dropped after the connection, whichever way that ends.
        let berth = tokio::select! {
            berth = Arc::clone(&self.berths).take(self.claim.clone()) => berth,
            () = given_up(&mut jobs) => return,
        };
        let limit = self.relay.timeouts.open;
        let opened = tokio::select! {
            opened = timeout(limit, open(&self.relay, &berth, &self.destination)) => opened,
            () = given_up(&mut jobs) => return,
        };
        let late = || {
            Err(connect::unreachable(
                "timed out opening a session".to_owned(),
            ))
        };
        match opened.unwrap_or_else(|_| late()) {
            Ok(line) => {
                (self.on_opened)(&self.destination, Ok(()));
                let session = self.opening.session;
                let event = Event::SessionReady { session };
                self.outbox.tell(self.opening, event);
                serve(&self.relay, &berth, line, jobs).await;
            }
            Err(reply) => {
                (self.on_opened)(&self.destination, Err(&reply));
                let (session, reply) = (self.opening.session, Box::new(reply));
                let event = Event::SessionRefused { session, reply };
                self.outbox.tell(self.opening, event);
                drop(jobs);
            }
        }
    }
}

/// Opens a connection for a destination. There is none if only messages can say
/// to whom, if all of them are to be refused, or if what keeps us from connecting
/// is the policy of one domain among others: its own messages are told so. A
/// server that takes no mail at all (RFC 7504) has them refused, too.
async fn open(
    relay: &Prepared,
    berth: &Berth,
    destination: &Destination,
) -> Result<Option<Line>, Reply> {
    match connect::hosts(relay, destination).await {
        Ok(hosts) if hosts.is_empty() => Ok(None),
        Ok(hosts) => {
            berth.turn().await;
            match line::open(relay, hosts).await {
                Ok(line) => Ok(Some(line)),
                Err(unopened) if unopened.is_by_policy => Ok(None),
                Err(unopened) if is_mute(relay, &unopened.reply) => Ok(None),
                Err(unopened) => Err(unopened.reply),
            }
        }
        Err(Missing::Never(_) | Missing::Policy(_)) => Ok(None),
        Err(Missing::NotNow(why)) => Err(connect::unreachable(why)),
    }
}

/// Whether a domain's own server said that it never takes mail. A relay that says
/// so speaks for nobody else, and is asked again.
fn is_mute(relay: &Prepared, reply: &Reply) -> bool {
    let is_own = matches!(relay.target, Target::Exchangers(_));
    let is_block = |enhanced: &Option<Enhanced>| matches!(enhanced, Some(Enhanced(_, 7, _)));
    match reply {
        Reply::Said { code, enhanced, .. } => {
            is_own && matches!(code, 521 | 556) && !is_block(enhanced)
        }
        Reply::Network { .. } | Reply::Uncertain | Reply::Damaged { .. } => false,
    }
}

/// Carries one message after the other.
async fn serve(relay: &Prepared, berth: &Berth, mut line: Option<Line>, mut jobs: Receiver<Job>) {
    loop {
        let job = tokio::select! {
            job = jobs.recv() => job,
            // Nobody asked for anything: the server hung up.
            _ = hung_up(&mut line) => return,
        };
        let Some(mut job) = job else {
            if let Some(line) = line {
                line.quit().await;
            }
            return;
        };
        let since = Instant::now();
        if let Target::Exchangers(exchangers) = &relay.target {
            let steered = steer(relay, berth, &**exchangers, &mut line, job.parcel.clone()).await;
            if let Err(Unsteered { reply, lives }) = steered {
                job.duty.answer(reply, lives);
                match lives {
                    true => continue,
                    false => return,
                }
            }
        }
        let Some(open) = &mut line else { return };
        let mail = match prepare(job.parcel, open.can(), job.keys, job.return_to).await {
            Ok(mail) => mail,
            Err(reply) => {
                job.duty.answer(reply, true);
                continue;
            }
        };
        job.duty.begin();
        let (reply, lives) = open.deliver(mail, since).await;
        let goes_on = lives && !open.is_used_up();
        job.duty.answer(reply, goes_on);
        if goes_on {
            continue;
        }
        if let Some(line) = line.filter(|_| lives) {
            line.quit().await;
        }
        return;
    }
}

async fn hung_up(line: &mut Option<Line>) -> Output {
    match line {
        Some(line) => line.said().await,
        None => std::future::pending().await,
    }
}

/// Why a message cannot be sent over a session.
struct Unsteered {
    reply: Reply,
    /// Whether the next one may fare better.
    lives: bool,
}

/// Sees to it that the connection is to a server of the message's own domain,
/// and as safe as that domain demands.
async fn steer(
    relay: &Prepared,
    berth: &Berth,
    exchangers: &dyn Exchangers,
    line: &mut Option<Line>,
    parcel: Option<ParcelRef>,
) -> Result<(), Unsteered> {
    let unsent = |reply| Unsteered { reply, lives: true };
    let refused = |missing| match missing {
        Missing::Never(reply) => unsent(reply),
        Missing::NotNow(why) | Missing::Policy(why) => unsent(connect::unreachable(why)),
    };
    let domain = domain_of(parcel).await.map_err(unsent)?;
    if let Some(open) = line {
        let takes = exchangers.takes(open.host(), &domain);
        match connect::found(relay, takes).await.map_err(refused)? {
            Takes::Yes => return Ok(()),
            Takes::IfVerified if open.is_verified() => return Ok(()),
            Takes::IfVerified | Takes::No => (),
        }
    }
    let hosts = connect::found(relay, exchangers.of_domain(&domain)).await;
    let hosts = hosts.map_err(refused)?;
    if let Some(old) = line.take() {
        old.quit().await;
    }
    // The rest of the time is for the message itself.
    let limit = relay.timeouts.delivery / STEERING;
    let late = || {
        let reply = connect::unreachable("timed out connecting".to_owned());
        Err(Unopened::from(reply))
    };
    let open = async {
        berth.turn().await;
        line::open(relay, hosts).await
    };
    let opened = timeout(limit, open).await;
    match opened.unwrap_or_else(|_| late()) {
        Ok(open) => {
            *line = Some(open);
            Ok(())
        }
        // Messages of other domains fare better, if one domain's policy is why.
        Err(unopened) => Err(Unsteered {
            reply: unopened.reply,
            lives: unopened.is_by_policy,
        }),
    }
}

/// Waits until the node wants the session no more. A message for a session that
/// is not ready is not sent.
async fn given_up(jobs: &mut Receiver<Job>) {
    while let Some(job) = jobs.recv().await {
        drop(job);
    }
}
