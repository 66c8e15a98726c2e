//! Messages in words, for the trace and for what is said of a failure.

use pgweir_wire::frontend::{Bind, Parse, Target};
use pgweir_wire::{Header, TransactionStatus, backend, frontend};

use super::message::Message;

/// A message of a client.
pub(crate) fn asked(message: &Message) -> String {
    let Ok(tag) = frontend::Tag::of(header(message)) else { return unknown(message) };
    let body = &message.body[..];
    let details = match tag {
        frontend::Tag::Bind => Bind::start(body).ok().map(|bind| {
            let for_what = message.tags().first().map(|tag| format!(" for {tag}"));
            let (portal, statement) = (quoted(bind.portal), quoted(bind.statement));
            format!("portal {portal} to {statement}{}", for_what.unwrap_or_default())
        }),
        frontend::Tag::Close | frontend::Tag::Describe => {
            Target::parse(body).ok().map(|target| match target {
                Target::Portal(name) => format!("portal {}", quoted(name)),
                Target::Statement(name) => format!("statement {}", quoted(name)),
            })
        }
        frontend::Tag::CopyData => Some(quoted(body)),
        frontend::Tag::CopyFail | frontend::Tag::Query => Some(quoted(without_nul(body))),
        frontend::Tag::Execute => message.execute().map(|(name, limit)| match limit {
            0 => format!("portal {}", quoted(name)),
            rows => format!("portal {}, {rows} rows at most", quoted(name)),
        }),
        frontend::Tag::FunctionCall => message.tags().first().map(|tag| format!("for {tag}")),
        frontend::Tag::Parse => Parse::start(body)
            .ok()
            .map(|parse| format!("{} as {}", quoted(parse.name), quoted(parse.text))),
        frontend::Tag::CopyDone
        | frontend::Tag::Flush
        | frontend::Tag::Password
        | frontend::Tag::Sync
        | frontend::Tag::Terminate => None,
    };
    with(&format!("{tag:?}"), details)
}

/// A message of a server, or of pgweir in its place.
pub(crate) fn told(message: &Message) -> String {
    let Ok(tag) = backend::Tag::of(header(message)) else { return unknown(message) };
    let body = &message.body[..];
    let details = match tag {
        backend::Tag::CommandComplete => Some(quoted(without_nul(body))),
        backend::Tag::CopyData => Some(quoted(body)),
        backend::Tag::DataRow => row(body),
        backend::Tag::ErrorResponse | backend::Tag::NoticeResponse => error(body),
        backend::Tag::ParameterStatus => backend::parse_parameter_status(body)
            .ok()
            .map(|(name, value)| format!("{} = {}", name.escape_ascii(), quoted(value))),
        backend::Tag::ReadyForQuery => {
            backend::parse_ready_for_query(body).ok().map(|status| match status {
                TransactionStatus::Idle => "outside a transaction".to_owned(),
                TransactionStatus::Active => "in a transaction".to_owned(),
                TransactionStatus::Failed => "in a failed transaction".to_owned(),
            })
        }
        backend::Tag::FunctionCallResponse | backend::Tag::NotificationResponse => {
            body.get(4..).map(quoted)
        }
        backend::Tag::Authentication
        | backend::Tag::BackendKeyData
        | backend::Tag::BindComplete
        | backend::Tag::CloseComplete
        | backend::Tag::CopyBothResponse
        | backend::Tag::CopyDone
        | backend::Tag::CopyInResponse
        | backend::Tag::CopyOutResponse
        | backend::Tag::EmptyQueryResponse
        | backend::Tag::NegotiateProtocolVersion
        | backend::Tag::NoData
        | backend::Tag::ParameterDescription
        | backend::Tag::ParseComplete
        | backend::Tag::PortalSuspended
        | backend::Tag::RowDescription => None,
    };
    with(&format!("{tag:?}"), details)
}

/// All whole messages of a client's in these bytes.
pub(crate) fn all_asked(bytes: &[u8]) -> String {
    listed(Message::all(bytes).map(|message| asked(&message)))
}

/// All whole messages of a server's in these bytes.
pub(crate) fn all_told(bytes: &[u8]) -> String {
    listed(Message::all(bytes).map(|message| told(&message)))
}

fn listed(messages: impl Iterator<Item = String>) -> String {
    messages.collect::<Vec<_>>().join(" | ")
}

fn header(message: &Message) -> Header {
    Header { tag: message.tag, body_len: message.body.len() }
}

fn with(name: &str, details: Option<String>) -> String {
    details.map_or_else(|| name.to_owned(), |details| format!("{name} {details}"))
}

fn unknown(message: &Message) -> String {
    format!("message type {:?} {}", char::from(message.tag), quoted(&message.body))
}

/// Severity, code and words.
fn error(body: &[u8]) -> Option<String> {
    let fields = backend::ErrorFields::parse(body).ok()?;
    let code = fields.code.map(|code| code.to_string()).unwrap_or_default();
    Some(format!("{} {code} {}", fields.severity.escape_ascii(), quoted(fields.message)))
}

/// The values of a DataRow.
fn row(body: &[u8]) -> Option<String> {
    let (count, mut rest) = body.split_first_chunk()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push("NULL".to_owned());
            rest = behind;
            continue;
        };
        let (value, behind) = behind.split_at_checked(length)?;
        values.push(quoted(value));
        rest = behind;
    }
    Some(values.join(" "))
}

fn without_nul(body: &[u8]) -> &[u8] {
    body.strip_suffix(b"\0").unwrap_or(body)
}

/// Text in quotes; of a long one the start, and how long it is.
fn quoted(text: &[u8]) -> String {
    const MOST: usize = 90;
    let start = &text[..text.len().min(MOST)];
    let start = start.escape_ascii().to_string().replace("\\'", "'");
    match text.len() > MOST {
        true => format!("\"{start}…\" ({} bytes)", text.len()),
        false => format!("\"{start}\""),
    }
}

#[cfg(test)]
mod tests;
