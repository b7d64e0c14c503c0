//! Requests by route. Templates of routes are few and known to the server;
//! still there is a bound, for whoever passes a path instead.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use crate::catalogue::Requested;
use crate::destinations::OTHER;
use crate::histogram::{Histogram, Reading, SHORT};

const ROUTES_MAX: usize = 256;

const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The statuses that are told apart, in order.
const STATUSES: [u16; 22] = [
    200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 422,
    429, 500, 503,
];

/// The counters of one method on one route.
#[derive(Debug)]
struct Route {
    /// By [`STATUSES`]; the last is all others.
    statuses: [AtomicU64; STATUSES.len() + 1],
    seconds: Histogram,
}

type Key = (&'static str, Box<str>);
type Methods = BTreeMap<&'static str, Arc<Route>>;

/// Requests by method and route.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    routes: RwLock<BTreeMap<Box<str>, Methods>>,
}

impl Requests {
    pub fn count(&self, request: &Requested<'_>) {
        let method = METHODS.iter().find(|method| **method == request.method);
        let method = method.copied().unwrap_or(OTHER);
        let route = self
            .find(method, request.route)
            .unwrap_or_else(|| self.add(method, request.route));
        let status = STATUSES
            .binary_search(&request.status)
            .unwrap_or(STATUSES.len());
        if let Some(count) = route.statuses.get(status) {
            count.fetch_add(1, Relaxed);
        }
        route.seconds.add(request.duration);
    }

    fn find(&self, method: &'static str, route: &str) -> Option<Arc<Route>> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        routes.get(route)?.get(method).cloned()
    }

    fn add(&self, method: &'static str, route: &str) -> Arc<Route> {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let room = routes.len() < ROUTES_MAX || routes.contains_key(route);
        let route = if room { route } else { OTHER };
        let methods = routes.entry(Box::from(route)).or_default();
        let new = || {
            Arc::new(Route {
                statuses: Default::default(),
                seconds: Histogram::new(SHORT),
            })
        };
        Arc::clone(methods.entry(method).or_insert_with(new))
    }

    /// Calls `each` with method, route, status and count, where there is one.
    pub fn read_counts(&self, mut each: impl FnMut(&str, &str, &str, u64)) {
        for ((method, route), counters) in self.all() {
            let names = STATUSES.iter().map(u16::to_string);
            let names = names.chain([OTHER.to_owned()]);
            for (status, count) in names.zip(&counters.statuses) {
                let count = count.load(Relaxed);
                if count > 0 {
                    each(method, &route, &status, count);
                }
            }
        }
    }

    /// Calls `each` with method, route and how long answers took.
    pub fn read_seconds(&self, mut each: impl FnMut(&str, &str, &Reading<'_>)) {
        for ((method, route), counters) in self.all() {
            each(method, &route, &counters.seconds.read());
        }
    }

    fn all(&self) -> Vec<(Key, Arc<Route>)> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for (route, methods) in routes.iter() {
            for (method, counters) in methods {
                all.push(((*method, route.clone()), Arc::clone(counters)));
            }
        }
        all
    }
}
