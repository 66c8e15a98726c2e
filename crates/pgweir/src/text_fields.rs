use std::fmt::{self, Debug, Display, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// The fields of an event for people: what happened, its `cause`, and then who took part.
pub(crate) struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = Text::default();
        fields.record(&mut text);
        let Text { message, cause, others } = text;
        write!(writer, "{message}{cause}{others}")
    }
}

#[derive(Default)]
struct Text {
    message: String,
    cause: String,
    others: String,
}

impl Text {
    fn take(&mut self, field: &Field, value: &str) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{}", OneLine(value)),
            "cause" => write!(self.cause, ": {}", OneLine(value)),
            name if is_word(value) => write!(self.others, " {name}={value}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, &format!("{value:?}"));
    }
}

/// Whether it is clear where a value ends.
fn is_word(value: &str) -> bool {
    let part = |c: char| !c.is_whitespace() && c != '"' && !is_unsafe(c);
    !value.is_empty() && value.chars().all(part)
}

/// Text that somebody else has written. What could end a line of the log, or steer the terminal
/// that shows it, is escaped: a user name must not look like a line of ours.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match is_unsafe(char) {
                true => write!(f, "{}", char.escape_default())?,
                false => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

fn is_unsafe(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests;
