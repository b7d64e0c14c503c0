//! What DNS says of a domain, and what it rolls up to by that.

use outflow_core::destination::{Destination, DestinationKind};

use crate::table::Table;

/// What DNS says of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These servers take its mail, with their preference; the best first.
    Exchangers(Vec<(u16, String)>),
    /// It names no servers but has an address: it takes its mail itself.
    Itself,
    /// It says that it takes no mail (RFC 7505).
    NullMx,
    /// There is no such domain.
    NoDomain,
    /// It has neither servers nor an address.
    NoServers,
    /// Nobody could be asked, for now.
    Unknown,
}

impl Answer {
    /// The answer of these records. A root among others is no server.
    pub fn of_records(mut records: Vec<(u16, String)>) -> Self {
        let is_null = !records.is_empty() && records.iter().all(|(_, host)| host.is_empty());
        records.retain(|(_, host)| !host.is_empty());
        records.sort();
        records.dedup();
        match (is_null, records.is_empty()) {
            (true, _) => Self::NullMx,
            (false, true) => Self::Itself,
            (false, false) => Self::Exchangers(records),
        }
    }

    /// What a domain with this answer rolls up to: the provider whose all its
    /// best servers are, else the first of its best servers by name, so that all
    /// domains behind one server share one destination.
    pub fn destination(&self, table: &Table, domain: &str) -> Destination {
        let own = || Destination::new(DestinationKind::Host, domain);
        let Self::Exchangers(hosts) = self else {
            return own();
        };
        let Some((best, first)) = hosts.first() else {
            return own();
        };
        let among_best = hosts
            .iter()
            .take_while(|(preference, _)| preference == best);
        let mut owners = among_best.map(|(_, host)| table.host_of(host));
        let owner = owners.next().flatten();
        match owner.filter(|owner| owners.all(|other| other == Some(owner))) {
            Some(owner) => Destination::isp(owner.clone()),
            None => Destination::new(DestinationKind::Host, first.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(records: &[(u16, &str)]) -> String {
        let records = records.iter().map(|(no, host)| (*no, (*host).to_owned()));
        let answer = Answer::of_records(records.collect());
        let table = Table::built_in();
        answer.destination(&table, "example.org").to_string()
    }

    #[test]
    fn domains_roll_up_to_whose_servers_they_have() {
        assert_eq!(
            to(&[(10, "alt1.aspmx.l.google.com"), (1, "aspmx.l.google.com")]),
            "isp:google"
        );
        assert_eq!(
            to(&[(10, "mx2.example.net"), (10, "mx1.example.net")]),
            "host:mx1.example.net"
        );
        // Whoever has another server as good is not the provider's alone.
        assert_eq!(
            to(&[(1, "mx.example.net"), (1, "aspmx.l.google.com")]),
            "host:aspmx.l.google.com"
        );
        assert_eq!(
            to(&[(1, "mx.example.net"), (9, "aspmx.l.google.com")]),
            "host:mx.example.net"
        );
        assert_eq!(to(&[]), "host:example.org");
        assert_eq!(to(&[(0, "")]), "host:example.org");
    }

    #[test]
    fn a_null_mx_is_one_only_if_it_stands_alone() {
        assert_eq!(Answer::of_records(vec![(0, String::new())]), Answer::NullMx);
        let mixed = Answer::of_records(vec![(0, String::new()), (5, "mx.example".to_owned())]);
        assert_eq!(
            mixed,
            Answer::Exchangers(vec![(5, "mx.example".to_owned())])
        );
    }
}
