use crate::fields::Fields;
use crate::frame::{message, put_str};
use crate::{Malformed, Severity, SqlState};

/// An ErrorResponse of our own, written as PostgreSQL writes its own: what happened, then why
/// (DETAIL), then what to do (HINT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How much of the session it ends.
    pub severity: Severity,
    /// The code that drivers decide by.
    pub code: SqlState,
    /// One line, in PostgreSQL's own words where it has them.
    pub message: String,
    /// What happened, with figures and names.
    pub detail: Option<String>,
    /// What the reader can do about it.
    pub hint: Option<String>,
    /// The function of PostgreSQL's source that says the same, where drivers decide by it.
    pub routine: Option<&'static str>,
}

impl Report {
    /// An error that ends the statement.
    pub fn error(code: SqlState, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            detail: None,
            hint: None,
            routine: None,
        }
    }

    /// An error that ends the connection.
    pub fn fatal(code: SqlState, message: impl Into<String>) -> Self {
        Self { severity: Severity::Fatal, ..Self::error(code, message) }
    }

    /// The same report with a DETAIL.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same report with a HINT.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What happened, in one line for people: the message, and its DETAIL behind it.
    pub fn cause(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.message),
            None => self.message.clone(),
        }
    }

    /// Appends the ErrorResponse.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_as(out, b'E', self.severity.word());
    }

    /// Appends it as a NoticeResponse, which is no error.
    pub fn write_notice(&self, out: &mut Vec<u8>) {
        self.write_as(out, b'N', "NOTICE");
    }

    fn write_as(&self, out: &mut Vec<u8>, tag: u8, severity: &str) {
        message(out, tag, |out| {
            let mut field = |name: u8, value: &[u8]| {
                out.push(name);
                put_str(out, value);
            };
            field(b'S', severity.as_bytes());
            field(b'V', severity.as_bytes());
            field(b'C', self.code.as_bytes());
            field(b'M', self.message.as_bytes());
            if let Some(detail) = &self.detail {
                field(b'D', detail.as_bytes());
            }
            if let Some(hint) = &self.hint {
                field(b'H', hint.as_bytes());
            }
            if let Some(routine) = self.routine {
                field(b'R', routine.as_bytes());
            }
            out.push(0);
        });
    }
}

/// The fields of an ErrorResponse or NoticeResponse that decisions are made by, or that are told
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFields<'a> {
    /// The severity in English (`V`, PostgreSQL 9.6 and later), else as localised (`S`).
    pub severity: &'a [u8],
    /// The SQLSTATE; absent from messages of servers that are no PostgreSQL (CVE-2026-6666).
    pub code: Option<SqlState>,
    /// The message's first line.
    pub message: &'a [u8],
    /// What it says in more words.
    pub detail: Option<&'a [u8]>,
    /// What the sender advises.
    pub hint: Option<&'a [u8]>,
    /// The file of PostgreSQL's source that it comes from (`send_message_to_frontend`, elog.c):
    /// nobody else has one.
    pub file: Option<&'a [u8]>,
}

impl<'a> ErrorFields<'a> {
    /// Reads the body of an ErrorResponse or a NoticeResponse.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut found = Self::NONE;
        found.read(body).map(|()| found)
    }

    /// Reads the start of a body of which only a part may have arrived: the fields that are whole.
    /// Severity and code come first.
    pub fn start(body: &'a [u8]) -> Self {
        let mut found = Self::NONE;
        // What is behind the last whole field is not for us to judge.
        let _ = found.read(body);
        found
    }

    const NONE: Self =
        Self { severity: b"", code: None, message: b"", detail: None, hint: None, file: None };

    fn read(&mut self, body: &'a [u8]) -> Result<(), Malformed> {
        let mut fields = Fields::new(body);
        loop {
            let name = fields.byte()?;
            if name == 0 {
                return fields.end();
            }
            let value = fields.string()?;
            match name {
                b'V' => self.severity = value,
                b'S' if self.severity.is_empty() => self.severity = value,
                b'C' => self.code = SqlState::parse(value),
                b'M' => self.message = value,
                b'D' => self.detail = Some(value),
                b'H' => self.hint = Some(value),
                b'F' => self.file = Some(value),
                // The protocol asks readers to pass over fields that they do not know.
                _ => {}
            }
        }
    }

    /// Whether the sender closes the connection after this message.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity, b"FATAL" | b"PANIC")
    }

    /// Whether PostgreSQL itself has said so, and not a pooler in between, which knows as little of
    /// what PostgreSQL has begun as we do.
    pub fn is_of_postgres(&self) -> bool {
        self.file.is_some()
    }
}
