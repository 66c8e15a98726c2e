use crate::configuration::Configuration;

/// The configurations that pgweir was given, each with the time from which it holds. What may
/// happen depends on all that were in force while it came about.
pub(crate) struct Rules(Vec<(u64, Configuration)>);

impl Rules {
    pub(crate) fn new(first: Configuration) -> Self {
        Self(vec![(0, first)])
    }

    /// Another one holds from now on.
    pub(crate) fn replace(&mut self, now: u64, by: Configuration) {
        self.0.push((now, by));
    }

    /// That of this moment.
    pub(crate) fn current(&self) -> &Configuration {
        &self.0[self.0.len() - 1].1
    }

    /// The shortest of a kind of limits since then; `None` if there was none.
    pub(crate) fn least(
        &self,
        since: u64,
        limit: impl Fn(&Configuration) -> Option<u64>,
    ) -> Option<u64> {
        self.since(since).filter_map(limit).min()
    }

    /// The longest of a kind of limits since then; `None` if at some time there was none.
    pub(crate) fn most(
        &self,
        since: u64,
        limit: impl Fn(&Configuration) -> Option<u64>,
    ) -> Option<u64> {
        let limits: Option<Vec<_>> = self.since(since).map(limit).collect();
        limits?.into_iter().max()
    }

    /// Those that were in force at some time since then.
    fn since(&self, since: u64) -> impl Iterator<Item = &Configuration> {
        let first = self.0.iter().rposition(|(from, _)| *from < since).unwrap_or(0);
        self.0[first..].iter().map(|(_, configuration)| configuration)
    }
}

#[cfg(test)]
mod tests;
