use super::{Mark, Marks};

/// Whether a test has taken a rare path since it asked last.
pub(crate) fn took(mark: Mark) -> bool {
    Marks::take().times(mark) > 0
}

#[test]
fn what_is_taken_is_counted_once() {
    Marks::take();
    Mark::WaitOver.hit();
    Mark::WaitOver.hit_if(false);
    Mark::Drained.hit_if(true);
    let once = Marks::take();
    let mut marks = once;
    marks.add(&once);
    let times = [Mark::WaitOver, Mark::Drained, Mark::ShutDown].map(|mark| marks.times(mark));
    assert_eq!(times, if cfg!(debug_assertions) { [2, 2, 0] } else { [0; 3] });
    assert_eq!(Marks::take(), Marks::default());
}

#[test]
fn another_thread_counts_for_itself() {
    Marks::take();
    let elsewhere = std::thread::spawn(|| {
        Mark::WaitOver.hit();
        Marks::take().times(Mark::WaitOver)
    });
    assert_eq!(elsewhere.join().expect("it counts"), u64::from(cfg!(debug_assertions)));
    assert_eq!(Marks::take(), Marks::default());
}
