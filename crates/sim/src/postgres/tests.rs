//! What a fake server process does, each time beside what PostgreSQL does in the same script: the
//! same messages, the same end of the stream, the same statements carried out.

mod fake;
mod real;
mod stage;

use pgweir_wire::frontend;

use crate::language::Tag;
use stage::{Doing, Peer, Stage, ask, batch, one, query, reply, rest, so_far};

/// Plays a script on both, and gives what was seen.
#[track_caller]
fn alike(play: fn(&mut dyn Stage) -> Vec<String>) -> Vec<String> {
    same(fake::with_fake(play), real::with_shared(play))
}

/// As [`alike`], for a script that all sessions of the server notice.
#[track_caller]
fn alike_alone(play: fn(&mut dyn Stage) -> Vec<String>) -> Vec<String> {
    same(fake::with_fake(play), real::with_own(play))
}

#[track_caller]
fn same(fake: Vec<String>, real: Vec<String>) -> Vec<String> {
    assert_eq!(fake, real, "the fake, and PostgreSQL");
    fake
}

fn tag(client: u32, number: u32) -> Tag {
    Tag { client, number }
}

fn written(stage: &mut dyn Stage, client: u32) -> String {
    format!("{:?}", stage.written(client))
}

/// Sends messages, waits until the statement with this tag and all behind it is dealt with, and
/// says what has come by then.
fn at_once(stage: &mut dyn Stage, peer: Peer, messages: &[u8], tag: Tag) -> String {
    stage.send(peer, messages);
    stage.until(peer, Doing::Reading(tag));
    so_far(stage, peer)
}

#[test]
fn flush_at_ready_for_query() {
    let seen = alike(|stage| {
        let peer = stage.login(&[]);
        let mut seen = Vec::new();
        // Neither the end of a statement nor rows are a reason to send.
        seen.push(at_once(stage, peer, &batch("rows c1s1 2"), tag(1, 1)));
        stage.send(peer, &frontend::SYNC);
        seen.push(reply(stage, peer));
        // A Flush is, an error is, and a notice is, with all that was said before.
        let flushed = [batch("rows c1s2 1"), frontend::FLUSH.to_vec()].concat();
        seen.push(at_once(stage, peer, &flushed, tag(1, 2)));
        seen.push(at_once(stage, peer, &batch("notice c1s3 1"), tag(1, 3)));
        seen.push(at_once(stage, peer, &batch("fail c1s4"), tag(1, 4)));
        stage.send(peer, &frontend::SYNC);
        seen.push(reply(stage, peer));
        seen
    });
    assert_eq!(seen, ["", "12DDCZI", "12DC", "12N", "C12E(22012)", "ZI"]);
}

#[test]
fn commit_and_deferred_errors_at_sync() {
    let seen = alike(|stage| {
        let peer = stage.login(&[]);
        let mut seen = Vec::new();
        let write = [batch("write c2s1"), frontend::FLUSH.to_vec()].concat();
        seen.push(at_once(stage, peer, &write, tag(2, 1)));
        seen.push(written(stage, 2));
        stage.send(peer, &frontend::SYNC);
        seen.push(reply(stage, peer));
        seen.push(written(stage, 2));
        let both = [batch("defer c2s2"), batch("write c2s3"), frontend::FLUSH.to_vec()].concat();
        seen.push(at_once(stage, peer, &both, tag(2, 3)));
        stage.send(peer, &frontend::SYNC);
        seen.push(reply(stage, peer));
        seen.push(written(stage, 2));
        seen
    });
    assert_eq!(seen, ["12C", "[]", "ZI", "[1]", "12C12C", "E(23505)ZI", "[1]"]);
}

#[test]
fn skip_to_sync() {
    let seen = alike(|stage| {
        let peer = stage.login(&[]);
        let skipped = [batch("fail c3s1"), batch("write c3s2"), query("write c3s3")].concat();
        let mut seen = vec![at_once(stage, peer, &skipped, tag(3, 1))];
        stage.send(peer, &[&frontend::SYNC[..], &query("write c3s4")].concat());
        seen.push(reply(stage, peer));
        seen.push(reply(stage, peer));
        seen.push(written(stage, 3));
        seen
    });
    assert_eq!(seen, ["12E(22012)", "ZI", "CZI", "[4]"]);
}

/// Two locks that the script has, and a client that waits for the first of them and has sent more.
fn held_up(stage: &mut dyn Stage, client: u32) -> (Peer, Peer) {
    let gate = stage.login(&[]);
    let line = |number: u32, function: &str| format!("call c{client}s{number} {function}");
    assert_eq!(ask(stage, gate, &line(1, "pg_advisory_lock(1)")), "CZI");
    assert_eq!(ask(stage, gate, &line(2, "pg_advisory_lock(2)")), "CZI");
    let peer = stage.login(&[]);
    let second = format!("{}; write c{client}s5", line(4, "pg_advisory_xact_lock(2)"));
    let messages = [
        query(&line(3, "pg_advisory_xact_lock(1)")),
        query(&second),
        query(&format!("write c{client}s6")),
    ];
    stage.send(peer, &messages.concat());
    stage.until(peer, Doing::Locked(tag(client, 3)));
    (gate, peer)
}

fn unlock(stage: &mut dyn Stage, gate: Peer, client: u32, key: u32) {
    let text = format!("call c{client}s{} pg_advisory_unlock({key})", 10 + key);
    assert_eq!(ask(stage, gate, &text), "CZI");
}

#[test]
fn it_has_read_ahead_and_goes_on_behind_our_close_until_a_write_fails() {
    let seen = alike(|stage| {
        let (gate, peer) = held_up(stage, 4);
        stage.close(peer);
        // The first write behind a close goes out, and is answered by a reset.
        unlock(stage, gate, 4, 1);
        stage.until(peer, Doing::Locked(tag(4, 4)));
        unlock(stage, gate, 4, 2);
        stage.until(peer, Doing::Gone);
        vec![written(stage, 4)]
    });
    assert_eq!(seen, ["[5]"]);
}

#[test]
fn behind_a_reset_the_first_write_fails() {
    let seen = alike(|stage| {
        let (gate, peer) = held_up(stage, 5);
        stage.reset(peer);
        unlock(stage, gate, 5, 1);
        stage.until(peer, Doing::Gone);
        vec![written(stage, 5)]
    });
    assert_eq!(seen, ["[]"]);
}

#[test]
fn behind_the_end_of_our_stream_all_is_carried_out() {
    let seen = alike(|stage| {
        let (gate, peer) = held_up(stage, 6);
        stage.half_close(peer);
        unlock(stage, gate, 6, 1);
        unlock(stage, gate, 6, 2);
        vec![rest(stage, peer), written(stage, 6)]
    });
    assert_eq!(seen, ["CZICCZICZI FIN", "[5, 6]"]);
}

#[test]
fn what_is_not_committed_is_undone_behind_a_close() {
    let seen = alike(|stage| {
        let block = stage.login(&[]);
        let mut seen = vec![ask(stage, block, "begin c7s1; write c7s2")];
        stage.close(block);
        stage.until(block, Doing::Gone);
        let open = stage.login(&[]);
        let flushed = [batch("write c7s3"), frontend::FLUSH.to_vec()].concat();
        seen.push(at_once(stage, open, &flushed, tag(7, 3)));
        stage.close(open);
        stage.until(open, Doing::Gone);
        seen.push(written(stage, 7));
        seen
    });
    assert_eq!(seen, ["CCZT", "12C", "[]"]);
}

#[test]
fn a_cancel_that_lands_late() {
    let seen = alike(|stage| {
        let gate = stage.login(&[]);
        let peer = stage.login(&[]);
        let mut seen = vec![ask(stage, gate, "call c8s1 pg_advisory_lock(1)")];
        seen.push(ask(stage, peer, "rows c8s2 1"));
        // Of a backend that waits for a command nothing is left of it.
        stage.cancel(peer);
        seen.push(ask(stage, peer, "rows c8s3 1"));
        // It hits what runs, whatever it was meant for.
        let waits = query("call c8s4 pg_advisory_lock(1)");
        stage.send(peer, &[waits, query("rows c8s5 1")].concat());
        stage.until(peer, Doing::Locked(tag(8, 4)));
        stage.cancel(peer);
        seen.push(reply(stage, peer));
        seen.push(reply(stage, peer));
        // Where COPY data are read it has to wait for some.
        seen.push(at_once(stage, peer, &query("copy_in c8s6"), tag(8, 6)));
        stage.cancel(peer);
        seen.push(so_far(stage, peer));
        let mut data = Vec::new();
        frontend::write_copy_data(&mut data, b"c8s6");
        data.extend_from_slice(&frontend::COPY_DONE);
        stage.send(peer, &data);
        seen.push(reply(stage, peer));
        seen.push(ask(stage, peer, "rows c8s7 1"));
        seen
    });
    let hit = "E(57014)ZI";
    assert_eq!(seen, ["CZI", "TDCZI", "TDCZI", hit, "TDCZI", "G", "", hit, "TDCZI"]);
}

#[test]
fn exit_with_unread_input_is_a_reset() {
    let seen = alike(|stage| {
        let gate = stage.login(&[]);
        let [read, unread] = [(); 2].map(|()| stage.login(&[]));
        let mut seen = vec![ask(stage, gate, "call c9s1 pg_advisory_lock(1)")];
        stage.send(read, &query("call c9s2 pg_advisory_lock(1)"));
        stage.until(read, Doing::Locked(tag(9, 2)));
        stage.terminate(read);
        seen.push(rest(stage, read));
        stage.send(unread, &query("call c9s3 pg_advisory_lock(1)"));
        stage.until(unread, Doing::Locked(tag(9, 3)));
        stage.send(unread, &query("write c9s4"));
        stage.terminate(unread);
        seen.push(rest(stage, unread));
        seen.push(written(stage, 9));
        seen
    });
    assert_eq!(seen, ["CZI", "E(57P01) FIN", "E(57P01) RST", "[]"]);
}

/// A client that does not read what is too much for all buffers.
fn blocked(stage: &mut dyn Stage, text: &str) -> Peer {
    let peer = stage.login(&[]);
    stage.send(peer, &query(text));
    stage.until(peer, Doing::Writing);
    peer
}

#[test]
fn fatal_in_order() {
    let seen = alike(|stage| {
        let peer = stage.login(&[]);
        let mut seen = vec![at_once(stage, peer, &batch("rows c10s1 2"), tag(10, 1))];
        stage.terminate(peer);
        seen.push(rest(stage, peer));
        // In the middle of a message there is no place for it.
        let peer = blocked(stage, "big c10s2 16000000");
        stage.terminate(peer);
        stage.until(peer, Doing::Gone);
        seen.push(rest(stage, peer));
        seen
    });
    assert_eq!(seen, ["", "12DDCE(57P01) FIN", "T~FIN"]);
}

#[test]
fn warning_57p02_in_order() {
    let seen = alike_alone(|stage| {
        let [crashes, idle, batched, waits, unread] = [(); 5].map(|()| stage.login(&[]));
        let full = blocked(stage, "big c11s1 16000000");
        let mut seen = vec![ask(stage, idle, "call c11s2 pg_advisory_lock(1)")];
        seen.push(at_once(stage, batched, &batch("rows c11s3 2"), tag(11, 3)));
        stage.send(waits, &query("call c11s4 pg_advisory_lock(1)"));
        stage.until(waits, Doing::Locked(tag(11, 4)));
        stage.send(unread, &query("call c11s5 pg_advisory_lock(1)"));
        stage.until(unread, Doing::Locked(tag(11, 5)));
        stage.send(unread, &query("write c11s6"));
        stage.kill(crashes);
        for peer in [crashes, idle, batched, waits, unread, full] {
            seen.push(rest(stage, peer));
        }
        seen
    });
    let ends =
        [" FIN", "N(57P02) FIN", "12DDCN(57P02) FIN", "N(57P02) FIN", "N(57P02) RST", "T~FIN"];
    assert_eq!(seen, [&["CZI", ""][..], &ends].concat());
}

#[test]
fn parameter_status_before_ready_for_query() {
    let seen = alike_alone(|stage| {
        let [peer, other] = [(); 2].map(|()| stage.login(&[]));
        let mut seen = vec![ask(stage, other, "set c11s1 TimeZone Asia/Tokyo")];
        seen.push(ask(stage, peer, "begin c12s2; set c12s3 TimeZone UTC; rollback /*c12s4*/"));
        seen.push(ask(stage, peer, "begin c12s5"));
        stage.reload();
        // PostgreSQL's backends read it some time later, when they have read a command.
        let replies = (6..10_000).map(|number| ask(stage, peer, &format!("rows c12s{number} 1")));
        seen.extend(replies.filter(|reply| reply.contains('S')).take(1));
        seen.push(ask(stage, peer, "rollback /*c12s10000*/"));
        seen
    });
    assert_eq!(seen, ["CSZI", "CCCZI", "CZT", "TDCSZT", "CZI"]);
}

#[test]
fn statement_timeout() {
    let seen = alike(|stage| {
        let gate = stage.login(&[]);
        let mut seen = vec![ask(stage, gate, "call c13s1 pg_advisory_lock(1)")];
        let peer = stage.login(&[("statement_timeout", "200")]);
        seen.push(ask(stage, peer, "call c13s2 pg_advisory_lock(1)"));
        let late = batch("call c13s3 pg_advisory_lock(1)");
        stage.send(peer, &[&late[..], &batch("write c13s4"), &frontend::SYNC].concat());
        seen.push(reply(stage, peer));
        seen.push(ask(stage, peer, "begin c13s5; call c13s6 pg_advisory_lock(1)"));
        // Each statement has its own time, in a string as in a batch.
        let [string, batched] = [(); 2].map(|()| stage.login(&[("statement_timeout", "2000")]));
        stage.send(string, &query("sleep c13s7 1200; sleep c13s8 1200"));
        let sleeps = [batch("sleep c13s9 1200"), batch("sleep c13s10 1200")].concat();
        stage.send(batched, &[&sleeps[..], &frontend::SYNC].concat());
        seen.push(reply(stage, string));
        seen.push(reply(stage, batched));
        seen.push(written(stage, 13));
        seen
    });
    let ended = ["CZI", "E(57014)ZI", "12E(57014)ZI", "CE(57014)ZE"];
    assert_eq!(seen, [&ended[..], &["CCZI", "12C12CZI", "[]"]].concat());
}

#[test]
fn no_reading_while_blocked_in_writing() {
    let seen = alike(|stage| {
        let peer = blocked(stage, "big c14s1 16000000");
        stage.send(peer, &query("write c14s2"));
        // A cancel is not looked at either, until what is under way is out.
        stage.cancel(peer);
        stage.until(peer, Doing::Writing);
        let mut seen = vec![written(stage, 14)];
        seen.push(reply(stage, peer));
        seen.push(reply(stage, peer));
        seen.push(written(stage, 14));
        seen
    });
    assert_eq!(seen, ["[]", "TDE(57014)ZI", "CZI", "[2]"]);
}

#[test]
fn locks_are_waited_for() {
    let seen = alike(|stage| {
        let [holder, waiter] = [(); 2].map(|()| stage.login(&[]));
        let mut seen = Vec::new();
        let mut number = 0;
        let wait = |stage: &mut dyn Stage, number: &mut u32| {
            *number += 1;
            let text = format!("call c15s{number} pg_advisory_xact_lock(1)");
            stage.send(waiter, &query(&text));
            stage.until(waiter, Doing::Locked(tag(15, *number)));
        };
        // A lock of the session ends when it is given back; one of a transaction with that, or with
        // a part of it; and all of them with their process.
        let taken = "call c15s101 pg_advisory_lock(1)";
        let block = "begin c15s102; call c15s103 pg_advisory_xact_lock(1)";
        let part = "begin c15s104; savepoint c15s105 a; call c15s106 pg_advisory_xact_lock(1)";
        for (takes, gives) in [
            (taken, "call c15s107 pg_advisory_unlock(1)"),
            (block, "commit c15s108"),
            (part, "rollback to a /*c15s109*/"),
        ] {
            seen.push(ask(stage, holder, takes));
            wait(stage, &mut number);
            seen.push(ask(stage, holder, gives));
            seen.push(reply(stage, waiter));
        }
        seen.push(ask(stage, holder, "call c15s110 pg_advisory_lock(1)"));
        wait(stage, &mut number);
        stage.terminate(holder);
        seen.push(reply(stage, waiter));
        seen
    });
    let taken = ["CZI", "CZI", "CZI", "CCZT", "CZI", "CZI", "CCCZT", "CZT", "CZI"];
    assert_eq!(seen, [&taken[..], &["CZT", "CZI"]].concat());
}

/// Who reads a row to change it, or changes it, waits for whoever has done so, as long as its own
/// statement_timeout lets it.
#[test]
fn locks_of_rows_are_waited_for() {
    let seen = alike(|stage| {
        let [holder, waiter] = [(); 2].map(|()| stage.login(&[]));
        let hasty = stage.login(&[("statement_timeout", "10")]);
        let mut seen = Vec::new();
        for (number, takes, waits) in [
            (1, "select c18s1 lock 1 for update", "update c18s101 lock 1"),
            (2, "update c18s2 lock 1", "select c18s102 lock 1 for update"),
            (3, "update c18s3 lock 1", "update c18s103 lock 1"),
        ] {
            seen.push(ask(stage, holder, &format!("begin c18s20{number}; {takes}")));
            stage.send(waiter, &query(waits));
            stage.until(waiter, Doing::Locked(tag(18, 100 + number)));
            seen.push(ask(stage, hasty, &format!("update c18s30{number} lock 1")));
            seen.push(ask(stage, holder, &format!("commit c18s40{number}")));
            seen.push(reply(stage, waiter));
        }
        seen.push(ask(stage, holder, "select c18s4 lock 1 for update"));
        seen.push(ask(stage, waiter, "update c18s5 lock 1"));
        seen
    });
    let each = ["CCZT", "E(57014)ZI", "CZI", "CZI"];
    assert_eq!(seen, [&each[..], &each, &each, &["CZI", "CZI"]].concat());
}

/// Two transactions that wait for each other's rows.
#[test]
fn a_circle_of_rows_has_an_end() {
    let seen = alike(|stage| {
        let patient = stage.login(&[("deadlock_timeout", "1000000")]);
        let first = stage.login(&[("deadlock_timeout", "10")]);
        let mut seen = vec![ask(stage, patient, "begin c19s1; update c19s2 lock 1")];
        seen.push(ask(stage, first, "begin c19s3; select c19s4 lock 2 for update"));
        stage.send(patient, &query("update c19s5 lock 2"));
        stage.until(patient, Doing::Locked(tag(19, 5)));
        seen.push(ask(stage, first, "update c19s6 lock 1"));
        seen.push(ask(stage, first, "rollback /*c19s7*/"));
        seen.push(reply(stage, patient));
        seen.push(ask(stage, patient, "commit c19s8"));
        seen
    });
    assert_eq!(seen, ["CCZT", "CCZT", "E(40P01)ZE", "CZI", "CZT", "CZI"]);
}

#[test]
fn a_wait_for_a_lock_has_an_end() {
    let seen = alike(|stage| {
        let patient = stage.login(&[("deadlock_timeout", "1000000")]);
        let first = stage.login(&[("deadlock_timeout", "10")]);
        let mut seen = vec![ask(stage, patient, "call c16s1 pg_advisory_lock(1)")];
        seen.push(ask(stage, first, "call c16s2 pg_advisory_lock(2)"));
        stage.send(patient, &query("call c16s3 pg_advisory_lock(2)"));
        stage.until(patient, Doing::Locked(tag(16, 3)));
        seen.push(ask(stage, first, "begin c16s4; call c16s5 pg_advisory_xact_lock(1)"));
        let hasty = stage.login(&[("lock_timeout", "10")]);
        seen.push(ask(stage, hasty, "call c16s6 pg_advisory_lock(1)"));
        // What the session had taken before is still its own.
        seen.push(ask(stage, first, "rollback /*c16s7*/"));
        seen.push(ask(stage, first, "call c16s8 pg_advisory_unlock(2)"));
        seen.push(reply(stage, patient));
        seen
    });
    let ends = ["CE(40P01)ZE", "E(55P03)ZI", "CZI", "CZI", "CZI"];
    assert_eq!(seen, [&["CZI", "CZI"][..], &ends].concat());
}

#[test]
fn channels_lead_to_all_that_listen() {
    let seen = alike(|stage| {
        let [listens, notifies] = [(); 2].map(|()| stage.login(&[]));
        let mut seen = vec![ask(stage, listens, "listen c17s1 all_of_17")];
        // It is told at once if it is idle, and behind its transaction otherwise.
        seen.push(ask(stage, notifies, "notify c17s2 all_of_17"));
        seen.push(one(stage, listens));
        seen.push(ask(stage, listens, "begin c17s3"));
        seen.push(ask(stage, notifies, "notify c17s4 all_of_17; notify c17s5 none_of_17"));
        seen.push(ask(stage, listens, "rows c17s6 1"));
        seen.push(ask(stage, listens, "commit c17s7"));
        seen
    });
    assert_eq!(seen, ["CZI", "CZI", "A", "CZT", "CCZI", "TDCZT", "CAZI"]);
}

#[test]
fn rows_that_another_session_changes() {
    let seen = alike(|stage| {
        let (peer, other) = (stage.login(&[]), stage.login(&[]));
        let mut seen = Vec::new();
        let mut parse = Vec::new();
        frontend::write_parse(&mut parse, b"n", b"shaped c28s1 1", &[25]);
        let bind = |number: u32| {
            let mut out = Vec::new();
            let value = tag(28, number).to_string();
            frontend::write_bind(&mut out, b"", b"n", &[Some(value.as_bytes())]);
            frontend::write_execute(&mut out, b"", 0);
            [&out[..], &frontend::SYNC].concat()
        };
        stage.send(peer, &[parse, bind(2)].concat());
        seen.push(reply(stage, peer));
        seen.push(ask(stage, other, "begin c29s1; alter c29s2 shape"));
        // Not before it is committed, and who changes it as well waits for that.
        stage.send(peer, &bind(3));
        seen.push(reply(stage, peer));
        stage.send(peer, &query("alter c28s4 shape"));
        stage.until(peer, Doing::Locked(tag(28, 4)));
        seen.push(ask(stage, other, "commit c29s3"));
        seen.push(reply(stage, peer));
        stage.send(peer, &bind(5));
        seen.push(reply(stage, peer));
        seen
    });
    assert_eq!(seen, ["12DCZI", "CCZT", "2DCZI", "CZI", "CZI", "E(0A000)ZI"]);
}
