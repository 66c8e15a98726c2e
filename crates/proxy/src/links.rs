use pgweir_engine::Endpoint;

use crate::link::Link;

/// The connections of one kind, in the places that the engine gave them.
pub(crate) struct Links<T>(Vec<Option<(Endpoint, Link<T>)>>);

impl<T> Links<T> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn insert(&mut self, endpoint: Endpoint, link: Link<T>) {
        let place = place(endpoint);
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        debug_assert!(self.0[place].is_none(), "{endpoint:?}: the place is taken");
        self.0[place] = Some((endpoint, link));
    }

    #[inline]
    pub(crate) fn find(&mut self, endpoint: Endpoint) -> Option<&mut Link<T>> {
        match self.0.get_mut(place(endpoint)) {
            Some(Some((owner, link))) if *owner == endpoint => Some(link),
            _ => None,
        }
    }

    pub(crate) fn look(&self, endpoint: Endpoint) -> Option<&Link<T>> {
        match self.0.get(place(endpoint)) {
            Some(Some((owner, link))) if *owner == endpoint => Some(link),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, endpoint: Endpoint) -> Option<Link<T>> {
        self.find(endpoint)?;
        self.0[place(endpoint)].take().map(|(_, link)| link)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Link<T>> {
        self.0.iter().flatten().map(|(_, link)| link)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }
}

/// Where the engine has put a connection among those of its kind.
fn place(endpoint: Endpoint) -> usize {
    match endpoint {
        Endpoint::Cancel(id) => id.index(),
        Endpoint::Client(id) => id.index(),
        Endpoint::Server(id) => id.index(),
    }
}
