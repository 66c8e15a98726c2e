use pgweir_testkit::eventually;

use super::*;

/// What a test's lines go to, and what it lets happen to them.
#[derive(Clone, Default)]
struct Paper(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    written: Vec<u8>,
    /// Writing waits.
    stuck: bool,
    /// There is room for so many bytes.
    room: Option<usize>,
}

impl Paper {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.0.lock().unwrap().written.clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let state = self.0.0.lock().unwrap();
        let mut state = self.0.1.wait_while(state, |state| state.stuck).unwrap();
        let n = state.room.unwrap_or(usize::MAX).min(bytes.len());
        if n == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.written.extend_from_slice(&bytes[..n]);
        if let Some(room) = &mut state.room {
            *room -= n;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sink(paper: &Paper) -> Sink {
    Sink::start(paper.clone(), |lost| format!("lost {lost}\n").into_bytes()).unwrap()
}

fn put(sink: &mut Sink, line: &str) {
    sink.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn lines_are_written_in_their_order() {
    let paper = Paper::default();
    let mut sink = sink(&paper);
    for n in 0..1_000 {
        put(&mut sink, &n.to_string());
    }
    sink.flush();
    let expected: String = (0..1_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(paper.text(), expected);
}

#[test]
fn where_writing_takes_long_lines_are_dropped_and_counted() {
    let paper = Paper::default();
    paper.set(|state| state.stuck = true);
    let mut sink = sink(&paper);
    put(&mut sink, "first");
    eventually("the first line to be taken", || sink.0.lock().is_writing());
    let long = "x".repeat(WAITING_BYTES / 4 - 1);
    for _ in 0..10 {
        put(&mut sink, &long);
    }
    paper.set(|state| state.stuck = false);
    sink.flush();
    put(&mut sink, "last");
    sink.flush();
    assert_eq!(paper.text(), format!("first\n{}lost 6\nlast\n", format!("{long}\n").repeat(4)));
}

#[test]
fn where_there_is_no_room_lines_are_dropped_and_counted() {
    let paper = Paper::default();
    paper.set(|state| state.room = Some(10));
    let mut sink = sink(&paper);
    for line in ["whole", "torn", "lost"] {
        put(&mut sink, line);
        sink.flush();
    }
    paper.set(|state| state.room = None);
    put(&mut sink, "whole again");
    sink.flush();
    assert_eq!(paper.text(), "whole\ntorn\nwhole again\nlost 2\n");
}

#[test]
fn a_flush_does_not_wait_for_ever() {
    let paper = Paper::default();
    paper.set(|state| state.stuck = true);
    let mut sink = sink(&paper);
    put(&mut sink, "stuck");
    sink.flush();
    assert_eq!(paper.text(), "");
    paper.set(|state| state.stuck = false);
}
