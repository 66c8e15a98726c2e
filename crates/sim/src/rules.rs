use crate::configuration::Configuration;

/// The configurations that pgweir was given. Each holds from when its workers are sent it until all
/// of them have read the next one. What may happen depends on all that were in force while it came
/// about.
pub(crate) struct Rules {
    reigns: Vec<Reign>,
    /// Which of them each worker has read last.
    read: Vec<usize>,
}

struct Reign {
    configuration: Configuration,
    /// The last moment at which it was in force.
    until: Option<u64>,
}

impl Rules {
    pub(crate) fn new(workers: usize, first: Configuration) -> Self {
        let reigns = vec![Reign { configuration: first, until: None }];
        Self { reigns, read: vec![0; workers] }
    }

    /// Another one is sent to all workers.
    pub(crate) fn replace(&mut self, by: Configuration) {
        self.reigns.push(Reign { configuration: by, until: None });
    }

    /// A worker has read the next one.
    pub(crate) fn read_by(&mut self, worker: usize, now: u64) {
        self.read[worker] += 1;
        let oldest = self.read.iter().copied().min().unwrap_or(0);
        for over in &mut self.reigns[..oldest] {
            over.until.get_or_insert(now);
        }
    }

    /// All that there were.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Configuration> {
        self.reigns.iter().map(|reign| &reign.configuration)
    }

    /// The latest.
    pub(crate) fn current(&self) -> &Configuration {
        &self.reigns[self.reigns.len() - 1].configuration
    }

    /// Whether a pool was missing at some time since then.
    pub(crate) fn lacked(&self, since: u64, pool: usize) -> bool {
        self.since(since).any(|rules| !rules.pools[pool].here)
    }

    /// Where a pool has been at some time since then.
    pub(crate) fn clusters(&self, since: u64, pool: usize) -> impl Iterator<Item = usize> {
        self.since(since).map(move |rules| rules.pools[pool].cluster)
    }

    /// Whether a pool was to be served there at some time since then, as this user.
    pub(crate) fn allows(
        &self,
        since: u64,
        pool: usize,
        cluster: usize,
        server_user: &str,
    ) -> bool {
        self.since(since).any(|rules| {
            let pool = &rules.pools[pool];
            pool.cluster == cluster && pool.server_user() == server_user
        })
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

    /// The same for what a pool has of a configuration: one that is taken out of it goes on with
    /// what it had.
    pub(crate) fn most_kept(
        &self,
        since: u64,
        limit: impl Fn(&Configuration) -> Option<u64>,
    ) -> Option<u64> {
        let is_whole = |rules: &Configuration| rules.pools.iter().all(|pool| pool.here);
        self.most(if self.all().all(is_whole) { since } else { 0 }, limit)
    }

    /// Those that were in force at some time since then.
    fn since(&self, since: u64) -> impl Iterator<Item = &Configuration> {
        let reigns = self.reigns.iter();
        let in_force = reigns.filter(move |reign| reign.until.is_none_or(|until| until >= since));
        in_force.map(|reign| &reign.configuration)
    }
}

#[cfg(test)]
mod tests;
