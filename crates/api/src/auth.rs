//! Who asks, and whether they may.
//!
//! Each handler names what it needs as an argument, [`May<P>`], and cannot be
//! reached without: a route that forgets it does not see its caller at all. An
//! unknown token is 401, a known one that may not is 403, and what belongs to
//! another tenant does not exist (404).

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_ports::draft::DEFAULT as DEFAULT_TENANT;

use crate::doors::Place;
use crate::grant::{Known, Scope};
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// What a handler needs of its caller.
pub trait Permission {
    /// What is needed, in words.
    const NEEDS: &'static str;
    /// Whether this caller may.
    fn allows(caller: &Caller) -> bool;
}

macro_rules! permissions {
    ($($(#[$doc:meta])* $name:ident: $needs:literal, $allows:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl Permission for $name {
            const NEEDS: &'static str = $needs;
            fn allows(caller: &Caller) -> bool {
                let allows: fn(&Caller) -> bool = $allows;
                allows(caller)
            }
        }
    )*};
}

permissions! {
    /// Submit messages, ask about one's own, withdraw them.
    Submit: "submit, operator or admin", |caller| caller.scope >= Scope::Submit;
    /// Do what operators do, perhaps for one tenant only.
    OperateOwn: "operator or admin", |caller| caller.scope >= Scope::Operator;
    /// Do what operators do, for all tenants.
    Operate: "operator or admin, not bound to a tenant",
        |caller| caller.scope >= Scope::Operator && caller.tenant.is_none();
    /// Do anything.
    Administer: "admin", |caller| caller.scope == Scope::Admin && caller.tenant.is_none();
    /// Read metrics.
    Scrape: "metrics, operator or admin, not bound to a tenant",
        |caller| caller.scope != Scope::Submit && caller.tenant.is_none();
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Known>);

impl Deref for Caller {
    type Target = Known;
    fn deref(&self) -> &Known {
        &self.0
    }
}

impl Caller {
    /// One who may submit anything, for what is planned without a server.
    pub fn unbound() -> Self {
        Self(Arc::new(Known::unbound(Scope::Submit)))
    }

    /// The only tenant whose messages exist for this caller; none for all.
    ///
    /// A token that only submits and is bound to no tenant may submit for any,
    /// but what it sees is what it gets without naming one: whoever hands out
    /// such tokens has not said that each may read everybody's mail.
    pub fn horizon(&self) -> Option<&Name> {
        static DEFAULT: LazyLock<Name> = LazyLock::new(|| Name::from(DEFAULT_TENANT));
        match self.scope {
            Scope::Operator | Scope::Admin => self.tenant.as_ref(),
            Scope::Submit | Scope::Metrics => self.tenant.as_ref().or(Some(&DEFAULT)),
        }
    }

    /// Whether what belongs to `tenant` exists for this caller.
    pub fn sees(&self, tenant: &Name) -> bool {
        self.horizon().is_none_or(|own| own == tenant)
    }

    /// Whether messages of this class may be submitted.
    pub fn may_class(&self, class: Class) -> bool {
        self.classes.is_empty() || self.classes.contains(&class)
    }

    /// Whether messages may be submitted to this pool.
    pub fn may_pool(&self, pool: &str) -> bool {
        self.pools.is_empty() || self.pools.iter().any(|own| own == pool)
    }

    /// Whether messages may be sent from some domains only.
    pub fn is_bound_to_domains(&self) -> bool {
        !self.from_domains.is_empty()
    }

    /// Whether messages may be sent from this domain, which is in lower case.
    pub fn may_send_from(&self, domain: &str) -> bool {
        self.from_domains.is_empty() || self.from_domains.iter().any(|own| own == domain)
    }

    /// The tenant to filter by: the caller's own, else the one asked for. What
    /// such a caller asks about others does not exist.
    pub fn tenant_or(&self, asked: Option<String>) -> Result<Option<String>, Problem> {
        match (self.horizon(), asked) {
            (Some(own), Some(asked)) if own.as_str() != asked => Err(Problem::not_found("tenant")),
            (Some(own), _) => Ok(Some(own.as_str().to_owned())),
            (None, asked) => Ok(asked),
        }
    }
}

/// A caller who may do what `P` says.
#[derive(Debug)]
pub struct May<P> {
    caller: Caller,
    permission: PhantomData<fn() -> P>,
}

impl<P> Deref for May<P> {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl<P: Permission> FromRequestParts<ApiState> for May<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let caller = recognise(&parts.headers, state)?;
        if !P::allows(&caller) {
            let bound = match caller.tenant {
                Some(_) => ", bound to a tenant",
                None => "",
            };
            return Err(Problem::forbidden(format!(
                "this needs the scope {}; the token has {}{bound}",
                P::NEEDS,
                caller.scope.as_str(),
            )));
        }
        count_connection(parts, &caller)?;
        // What the body costs is put down to the caller.
        parts.extensions.insert(caller.clone());
        Ok(Self {
            caller,
            permission: PhantomData,
        })
    }
}

/// The connection counts for whoever showed a token on it.
fn count_connection(parts: &Parts, caller: &Caller) -> Result<(), Problem> {
    let Some(place) = parts.extensions.get::<Arc<Place>>() else {
        return Ok(());
    };
    let party = caller.party();
    let is_free = caller.scope == Scope::Admin && caller.tenant.is_none();
    if place.known(party, is_free) {
        return Ok(());
    }
    let detail = format!(
        "{party} has as many connections as one may have while others have theirs: use fewer, or \
         come back when some are closed"
    );
    Err(Problem::later(Code::QuotaExhausted, 1, detail))
}

fn recognise(headers: &HeaderMap, state: &ApiState) -> Result<Caller, Problem> {
    let token = presented(headers).ok_or_else(|| {
        Problem::new(
            Code::Unauthorized,
            "send a token: Authorization: Bearer TOKEN, or X-API-Token: TOKEN",
        )
    })?;
    let known = state.tokens.load().find(token);
    known
        .map(Caller)
        .ok_or_else(|| Problem::new(Code::Unauthorized, "this token is not known"))
}

fn presented(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        return is_bearer.then(|| token.trim());
    }
    headers.get("x-api-token")?.to_str().ok().map(str::trim)
}
