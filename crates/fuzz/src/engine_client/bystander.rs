//! A client that does nothing wrong, among others that do.

use pgweir_wire::backend::Tag;
use pgweir_wire::frontend::{SYNC, write_bind, write_execute, write_parse, write_query};

use crate::engine_client::startup;
use crate::transcript::Transcript;
use crate::world::{ClientLink, Fate, World};

/// See the module.
pub(super) struct Bystander {
    link: ClientLink,
    /// The row that each of its units is to give, if it gives one.
    units: Vec<Option<Vec<u8>>>,
    in_block: bool,
    /// Statements so far, so that no two are alike; also over several connections.
    statements: usize,
}

impl Bystander {
    /// It connects and logs in.
    pub(super) fn enter(world: &mut World) -> Self {
        let link = world.connect();
        world.send(link, &startup());
        world.settle();
        Self { link, units: Vec::new(), in_block: false, statements: 0 }
    }

    /// A query that gives one row.
    pub(super) fn query(&mut self, world: &mut World) {
        let text = self.statement();
        let mut out = Vec::new();
        write_query(&mut out, &text);
        self.units.push(Some(text));
        world.send(self.link, &out);
    }

    /// A batch that gives one row.
    pub(super) fn batch(&mut self, world: &mut World) {
        let text = self.statement();
        let mut out = Vec::new();
        write_parse(&mut out, b"", &text, &[]);
        write_bind(&mut out, b"", b"", &[]);
        write_execute(&mut out, b"", 0);
        out.extend_from_slice(&SYNC);
        self.units.push(Some(text));
        world.send(self.link, &out);
    }

    /// The beginning of a transaction, or its end.
    pub(super) fn block(&mut self, world: &mut World) {
        let text: &[u8] = match self.in_block {
            true => b"COMMIT -- BYSTANDER",
            false => b"BEGIN -- BYSTANDER",
        };
        self.in_block = !self.in_block;
        let mut out = Vec::new();
        write_query(&mut out, text);
        self.units.push(None);
        world.send(self.link, &out);
    }

    /// A statement that is prepared and not run, and a query that no server can read.
    pub(super) fn slip(&mut self, world: &mut World) {
        let text = self.statement();
        let mut out = Vec::new();
        write_parse(&mut out, b"", &text, &[]);
        out.extend_from_slice(&SYNC);
        write_query(&mut out, b"\xc0");
        self.units.extend([None, None]);
        world.send(self.link, &out);
    }

    /// Once everybody else is gone and nothing is broken, it is served: this one, or, if it was
    /// thrown out with the rest, another.
    pub(super) fn must_be_served(&mut self, world: &mut World) {
        if world.client(self.link).1 != Fate::Open {
            self.must_have_got_its_own(world);
            *self = Self { statements: self.statements, ..Self::enter(world) };
        }
        if self.in_block {
            self.block(world);
        }
        world.settle();
        if !self.is_idle(world) {
            // Its transaction was lost with its server: the COMMIT has told it so.
            self.units.push(None);
            let mut out = Vec::new();
            write_query(&mut out, b"ROLLBACK -- BYSTANDER");
            world.send(self.link, &out);
        }
        self.query(world);
        self.batch(world);
        world.settle();
        let (written, fate) = world.client(self.link);
        let transcript = Transcript::read(written);
        let tags = transcript.session.iter().map(|(tag, _)| *tag);
        // A server that is set otherwise than the one before says so.
        let tags: Vec<_> = tags.filter(|tag| *tag != Tag::ParameterStatus).collect();
        let expected = [
            Tag::RowDescription,
            Tag::DataRow,
            Tag::CommandComplete,
            Tag::ReadyForQuery,
            Tag::ParseComplete,
            Tag::BindComplete,
            Tag::DataRow,
            Tag::CommandComplete,
            Tag::ReadyForQuery,
        ];
        assert!(tags.ends_with(&expected), "a bystander is not served: {tags:?}");
        let ready = tags.iter().filter(|tag| **tag == Tag::ReadyForQuery).count();
        assert_eq!(ready, self.units.len(), "a bystander's unit was never answered");
        assert_eq!(fate, Fate::Open);
        assert!(transcript.rest.is_empty(), "half a message");
    }

    /// Whether the last it heard was that it is outside a transaction.
    fn is_idle(&self, world: &World) -> bool {
        let (written, _) = world.client(self.link);
        let transcript = Transcript::read(written);
        let last = transcript.session.iter().rfind(|(tag, _)| *tag == Tag::ReadyForQuery);
        last.is_none_or(|(_, status)| *status == b"I")
    }

    /// It goes, in good order.
    pub(super) fn leave(&mut self, world: &mut World) {
        world.end(self.link);
        world.settle();
    }

    /// Its rows are those that it asked for, in the order in which it asked.
    pub(super) fn must_have_got_its_own(&self, world: &World) {
        let (written, _) = world.client(self.link);
        let mut unit = 0;
        for (tag, body) in Transcript::read(written).session {
            match tag {
                Tag::DataRow => {
                    let expected = self.units.get(unit).and_then(Option::as_ref);
                    let expected = expected.expect("a row that nobody asked for");
                    assert_eq!(&body[6..], expected, "a bystander got another's row");
                }
                Tag::ReadyForQuery => unit += 1,
                _ => {}
            }
        }
        assert!(unit <= self.units.len(), "more replies than queries");
    }

    fn statement(&mut self) -> Vec<u8> {
        self.statements += 1;
        format!("SELECT BYSTANDER {}", self.statements).into_bytes()
    }
}
