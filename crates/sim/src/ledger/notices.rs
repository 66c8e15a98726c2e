//! What was notified in which order, and whether those who listen have heard all of it, once.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::Home;

/// A channel, and what was said there: no two notifications are alike.
type Said = (String, String);

/// How long a server that pgweir has closed may take to see that.
const ENDS_US: u64 = 15_000_000;

/// The notifications of all servers.
#[derive(Default)]
pub(crate) struct Notices {
    /// Of each database of each server, in the order in which they were committed, and when.
    said: BTreeMap<(usize, String), Vec<(Said, u64)>>,
    /// Where each of them stands; `None`: it was said more than once.
    places: BTreeMap<(String, Said), Option<(usize, usize)>>,
    /// When servers of a pool that listened came to their ends, or a client's lost server may have:
    /// what was said to them may be lost.
    ended: BTreeMap<Home, Vec<u64>>,
    /// Who was told that something may have been missed, and when, with no such end before.
    warned: Vec<(Home, u64, u32)>,
}

/// Where a client has to hear all from.
#[derive(Clone)]
struct Since {
    at: u64,
    /// The place on each server.
    places: BTreeMap<usize, usize>,
}

/// What a client has heard.
#[derive(Clone, Default)]
pub(crate) struct Ear {
    /// Of each server, the place behind the last notification.
    next: BTreeMap<usize, usize>,
    /// The channels that it listens on, and from where on it has to hear all of each.
    since: BTreeMap<String, Since>,
    /// Channels of which it may have missed something, and since when an end of a server that
    /// listens counts for them.
    forgotten: BTreeMap<String, u64>,
    /// When it was last told that it may have missed something.
    warned_at: u64,
    /// Of so many ends before that it was not told yet: who was busy is told of each at once.
    ends_untold: usize,
    /// Two say what it hears, without a mark between them.
    pub(crate) is_mixed: bool,
    /// Channels that it may not have ended to listen on.
    pub(crate) overheard: BTreeSet<String>,
    /// It has ended to listen on something in this transaction.
    pub(crate) has_unlistened: bool,
}

impl Notices {
    /// Something was notified on a server.
    pub(crate) fn announce(&mut self, server: usize, database: &str, said: Said, now: u64) {
        let all = self.said.entry((server, database.to_owned())).or_default();
        let place = (server, all.len());
        all.push((said.clone(), now));
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
        let next = ear.next.get(&server).copied().unwrap_or(0);
        ear.next.insert(server, next.max(at + 1));
        if ear.is_mixed {
            return Ok(());
        }
        if at < next {
            return Err(format!("{words}: again, or late"));
        }
        let all = self.said.get(&(server, database.to_owned())).map_or(&[][..], |all| all);
        let mut passed = all[next..at].iter().zip(next..);
        let missed = passed.find(|(((channel, _), _), at)| {
            let since = ear.since.get(channel).and_then(|since| since.places.get(&server));
            since.is_some_and(|since| since <= at)
        });
        match missed {
            Some((((channel, text), _), _)) => Err(format!("{words}: without {channel} {text}")),
            None => Ok(()),
        }
    }

    /// A client listens on these channels, and nothing that it has sent may change that.
    pub(crate) fn listens(
        &self,
        ear: &mut Ear,
        database: &str,
        channels: impl Iterator<Item = String>,
        at: u64,
    ) {
        let mut since = std::mem::take(&mut ear.since);
        let forgotten = std::mem::take(&mut ear.forgotten);
        ear.has_unlistened = false;
        let of_database = || self.said.iter().filter(|((_, of), _)| of == database);
        let now: BTreeMap<_, _> =
            of_database().map(|((server, _), all)| (*server, all.len())).collect();
        ear.since = channels
            .map(|channel| {
                let since = since.remove(&channel);
                let since = since.unwrap_or_else(|| {
                    let at = forgotten.get(&channel).copied().unwrap_or(at);
                    Since { at, places: now.clone() }
                });
                (channel, since)
            })
            .collect();
    }

    /// The first of what is due, on this server, that a client of this pool listens to and has not
    /// heard. Once a server that listened has come to its end something may be missing, until the
    /// client listens anew or is told so.
    pub(crate) fn unheard(
        &self,
        ear: &Ear,
        home: &Home,
        server: usize,
        is_due: impl Fn(&str, u64) -> bool,
    ) -> Option<&Said> {
        let ended = self.ended.get(home).and_then(|ends| ends.last().copied());
        let all = self.said.get(&(server, home.database.clone()))?;
        let next = ear.next.get(&server).copied().unwrap_or(0);
        let mut to_come = all.iter().zip(0..).skip(next);
        let unheard = to_come.find(|(((channel, text), at), place)| {
            let since = ear.since.get(channel).filter(|since| ended < Some(since.at));
            let from = since.map(|since| since.places.get(&server).copied().unwrap_or(0));
            from.is_some_and(|from| from <= *place) && is_due(text, *at)
        });
        unheard.map(|((said, _), _)| said)
    }

    /// A server of this pool that listened comes to its end. One that stood still until then has
    /// not seen before that pgweir has closed it.
    pub(crate) fn ends(&mut self, home: &Home, now: u64, still_until: u64) {
        self.ended.entry(home.clone()).or_default().push(now);
        self.warned.retain(|(of, at, _)| of != home || now > still_until.max(*at) + ENDS_US);
    }

    /// A client is told that it may have missed something: for that a server that listened must
    /// have come to its end since it was told so last. pgweir may close one before that sees it.
    pub(crate) fn warns(&mut self, ear: &mut Ear, home: &Home, client: u32, now: u64) {
        if ear.ends_untold == 0 {
            let ends = self.ended.get(home).map_or(&[][..], Vec::as_slice);
            ear.ends_untold = ends.iter().rev().take_while(|end| **end >= ear.warned_at).count();
        }
        match ear.ends_untold {
            0 => self.warned.push((home.clone(), now, client)),
            _ => ear.ends_untold -= 1,
        }
        ear.warned_at = now;
        ear.forget();
        // Whoever listens now may be lost before the client can say what it listens on.
        ear.forgotten.values_mut().for_each(|at| *at = now);
    }

    /// A client that was told so without a cause.
    pub(crate) fn warned_in_vain(&self) -> Option<(u32, u64)> {
        self.warned.first().map(|(_, at, client)| (*client, *at))
    }
}

impl Ear {
    /// It may not listen any more, but where this says so.
    pub(crate) fn listens_still(&mut self, on: impl Fn(&str) -> bool) {
        self.since.retain(|channel, _| on(channel));
    }

    /// If so, it ends to listen on something. Behind a ROLLBACK, in one unit, that may have found
    /// nothing to end (docs/compatibility.md).
    pub(crate) fn unlistens(
        &mut self,
        ends: bool,
        rolled_back: bool,
        channels: impl Iterator<Item = String>,
    ) {
        self.has_unlistened |= ends;
        self.overheard.extend(channels.filter(|_| ends && rolled_back));
    }

    /// Whether it may be told of this channel as before.
    pub(crate) fn may_overhear(&self, channel: &str) -> bool {
        self.overheard.contains(channel)
    }

    /// If so, it may hear in any order what it listens to, until it hears the end of a unit.
    pub(crate) fn mix(&mut self, mixes: bool) {
        self.is_mixed |= mixes;
    }

    /// It may have missed something.
    pub(crate) fn forget(&mut self) {
        let since = std::mem::take(&mut self.since);
        self.forgotten.extend(since.into_iter().map(|(channel, since)| (channel, since.at)));
    }
}
