//! Clients of a pool with two servers, one of which can be kept from all but one.

use pgweir_testkit::{Message, WireClient};

use crate::stage::{CLUSTER, Stage};

pub(super) const PID: &str = "SELECT pg_backend_pid()";

/// Two servers, and a client that can keep one of them from the others.
pub(super) struct Shuffled {
    pub(super) stage: Stage,
    pub(super) other: WireClient,
}

impl Shuffled {
    pub(super) fn new(name: &str) -> Self {
        let stage = Stage::new(name, 2);
        let other = stage.client();
        Self { stage, other }
    }

    /// From now on everybody else has to use another server than the one used last.
    pub(super) fn keep_last_server(&mut self) -> String {
        self.other.query("BEGIN");
        self.other.query(PID).concat()
    }

    pub(super) fn let_go(&mut self) {
        self.other.query("COMMIT");
    }

    /// A client that PostgreSQL itself serves.
    pub(super) fn direct(&self) -> WireClient {
        WireClient::login(CLUSTER.address(), &self.stage.login()).unwrap()
    }
}

pub(super) fn ask(client: &mut WireClient, frames: &[Vec<u8>]) -> Vec<Message> {
    client.send(&frames.concat()).unwrap();
    client.read_until_ready().unwrap()
}

pub(super) fn outcome(reply: &[Message]) -> String {
    let telling = reply.iter().find(|message| matches!(message.tag, b'D' | b'E'));
    match telling {
        Some(row) if row.tag == b'D' => {
            let value = row.values().remove(0).unwrap();
            String::from_utf8(value).unwrap()
        }
        Some(error) => error.sqlstate(),
        None => "nothing".to_owned(),
    }
}
