//! What was notified in which order, and whether those who listen have heard all of it, once.

use std::collections::BTreeMap;

/// A channel, and what was said there: no two notifications are alike.
type Said = (String, String);

/// The notifications of all servers.
#[derive(Default)]
pub(crate) struct Notices {
    /// Of each database of each server, in the order in which they were committed.
    said: BTreeMap<(usize, String), Vec<Said>>,
    /// Where each of them stands; `None`: it was said more than once.
    places: BTreeMap<(String, Said), Option<(usize, usize)>>,
}

/// What a client has heard.
#[derive(Clone, Default)]
pub(crate) struct Ear {
    /// Of each server, the place behind the last notification.
    next: BTreeMap<usize, usize>,
    /// The channels that it listens on, each with the place on each server from which on it has to
    /// hear all.
    since: BTreeMap<String, BTreeMap<usize, usize>>,
}

impl Notices {
    /// Something was notified on a server.
    pub(crate) fn announce(&mut self, server: usize, database: &str, said: Said) {
        let all = self.said.entry((server, database.to_owned())).or_default();
        let place = (server, all.len());
        all.push(said.clone());
        let known = self.places.entry((database.to_owned(), said)).or_insert(Some(place));
        *known = known.filter(|known| *known == place);
    }

    /// A client is told of a notification. Gives what is wrong with that, if anything is.
    pub(crate) fn heard(&self, ear: &mut Ear, database: &str, said: Said) -> Result<(), String> {
        let words = format!("{} {}", said.0, said.1);
        let Some(place) = self.places.get(&(database.to_owned(), said)) else {
            return Err(format!("{words}: nobody has said so"));
        };
        let Some((server, at)) = *place else { return Ok(()) };
        let next = ear.next.insert(server, at + 1).unwrap_or(0);
        if at < next {
            return Err(format!("{words}: again, or late"));
        }
        let all = self.said.get(&(server, database.to_owned())).map_or(&[][..], |all| all);
        let mut passed = all[next..at].iter().zip(next..);
        let missed = passed.find(|((channel, _), at)| {
            let since = ear.since.get(channel).and_then(|since| since.get(&server));
            since.is_some_and(|since| since <= at)
        });
        match missed {
            Some(((channel, text), _)) => Err(format!("{words}: without {channel} {text}")),
            None => Ok(()),
        }
    }

    /// A client listens on these channels, and nothing that it has sent may change that.
    pub(crate) fn listens(
        &self,
        ear: &mut Ear,
        database: &str,
        channels: impl Iterator<Item = String>,
    ) {
        let mut since = std::mem::take(&mut ear.since);
        let of_database = || self.said.iter().filter(|((_, of), _)| of == database);
        let now: BTreeMap<_, _> =
            of_database().map(|((server, _), all)| (*server, all.len())).collect();
        ear.since = channels
            .map(|channel| {
                let since = since.remove(&channel).unwrap_or_else(|| now.clone());
                (channel, since)
            })
            .collect();
    }
}

impl Ear {
    /// It may not listen any more, but where this says so.
    pub(crate) fn listens_still(&mut self, on: impl Fn(&str) -> bool) {
        self.since.retain(|channel, _| on(channel));
    }

    /// It may have missed something.
    pub(crate) fn forget(&mut self) {
        self.since.clear();
    }
}
