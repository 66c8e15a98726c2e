//! What threads count together, in every order of their steps, or in thousands.

use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, Runner};

use super::{Answer, Arc, Count, Counter, Member, Room, Want};
use crate::action::Address;
use crate::marks::{Mark, Marks};
use crate::shares::Of;
use crate::time::Time;

/// What one lacks.
fn want() -> Vec<Want> {
    vec![Want { since: Time(1), own: 0, besides: Vec::new() }]
}

/// Runs a test once for each order in which the steps of its threads can come.
fn in_every_order(test: impl Fn() + Send + Sync + 'static) {
    let orders = Runner::new(DfsScheduler::new(None, false), Config::new()).run(test);
    assert!(orders > 1, "there was nothing to put in order");
}

/// Runs a test that has too many orders for that under some of them.
fn in_many_orders(test: impl Fn() + Send + Sync + 'static) {
    Runner::new(RandomScheduler::new(10_000), Config::new()).run(test);
}

/// Each does the same to a number.
fn threads<T: Send + Sync + 'static, R: Send + 'static>(
    count: usize,
    shared: &Arc<T>,
    each: fn(&T, usize) -> R,
) -> Vec<R> {
    let start = |index| {
        let shared = Arc::clone(shared);
        thread::spawn(move || each(&shared, index))
    };
    let threads: Vec<_> = (0..count).map(start).collect();
    threads.into_iter().map(joined).collect()
}

fn joined<R>(thread: JoinHandle<R>) -> R {
    thread.join().expect("it ends")
}

/// Whether a rare path was taken in any order since this was asked last: the threads of a schedule
/// are all on the thread of its test.
fn took(mark: Mark) -> bool {
    Marks::take().times(mark) > 0
}

fn count_of(most: usize) -> Arc<Count> {
    let count = Count::new(2);
    count.limit(Some(most));
    Arc::new(count)
}

fn address() -> Address {
    Address { host: "127.0.0.1".to_owned(), port: 5432 }
}

#[test]
fn the_last_connection_of_a_limit_is_given_once() {
    in_every_order(|| {
        let count = count_of(1);
        let opened = threads(2, &count, |count, _| count.try_open(usize::MAX));
        assert_eq!(opened.into_iter().filter(|opened| *opened).count(), 1);
        assert_eq!((count.used(), count.opening(), count.room()), (1, 1, 0));
    });
}

#[test]
fn no_more_connections_are_made_at_a_time_than_may_be() {
    in_every_order(|| {
        let shared = Arc::new((count_of(usize::MAX), Counter::new(0)));
        threads(2, &shared, |(count, made), _| {
            if count.try_open(1) {
                assert_eq!(made.add(), 0, "two are made at a time");
                made.sub();
                count.opened();
                count.gone();
            }
        });
        assert_eq!((shared.0.used(), shared.0.opening()), (0, 0));
    });
}

/// Whoever finds nothing left finds something once it has been given back, whatever both do.
#[test]
fn what_is_given_back_is_there_again() {
    in_every_order(|| {
        let count = count_of(1);
        let opened = threads(2, &count, |count, index| {
            let opened = count.try_open(1);
            if opened && index == 0 {
                count.opened();
                count.gone();
            }
            opened
        });
        assert_eq!(count.used(), usize::from(opened[1]));
        assert_eq!(count.try_open(usize::MAX), !opened[1]);
    });
}

#[test]
fn the_last_place_of_a_client_is_given_once() {
    in_every_order(|| {
        let count = count_of(usize::MAX);
        let entered = threads(2, &count, |count, _| count.try_enter(Some(1)));
        assert_eq!(entered.into_iter().filter(|entered| *entered).count(), 1);
        count.left();
        assert_eq!(count.clients(), 0);
    });
}

/// All engines that ask for a share get the same, although others have let go of it.
#[test]
fn a_share_has_one_count() {
    in_every_order(|| {
        let members = Arc::new(Member::all(2));
        let counts = threads(2, &members, |members, index| {
            let of = Of::User("user".to_owned());
            if index == 0 {
                drop(members[index].commons().count(&of, || None));
            }
            members[index].commons().count(&of, || None)
        });
        assert!(Arc::ptr_eq(&counts[0], &counts[1]), "each counts for itself");
    });
}

/// One says what it lacks and looks what there is; the other leaves something and looks who lacks
/// it. One of the two sees the other, or both would wait.
#[test]
fn who_lacks_a_connection_and_who_leaves_one_do_not_miss_each_other() {
    in_every_order(|| {
        meet(|count, member| {
            count.post(member, want(), 0);
            count.room() > 0
        })
    });
}

fn meet(lacks: fn(&Count, &Member) -> bool) {
    let count = count_of(1);
    assert!(count.try_open(usize::MAX));
    count.opened();
    let members = Member::all(2);
    let (own, other) = (members[0].clone(), members[1].clone());
    let (here, there) = (Arc::clone(&count), count);
    let one = thread::spawn(move || lacks(&here, &own));
    let two = thread::spawn(move || {
        there.gone();
        !there.wants_of_others(&other).is_empty()
    });
    assert!(joined(one) | joined(two), "both wait");
}

/// A worker that sets a limit by what it has known is not the last to do so, if another has been
/// told meanwhile what there is room for: it would hold until somebody asks again.
#[test]
fn what_a_server_has_said_is_its_limit() {
    const ROOM: Room = Room { connections_max: 100, reserved: 3 };
    Marks::take();
    in_many_orders(|| {
        let shared = Arc::new((Member::all(2), count_of(1)));
        threads(2, &shared, |(members, count), index| {
            let commons = members[index].commons();
            if index == 0 {
                commons.set_room(address(), Answer::Room(ROOM));
            }
            commons.limit_by_room(&address(), count, |answer, used| match answer {
                Answer::Awaited | Answer::Useless => Some(used + 1),
                Answer::Room(room) => Some(room.free() as usize),
            });
        });
        assert_eq!(shared.1.most(), Some(ROOM.free() as usize));
    });
    assert!(took(Mark::RoomToldMeanwhile));
}

/// The operator is told once what a server has room for.
#[test]
fn an_answer_of_two_servers_is_news_once() {
    in_every_order(|| {
        let members = Arc::new(Member::all(2));
        let news = threads(2, &members, |members, index| {
            members[index].commons().set_room(address(), Answer::Useless)
        });
        assert_eq!(news.into_iter().filter(|news| *news).count(), 1);
    });
}

/// What these tests are there to find is found: a look, and then a step.
#[test]
#[should_panic(expected = "the last was given twice")]
fn a_limit_that_is_looked_at_first_is_exceeded() {
    in_every_order(|| {
        let number = Arc::new(Counter::new(0));
        threads(2, &number, |number, _| {
            if number.value() < 1 {
                number.add();
            }
        });
        assert_eq!(number.value(), 1, "the last was given twice");
    });
}

/// The same for whoever looks what there is before it says what it lacks.
#[test]
#[should_panic(expected = "both wait")]
fn who_looks_before_it_says_what_it_lacks_waits_for_ever() {
    in_every_order(|| {
        meet(|count, member| {
            let room = count.room() > 0;
            count.post(member, want(), 0);
            room
        })
    });
}

/// And a connection that two believe to be theirs.
#[test]
#[should_panic(expected = "taken off twice")]
fn what_two_give_back_is_noticed() {
    in_every_order(|| {
        let count = count_of(1);
        assert!(count.try_open(1));
        threads(2, &count, |count, _| count.gone());
    });
}
