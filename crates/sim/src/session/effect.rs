//! What statements without rows do.

use std::rc::Rc;

use super::left::{CHANNEL, CURSOR, LOCK, STATEMENT};
use super::message::write_warning;
use super::state::{Failure, Held, Notification, Subscription};
use super::{Prepared, State, Transaction, Witness};
use crate::invariants::Invariant;
use crate::language::{Kind, Line, Statement, Tag, Verb};
use crate::shapes::{SHAPE_KEY, Seen};

/// Carries a statement out. Says the words of its CommandComplete.
pub(super) fn carry_out(
    verb: &Verb,
    tag: Tag,
    state: &mut State,
    out: &mut Vec<u8>,
    witness: &mut impl Witness,
) -> Result<&'static str, Failure> {
    let of_transaction = transact(verb, tag, state, out, witness)?;
    match of_transaction {
        Some(words) => Ok(words),
        None => change(verb, tag, state, out, witness),
    }
}

/// What a statement does to its transaction; nothing, if it is not about that.
fn transact(
    verb: &Verb,
    tag: Tag,
    state: &mut State,
    out: &mut Vec<u8>,
    witness: &mut impl Witness,
) -> Result<Option<&'static str>, Failure> {
    let block = matches!(state.transaction, Transaction::Block | Transaction::Failed);
    let no_block = || (b"25P01", format!("there is no transaction [{tag}]"));
    let unknown = |name: &str| (b"3B001", format!("savepoint {name} does not exist [{tag}]"));
    let words = match verb {
        Verb::Begin => {
            if block {
                write_warning(out, b"25001", &format!("there is already a transaction [{tag}]"));
            }
            state.transaction = Transaction::Block;
            "BEGIN"
        }
        Verb::Chain if !block => return Err(no_block()),
        Verb::Chain => {
            let owner = state.owner;
            state.abort(witness);
            state.open_block(owner);
            "ROLLBACK"
        }
        Verb::Commit => {
            if !block {
                write_warning(out, b"25P01", &format!("there is no transaction [{tag}]"));
            }
            if state.transaction == Transaction::Failed {
                state.abort(witness);
                "ROLLBACK"
            } else {
                state.commit(witness).map_err(|(code, text)| (code, format!("{text} [{tag}]")))?;
                "COMMIT"
            }
        }
        Verb::Release { .. } | Verb::RollbackTo { .. } | Verb::Savepoint { .. } if !block => {
            return Err(no_block());
        }
        Verb::Release { name } if !state.release(name) => return Err(unknown(name)),
        Verb::Release { .. } => "RELEASE",
        Verb::Rollback => {
            if !block {
                write_warning(out, b"25P01", &format!("there is no transaction [{tag}]"));
            }
            state.abort(witness);
            "ROLLBACK"
        }
        Verb::RollbackTo { name } if !state.roll_back_to(name, witness) => {
            return Err(unknown(name));
        }
        Verb::RollbackTo { .. } => "ROLLBACK",
        Verb::Savepoint { name } => {
            state.savepoint(name);
            "SAVEPOINT"
        }
        _ => return Ok(None),
    };
    Ok(Some(words))
}

/// What a statement does to the session and to the database.
fn change(
    verb: &Verb,
    tag: Tag,
    state: &mut State,
    out: &mut Vec<u8>,
    witness: &mut impl Witness,
) -> Result<&'static str, Failure> {
    let client = tag.client;
    Ok(match verb {
        Verb::Alter => {
            state.writes.push(tag);
            state.altered = Some(tag);
            state.locks.push(Held { key: SHAPE_KEY, session: false });
            "DO"
        }
        Verb::Deallocate { name } => match state.statements.remove(name.as_bytes()) {
            Some(_) => "DEALLOCATE",
            None => return Err(no_statement(name, tag)),
        },
        Verb::Declare { name } => {
            if state.cursors.contains_key(name) {
                return Err((b"42P03", format!("cursor {name} already exists [{tag}]")));
            }
            state.stain(client, CURSOR);
            state.cursors.insert(name.clone(), tag);
            "DECLARE CURSOR"
        }
        Verb::Defer => {
            state.writes.push(tag);
            state.deferred = Some(tag);
            "INSERT"
        }
        Verb::Discard(kind) => {
            let alone = state.transaction == Transaction::Implicit && !state.several;
            if *kind == Kind::All && !alone {
                return Err((b"25001", format!("DISCARD ALL inside a transaction [{tag}]")));
            }
            state.discard(*kind);
            if *kind == Kind::All { "DISCARD ALL" } else { "DISCARD" }
        }
        Verb::Keep(keep) => {
            state.keep(client, *keep);
            "CALL"
        }
        Verb::Listen { channel } => {
            state.stain(client, CHANNEL);
            state.subscribe(Subscription::Listen(channel.clone()));
            "LISTEN"
        }
        Verb::Lock { key, session } => {
            if *session {
                state.stain(client, LOCK);
            }
            state.locks.push(Held { key: *key, session: *session });
            "LOCK"
        }
        Verb::Notify { channel } => {
            let payload = tag.to_string();
            state.notifications.push(Notification { channel: channel.clone(), payload });
            "NOTIFY"
        }
        Verb::Prepare { name, rows } => {
            if state.statements.contains_key(name.as_bytes()) {
                return Err((b"42P05", format!("statement {name} already exists [{tag}]")));
            }
            state.stain(client, STATEMENT);
            let verb = rows.map_or(Verb::Write, Verb::Rows);
            let line = Some(Line::Client(Statement { tag, verb }));
            let seen = Seen { shape: None, in_doubt: false };
            state
                .statements
                .insert(name.clone().into(), Rc::new(Prepared { line, tag: Some(tag), seen }));
            "PREPARE"
        }
        Verb::Reset { name } => {
            state.reset(name.as_deref());
            "RESET"
        }
        Verb::Create => "CREATE VIEW",
        Verb::Sequence => {
            state.last_value = Some(client);
            "CALL"
        }
        Verb::LastValue => {
            if let Some(other) = state.last_value.filter(|other| *other != client) {
                let text = format!("{tag} hears of the last value of c{other}");
                witness.wrong(Invariant::CleanServer, text);
            }
            "CALL"
        }
        Verb::Set { name, value, local } => {
            let alone = state.transaction == Transaction::Implicit && !state.several;
            if *local && alone {
                write_warning(out, b"25P01", &format!("SET LOCAL outside a transaction [{tag}]"));
            }
            state.set(client, name, value, *local);
            "SET"
        }
        Verb::Temp => {
            state.make_temporary(client);
            "CREATE TABLE"
        }
        Verb::Sleep(_) => "SLEEP",
        Verb::Unlisten { channel } => {
            state.subscribe(match channel {
                Some(channel) => Subscription::Unlisten(channel.clone()),
                None => Subscription::UnlistenAll,
            });
            "UNLISTEN"
        }
        Verb::Unlock { key } => {
            let lock = Held { key: *key, session: true };
            match state.locks.iter().position(|held| *held == lock) {
                Some(at) => drop(state.locks.remove(at)),
                None => write_warning(out, b"01000", &format!("no such lock is held [{tag}]")),
            }
            "UNLOCK"
        }
        Verb::Write => {
            state.writes.push(tag);
            "INSERT"
        }
        // Of the transaction, above; or they say more than that they are done.
        Verb::Begin
        | Verb::Big(_)
        | Verb::Chain
        | Verb::Commit
        | Verb::CopyIn { .. }
        | Verb::CopyOut(_)
        | Verb::Execute { .. }
        | Verb::Fail
        | Verb::Fetch { .. }
        | Verb::Fill
        | Verb::Notice(_)
        | Verb::Release { .. }
        | Verb::Rollback
        | Verb::RollbackTo { .. }
        | Verb::Rows(_)
        | Verb::Savepoint { .. }
        | Verb::Shaped(_)
        | Verb::Show { .. } => "",
    })
}

/// There is no prepared statement of this name.
pub(super) fn no_statement(name: &str, tag: Tag) -> Failure {
    (b"26000", format!("prepared statement {name} does not exist [{tag}]"))
}
