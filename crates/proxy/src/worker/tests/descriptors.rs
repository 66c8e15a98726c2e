//! A process that has no descriptor left. Each test is a process of its own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::tests::alone;

/// As long as this is there, nobody gets a descriptor.
struct NoDescriptors(Rlimit);

impl NoDescriptors {
    fn begin() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let none = Rlimit { current: Some(0), maximum: limit.maximum };
        setrlimit(Resource::Nofile, none).expect("less is always granted");
        Self(limit)
    }
}

impl Drop for NoDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).expect("the highest is what it was");
    }
}

/// The operator is told, and who has come meanwhile is let in.
#[test]
fn clients_come_in_again_where_accept_has_failed() {
    let name = "worker::tests::descriptors::clients_come_in_again_where_accept_has_failed";
    alone(name, || {
        on_a_worker(async {
            let (listener, door) = door("door");
            let mut site = Site::alone(&serverless(1), vec![listener]);
            is_open(&door).await;
            let client = client(&door, &startup("admin", "pgweir"));
            let none = NoDescriptors::begin();
            assert!(matches!(site.told().await, News::AcceptFailed(_, 1)));
            eventually(|| times(Mark::AcceptFailed) > 1).await;
            assert!(took(Mark::AcceptFailed));
            drop(none);
            is_greeted(&client).await;
            site.stops().await;
        });
    });
}

/// Who has come to a door before it is closed is let in once there is a descriptor.
#[test]
fn who_is_at_a_door_that_is_closed_is_let_in_when_that_can_be() {
    let name = "worker::tests::descriptors::\
                who_is_at_a_door_that_is_closed_is_let_in_when_that_can_be";
    alone(name, || {
        on_a_worker(async {
            // Unless this machine stands still for so long that it is given up.
            while !is_let_in_late().await {}
        });
    });
}

async fn is_let_in_late() -> bool {
    let (listener, door) = door("door");
    let site = Site::alone(&serverless(1), vec![listener]);
    is_open(&door).await;
    let (failures, given_up) = (times(Mark::AcceptFailedAtClose), times(Mark::ClosingGivenUp));
    let client = client(&door, &startup("admin", "pgweir"));
    let none = NoDescriptors::begin();
    let (asker, done) = oneshot::channel();
    site.tell(Mail::Listen(Vec::new(), asker));
    eventually(|| times(Mark::AcceptFailedAtClose) > failures).await;
    drop(none);
    done.await.expect("it has not ended");
    assert!(took(Mark::AcceptFailedAtClose));
    let is_let_in = times(Mark::ClosingGivenUp) == given_up;
    if is_let_in {
        is_greeted(&client).await;
    }
    site.stops().await;
    is_let_in
}

/// It finds its connection closed, the operator is told, and its place is another's.
#[test]
fn who_cannot_be_given_to_another_worker_is_counted_no_more() {
    let name = "worker::tests::descriptors::\
                who_cannot_be_given_to_another_worker_is_counted_no_more";
    alone(name, || {
        on_a_worker(async {
            let (listener, door) = door("door");
            let member = Member::all(2).swap_remove(0);
            let mut site = Site::one_of(member.clone(), 2, &serverless(2), vec![listener]);
            let lost = client(&door, b"");
            while site.clients_left().await == 0 {
                tokio::task::yield_now().await;
            }
            let none = NoDescriptors::begin();
            lost.try_write(&startup("user", "east")).expect("there is room");
            assert!(matches!(site.told().await, News::AcceptFailed(_, 1)));
            drop(none);
            assert!(took(Mark::NotGiven));
            assert_eq!(hears(&lost, b"").await.expect("no error"), b"");
            let given = tokio::time::timeout(Duration::ZERO, site.inboxes[0].recv()).await;
            assert!(given.is_err(), "it was given away all the same");
            assert_eq!(site.clients_left().await, 0);
            member.check_empty();
            site.stops().await;
        });
    });
}

/// The operator is told that the kernel's own patience is all there is, and clients are served.
#[test]
fn a_worker_goes_on_where_the_kernel_cannot_be_asked_about_peers() {
    let name = "worker::tests::descriptors::\
                a_worker_goes_on_where_the_kernel_cannot_be_asked_about_peers";
    alone(name, || {
        on_a_worker(async {
            let (listener, door) = door("door");
            let plan = serverless(1);
            let mut site = Site::alone(&plan, vec![listener]);
            is_open(&door).await;
            let tcp = TcpOptions { user_timeout: Some(Duration::from_secs(60)), ..OPTIONS };
            let none = NoDescriptors::begin();
            site.reload(&plan, tcp, vec![("door".to_owned(), None)]);
            // Whether a listener was to be asked about its options, or the kernel about peers.
            while !matches!(site.told().await, News::NoSockDiag(_)) {}
            drop(none);
            assert!(took(Mark::WatchRenewed) && took(Mark::NoSockDiag));
            is_open(&door).await;
            site.stops().await;
        });
    });
}
