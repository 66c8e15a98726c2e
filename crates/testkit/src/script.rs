use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
};

use similar::TextDiff;

use crate::{Login, LoginError, WireClient};

/// A fixed conversation of one client, to be held with PostgreSQL and through pgweir.
///
/// Running it gives a transcript, one line for each message that came and nothing else, so that
/// two runs can be compared. What differs between any two connections (process ids, the secret of
/// BackendKeyData) is masked where messages are written, see [`crate::Message`]. Nothing else is:
/// a script that would show the object id of a table that it creates itself differs from itself.
#[derive(Clone, Debug)]
#[must_use]
pub struct Script {
    login: Option<Login>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    ReadByte,
    Read(usize),
    ReadUntilReady,
    ReadToEnd,
    HalfClose,
}

impl Script {
    /// A conversation after a login. What came with the login, from the first ParameterStatus to
    /// ReadyForQuery, is part of the transcript.
    pub fn new(login: Login) -> Self {
        Self { login: Some(login), steps: Vec::new() }
    }

    /// A conversation that begins with the first byte of the connection.
    pub fn raw() -> Self {
        Self { login: None, steps: Vec::new() }
    }

    /// Sends frames in one write.
    pub fn send(self, frames: &[u8]) -> Self {
        self.step(Step::Send(frames.to_vec()))
    }

    /// Reads so many messages.
    pub fn read(self, messages: usize) -> Self {
        self.step(Step::Read(messages))
    }

    /// Reads up to and with the next ReadyForQuery.
    pub fn read_until_ready(self) -> Self {
        self.step(Step::ReadUntilReady)
    }

    /// Reads until the other side closes the connection.
    pub fn read_to_end(self) -> Self {
        self.step(Step::ReadToEnd)
    }

    /// Reads the one byte that answers SSLRequest or GSSENCRequest.
    pub fn read_byte(self) -> Self {
        self.step(Step::ReadByte)
    }

    /// Says that nothing more will be sent.
    pub fn half_close(self) -> Self {
        self.step(Step::HalfClose)
    }

    /// Sends frames and reads up to and with the next ReadyForQuery.
    pub fn ask(self, frames: &[u8]) -> Self {
        self.send(frames).read_until_ready()
    }

    /// Holds the conversation and gives the transcript. It ends early, with a line that says so,
    /// when the connection does.
    ///
    /// # Panics
    /// When an answer does not come, with the transcript so far.
    #[must_use]
    #[track_caller]
    pub fn run(&self, address: SocketAddr) -> Vec<String> {
        self.run_split(address, usize::MAX)
    }

    /// As [`Self::run`], with everything sent in writes of `chunk` bytes.
    ///
    /// # Panics
    /// When an answer does not come, with the transcript so far.
    #[must_use]
    #[track_caller]
    pub fn run_split(&self, address: SocketAddr, chunk: usize) -> Vec<String> {
        let mut transcript = Vec::new();
        match self.hold(address, chunk, &mut transcript) {
            Ok(()) => {}
            // Whether an end shows as a close or as a reset depends on what the other side had
            // not read yet, which is a matter of time.
            Err(error) if is_end(&error) => transcript.push("(connection ended)".to_owned()),
            Err(error) => panic!("{error} after:\n{}", transcript.join("\n")),
        }
        transcript
    }

    /// Holds it with PostgreSQL and through pgweir and compares.
    ///
    /// # Panics
    /// When the transcripts differ, with their difference.
    #[track_caller]
    pub fn assert_same(&self, direct: SocketAddr, pooled: SocketAddr) {
        assert_same_transcript(&self.run(direct), &self.run(pooled));
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn hold(
        &self,
        address: SocketAddr,
        chunk: usize,
        transcript: &mut Vec<String>,
    ) -> io::Result<()> {
        let mut client = match &self.login {
            None => WireClient::open(address)?,
            Some(login) => match WireClient::login(address, login) {
                Ok(client) => client,
                Err(LoginError::Io(error)) => return Err(error),
                Err(LoginError::Refused(message) | LoginError::Unexpected(message)) => {
                    transcript.push(message.to_string());
                    return Ok(());
                }
            },
        };
        transcript.extend(client.greeting().iter().map(ToString::to_string));
        self.steps.iter().try_for_each(|step| step.take(&mut client, chunk, transcript))
    }
}

impl Step {
    fn take(
        &self,
        client: &mut WireClient,
        chunk: usize,
        transcript: &mut Vec<String>,
    ) -> io::Result<()> {
        match self {
            // When the other side is gone, what it said before can still be read.
            Self::Send(bytes) => match client.send_split(bytes, chunk) {
                Err(error) if !is_end(&error) => return Err(error),
                _ => {}
            },
            Self::ReadByte => transcript.push(char::from(client.read_byte()?).to_string()),
            Self::Read(messages) => {
                for _ in 0..*messages {
                    read(client, transcript)?;
                }
            }
            Self::ReadUntilReady => while read(client, transcript)? != b'Z' {},
            Self::ReadToEnd => loop {
                read(client, transcript)?;
            },
            Self::HalfClose => client.half_close()?,
        }
        Ok(())
    }
}

/// Compares two transcripts of one script.
///
/// # Panics
/// When they differ, with their difference: `-` is the direct connection, `+` pgweir.
#[track_caller]
pub fn assert_same_transcript(direct: &[String], pooled: &[String]) {
    if let Some(difference) = difference(direct, pooled) {
        panic!("the transcripts differ:\n{difference}");
    }
}

/// The difference as `diff -u` writes it, `None` if there is none.
fn difference(direct: &[String], pooled: &[String]) -> Option<String> {
    if direct == pooled {
        return None;
    }
    let [direct, pooled] =
        [direct, pooled].map(|lines| lines.iter().map(|l| format!("{l}\n")).collect::<String>());
    let diff = TextDiff::from_lines(&direct, &pooled);
    Some(diff.unified_diff().header("direct", "through pgweir").to_string())
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
    )
}

/// Reads one message into the transcript and gives its tag.
fn read(client: &mut WireClient, transcript: &mut Vec<String>) -> io::Result<u8> {
    let message = client.read()?.ok_or(ErrorKind::UnexpectedEof)?;
    transcript.push(message.to_string());
    Ok(message.tag)
}
