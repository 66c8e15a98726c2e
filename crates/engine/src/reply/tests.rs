//! Each case is a line of what the client sends (`>`) and what the server answers (`<`), in the
//! protocol's own letters, and what becomes of it.

use pgweir_wire::Header;
use pgweir_wire::backend::Tag;

use super::*;
use crate::marks::tests::took;

/// Sends and answers as `script` says: `>` and `<` switch the direction, and each letter is a
/// message (`c`, sent, is CopyDone). Gives what came of it: `.` a part of a reply, `+` a reply
/// that is settled, `!` an error, `Zn` the unit with slot n, `xn` a slot that will not be filled,
/// `#` a violation, after which nothing more is read. Slots count the units in the order sent, as
/// `Client` gives them out.
fn play(script: &str) -> String {
    let mut replies = Replies::new();
    let mut out = String::new();
    let mut sending = true;
    let mut slot = 0;
    for letter in script.bytes() {
        match letter {
            b' ' => {}
            b'>' => sending = true,
            b'<' => sending = false,
            _ if sending => {
                let kind = sent(letter);
                let ignored = letter == b'S' && replies.ignores_sync();
                let ends = matches!(kind, Kind::Query { .. } | Kind::FunctionCall | Kind::Sync);
                let ends = ends && !ignored;
                replies.push(Expected { kind, sink: Sink::Client(Slot(slot)) });
                if ends {
                    slot += 1;
                }
            }
            _ => {
                let tag = Tag::of(Header { tag: letter, body_len: 0 }).unwrap();
                let mut dropped = Vec::new();
                let step = replies.step(tag, &mut |slot| dropped.push(slot));
                let violated = step.is_err();
                out += &match step {
                    Ok(Step::More { .. }) => ".".to_owned(),
                    Ok(Step::Settled { .. }) => "+".to_owned(),
                    Ok(Step::Failed { .. } | Step::Unasked) => "!".to_owned(),
                    Ok(Step::Ready { sink: Sink::Client(Slot(n)), .. }) => format!("Z{n}"),
                    Ok(Step::Ready { .. }) => "Z".to_owned(),
                    Err(_) => "#".to_owned(),
                };
                for Slot(n) in dropped {
                    out += &format!("x{n}");
                }
                if violated {
                    return out;
                }
            }
        }
    }
    if replies.is_empty() { out } else { out + "…" }
}

fn sent(letter: u8) -> Kind {
    match letter {
        b'B' => Kind::Bind,
        b'C' => Kind::CloseStatement { closes: Closes::Own },
        b'D' => Kind::DescribePortal,
        b'd' => Kind::DescribeStatement { of: Described::Named },
        b'E' => Kind::Execute { sent: 0 },
        b'F' => Kind::FunctionCall,
        b'P' => Kind::Parse { makes: Makes::Own },
        b'Q' => Kind::Query { sent: 0 },
        b'S' => Kind::Sync,
        b'c' => Kind::CopyEnd,
        _ => panic!("no message {}", letter.escape_ascii()),
    }
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(play(script), expected, "{script}");
}

#[test]
fn simple_queries() {
    check("> Q < TDDCZ", "....Z0");
    check("> Q < IZ", ".Z0");
    check("> Q < CTDCIZ", ".....Z0");
    check("> Q < TDEZ", "..!Z0");
    check("> Q < T", ".…");
    check("> QQ < CZCZ", ".Z0.Z1");
    check("> F < VZ", ".Z0");
    check("> F < EZ", "!Z0");
}

#[test]
fn what_a_query_does_not_allow() {
    for tag in ["1", "2", "3", "n", "s", "t", "V", "d", "c", "R", "K", "v"] {
        check(&format!("> Q < {tag}"), "#");
    }
    check("> Q < EC", "!#");
    check("> Q < TTDC", "....…");
    check("> Q < EEZ", "!!Z0");
    check("< Z", "#");
    check("< D", "#");
    check("< E", "!");
}

/// A ReadyForQuery too many is not the answer to what was sent since: the next replies would go to
/// the wrong client, each of them.
#[test]
fn a_reply_is_not_over_before_it_was_given() {
    check("> Q < Z", "#");
    check("> F < Z", "#");
    check("> QQ < CZZ", ".Z0#");
    check("> Q < TZ", ".#");
    check("> Q < TDZ", "..#");
    check("> Q < CTZ", "..#");
    check("> Q < GZ", ".#");
    check("> F < VV", ".#");
}

/// But for a Sync that PostgreSQL may or may not have read as part of a COPY that failed.
#[test]
fn a_doubtful_sync_may_be_answered_behind_the_next_query() {
    check("> PBES < 12GE > cS < Z > Q < ZCZ", "++.x0!Z1Z.Z2");
    // Once.
    check("> PBES < 12GE > cS < Z > Q < ZZ", "++.x0!Z1Z#");
    check("> PBES < 12GE > cS < ZZZ", "++.x0!Z1Z#");
    // And where it is clear that nothing was read of what was sent since.
    check("> PBES < 12GE > cS < Z > QQ < Z", "++.x0!Z1#");
    check("> PBES < 12GE > cS < Z > P < Z", "++.x0!Z1#");
}

#[test]
fn rows_come_behind_their_description() {
    check("> Q < D", "#");
    check("> Q < CD", ".#");
    check("> Q < TDCD", "...#");
    check("> BES < 2TD", "+#");
}

/// CopyDone comes before CommandComplete.
#[test]
fn a_copy_out_has_an_end_of_its_own() {
    check("> Q < HdC", "..#");
    check("> PBES < 12HdC", "++..#");
    check("> PBES < 12Hds", "++..#");
}

#[test]
fn extended_batches() {
    check("> PBDES < 12TDDCZ", "+++..+Z0");
    check("> PdS < 1tTZ", "+.+Z0");
    check("> PdS < 1tnZ", "+.+Z0");
    check("> BES < 2sZ", "++Z0");
    check("> CS < 3Z", "+Z0");
    check("> S < Z", "Z0");
    check("> PBES PBES < 12CZ 12CZ", "+++Z0+++Z1");
}

#[test]
fn replies_of_a_batch_come_in_order() {
    check("> PB < 2", "#");
    check("> PB < 11", "+#");
    check("> dS < T", "#");
    check("> dS < tt", ".#");
    check("> BES < 2Z", "+#");
    check("> ES < CC", "+#");
}

/// After an error everything up to the Sync is skipped, and one ReadyForQuery answers each Sync.
#[test]
fn an_error_skips_to_the_sync() {
    check("> PBDES < EZ", "!Z0");
    check("> PBDES PBDES < EZ 12TCZ", "!Z0++++Z1");
    check("> PBES < 12EZ", "++!Z0");
    check("> PBES < 1EZ", "+!Z0");
    check("> PB < E > ES < Z", "!Z0");
    check("> PB < E > QS < Z", "!Z1");
}

#[test]
fn queries_and_calls_in_a_failed_batch_are_not_answered() {
    check("> PQS < EZ", "!x0Z1");
    check("> PFQS < EZ", "!x0x1Z2");
    check("> PQS < 1CZZ", "+.Z0Z1");
}

#[test]
fn a_sync_can_fail() {
    check("> PBES < 12CEZ", "+++!Z0");
}

#[test]
fn copy_out() {
    check("> Q < HddcCZ", ".....Z0");
    check("> PBES < 12HddcCZ", "++....+Z0");
    check("> Q < HdT", "..#");
    check("> Q < HddcCTDCZ", "........Z0");
    check("> Q < Hdcd", "...#");
    // BASE_BACKUP (documentation, "Streaming Replication Protocol"); before PostgreSQL 15 with a
    // COPY for each tablespace.
    check("> Q < TDCTDCHddcHdcTDCCZ", ".................Z0");
}

#[test]
fn copy_in() {
    check("> Q < G > c < CZ", "..Z0");
    check("> Qc < GCZ", "..Z0");
    check("> Q < GEZ", ".!Z0");
    check("> Q < GEZ > c", ".!Z0");
    check("> Q < G > c < D", ".#");
}

/// Each side ends its own stream.
#[test]
fn a_client_may_send_behind_the_end_of_its_servers_stream() {
    let mut replies = Replies::new();
    replies.push(Expected { kind: Kind::Query { sent: 0 }, sink: Sink::Client(Slot(0)) });
    for tag in [Tag::CopyBothResponse, Tag::CopyDone] {
        assert!(matches!(replies.step(tag, &mut |_| ()), Ok(Step::More { .. })));
        assert!(replies.awaits_copy_data());
    }
    // What was sent ahead is its end, and the only one.
    for ends in [1, 2] {
        let mut replies = Replies::new();
        replies.push(Expected { kind: Kind::Query { sent: 0 }, sink: Sink::Client(Slot(0)) });
        for _ in 0..ends {
            replies.push(Expected { kind: Kind::CopyEnd, sink: Sink::Own });
        }
        assert!(replies.step(Tag::CopyBothResponse, &mut |_| ()).is_ok());
        assert!(!replies.awaits_copy_data());
        assert_eq!((replies.entries.len(), replies.owed()), (ends, 1));
    }
}

/// START_REPLICATION (documentation, "Streaming Replication Protocol"): data flows both ways, and
/// behind it comes, where there is one, the next timeline.
#[test]
fn copy_both() {
    check("> Q < Wdd > c < dcCZ", "......Z0");
    check("> Q < Wd > c < cTDCCZ", ".......Z0");
    check("> Qc < WcCZ", "...Z0");
    assert!(took(Mark::CopyBothEndedAhead));
    check("> Q < WdcTDCCZ", ".......Z0");
    check("> Q < Wdc > c < TDCCZ", ".......Z0");
    check("> Q < WdEZ > c", "..!Z0");
    check("> Q < Wdcd", "...#");
    check("> Q < WW", ".#");
    check("> Q < WT", ".#");
    check("> PBES < 12W", "++.…");
    check("> P < W", "#");
}

/// Sends and answers as in [`play`], with `H` for a Flush, and gives how many replies are due.
fn due_after(script: &str) -> usize {
    let mut replies = Replies::new();
    let mut sending = true;
    for letter in script.bytes() {
        match letter {
            b' ' => {}
            b'>' => sending = true,
            b'<' => sending = false,
            b'H' => replies.flush(),
            _ if sending => {
                replies.push(Expected { kind: sent(letter), sink: Sink::Client(Slot(0)) });
            }
            _ => {
                let tag = Tag::of(Header { tag: letter, body_len: 0 }).unwrap();
                replies.step(tag, &mut |_| {}).unwrap();
            }
        }
    }
    replies.due()
}

/// PostgreSQL keeps the replies of a batch back until it is asked for them, and says nothing while
/// it waits for data.
#[test]
fn what_is_kept_back_is_not_due() {
    for (script, due) in [
        (">PBDE", 0),
        (">PBDES", 5),
        (">PBDEH", 4),
        (">PBEHBE <1", 2),
        (">PBEHBE <12C", 0),
        (">PBES <12C", 1),
        (">PBES <E", 1),
        (">PBEH <E", 0),
        (">Q", 1),
        (">PBQ", 3),
        (">Q <G", 0),
        (">Q <G >c", 1),
        (">Qc <G", 1),
        (">PBES <12G", 0),
        (">PBES <12G >c", 0),
        (">PBES <12G >cS", 2),
        (">PBES <12G >cH", 1),
        (">PBEcS <12G", 2),
        (">PBEcH <12G", 1),
        (">PBEHc <12G", 0),
        (">PBESc <12G", 0),
    ] {
        assert_eq!(due_after(script), due, "{script}");
    }
}

/// libpq sends the Sync right behind the Execute, the server reads it as part of
/// the COPY, and only the one behind CopyDone counts.
#[test]
fn a_sync_inside_copy_is_ignored() {
    check("> PBES < 12G > c S < CZ", "++.x0+Z1");
    check("> PBES c S < 12GCZ", "++.x0+Z1");
    check("> PBE < 12G > S c S < CZ", "++.+Z0");
    check("> Q < G > S c < CZ", "..Z0");
    check("> QS c < GCZ", ".x1.Z0");
}

#[test]
fn an_error_inside_copy_ends_it() {
    check("> PBES < 12G < E > cS < Z", "++.x0!Z1");
    check("> PBE < 12GE > S < Z", "++.!Z0");
    check("> PBES c S < 12G E Z", "++.x0!Z1");
    check("> Q < GE > S < ZZ", ".!Z0Z1");
    // The first Sync was sent into the COPY, and may be read behind it.
    check("> PBE < 12G > S < E > cS < ZZ", "++.!Z0Z");
    check("> PBE < 12G > S < E > cS < Z", "++.!Z0");
}

/// A COPY that reads something else than data is the end of the session. If it fails before it
/// reads, all that stands behind what is no data counts, and so does the end of another COPY.
#[test]
fn what_follows_a_copy_without_data_is_no_part_of_it() {
    check("> QQS < GEZ CZ Z", ".!Z0.Z1Z2");
    check("> QQQc < GEZ CZ GCZ", ".!Z0.Z1..Z2");
    check("> QQPBEScS < GEZ CZ 12GCZ", ".!Z0.Z1++.x2+Z3");
    check("> Q < G > QS < EZ CZ Z", ".!Z0.Z1Z2");
    check("> PBE < 12G > PBES < EZ", "++.!Z0");
    check("> QQS < GEE", ".!!…");
}

/// They have no reply, so whoever waited for one would wait for ever; nor may they fill the memory.
#[test]
fn ends_of_copies_that_nobody_began_do_not_fill_the_queue() {
    let mut replies = Replies::new();
    let expected = |letter| Expected { kind: sent(letter), sink: Sink::Client(Slot(0)) };
    replies.push(expected(b'P'));
    for _ in 0..10 * OWED {
        replies.push(expected(b'c'));
    }
    assert!(!replies.is_full());
    assert_eq!(replies.entries.len(), 1 + OWED);
    for _ in 1..OWED {
        assert!(!replies.is_full());
        replies.push(expected(b'C'));
    }
    assert!(replies.is_full());
    // The first reply strikes out what stands behind it, and an error in a batch the rest.
    for (letter, left) in [(b'1', OWED - 1), (b'E', 0)] {
        let tag = Tag::of(Header { tag: letter, body_len: 0 }).unwrap();
        replies.step(tag, &mut |_| {}).unwrap();
        assert_eq!((replies.entries.len(), replies.is_full()), (left, false));
    }
    assert_eq!(replies.copy_ends, 0);
}
