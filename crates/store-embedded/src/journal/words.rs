//! How the words of the engine stand in a frame. Numbers here are part of the
//! format: a word that is added gets the next one.

use outflow_core::class::Class;
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::flow::FlowKey;
use outflow_core::message::{Channel, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::retry::schedule::DeathCause;
use outflow_core::time::Wall;
use outflow_ports::receipts::Happening;

use super::codec::{In, Out};

const STATES: [State; 10] = [
    State::Queued,
    State::Sending,
    State::Deferred,
    State::Spilled,
    State::Delivered,
    State::Bounced,
    State::Expired,
    State::Cancelled,
    State::Suppressed,
    State::Dead,
];

const CAUSES: [DeathCause; 5] = [
    DeathCause::Attempts,
    DeathCause::Age,
    DeathCause::Uncertain,
    DeathCause::TooLarge,
    DeathCause::StorageDamaged,
];

const KINDS: [DestinationKind; 5] = [
    DestinationKind::Isp,
    DestinationKind::Carrier,
    DestinationKind::Push,
    DestinationKind::Host,
    DestinationKind::Unresolved,
];

const CHANNELS: [Channel; 3] = [Channel::Email, Channel::Sms, Channel::Push];

pub fn state(number: u8) -> Option<State> {
    STATES.get(usize::from(number)).copied()
}

pub fn cause(number: u8) -> Option<DeathCause> {
    CAUSES.get(usize::from(number)).copied()
}

pub fn write_flow_key(out: &mut Out<'_>, key: &FlowKey) {
    out.text(key.pool.as_str())
        .u8(key.destination.kind as u8)
        .text(key.destination.name.as_str())
        .u8(key.class as u8)
        .text(key.tenant.as_str())
        .maybe_text(key.campaign.as_ref().map(Name::as_str))
        .maybe_text(key.sender_domain.as_ref().map(Name::as_str))
        .u8(key.channel as u8);
}

pub fn read_flow_key(from: &mut In<'_>) -> Option<FlowKey> {
    Some(FlowKey {
        pool: Name::from(from.text()?),
        destination: Destination::new(*KINDS.get(usize::from(from.u8()?))?, from.text()?),
        class: *Class::ALL.get(usize::from(from.u8()?))?,
        tenant: Name::from(from.text()?),
        campaign: from.maybe_text()?.map(Name::from),
        sender_domain: from.maybe_text()?.map(Name::from),
        channel: *CHANNELS.get(usize::from(from.u8()?))?,
    })
}

/// Who tried, and what went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    pub account: Option<String>,
    pub error: Option<LastError>,
}

pub fn write_detail(out: &mut Out<'_>, account: Option<&Name>, error: Option<&LastError>) {
    write_parts(out, account.map(Name::as_str), error);
}

fn write_parts(out: &mut Out<'_>, account: Option<&str>, error: Option<&LastError>) {
    out.maybe_text(account);
    let Some(error) = error else {
        out.u8(0);
        return;
    };
    let Enhanced(class, subject, detail) = error.enhanced.unwrap_or(Enhanced(0, 0, 0));
    out.u8(1)
        .u16(error.code.unwrap_or(0))
        .u8(class)
        .u16(subject)
        .u16(detail)
        .text(error.class.as_str())
        .text(error.rule.as_str())
        .text(&error.text);
}

pub fn read_detail(from: &mut In<'_>) -> Option<Detail> {
    let account = from.maybe_text()?.map(str::to_owned);
    let error = match from.u8()? {
        0 => None,
        1 => {
            let code = Some(from.u16()?).filter(|code| *code != 0);
            let enhanced = Enhanced(from.u8()?, from.u16()?, from.u16()?);
            let class = from.text()?;
            let class = ReplyClass::ALL.iter().find(|it| it.as_str() == class);
            Some(LastError {
                code,
                enhanced: Some(enhanced).filter(|it| it.0 != 0),
                class: class.copied().unwrap_or(ReplyClass::Other),
                rule: Name::from(from.text()?),
                text: from.text()?.to_owned(),
            })
        }
        _ => return None,
    };
    Some(Detail { account, error })
}

pub fn write_happening(out: &mut Out<'_>, it: &Happening) {
    out.i64(it.at.0)
        .text(&it.what)
        .i64(it.until.map_or(i64::MAX, |at| at.0));
    write_parts(out, it.account.as_deref(), it.error.as_ref());
}

/// All happenings up to the end.
pub fn read_happenings(mut from: In<'_>) -> Option<Vec<Happening>> {
    let mut all = Vec::new();
    while !from.is_empty() {
        let (at, what, until) = (from.i64()?, from.text()?.to_owned(), from.i64()?);
        let detail = read_detail(&mut from)?;
        all.push(Happening {
            at: Wall(at),
            what,
            account: detail.account,
            until: (until != i64::MAX).then_some(Wall(until)),
            error: detail.error,
        });
    }
    Some(all)
}
