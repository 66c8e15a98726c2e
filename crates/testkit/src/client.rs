use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use socket2::SockRef;

use crate::{
    Message,
    deadline::{Deadline, PATIENCE},
    fail::OrFail,
    frames,
};

mod login;

pub use login::{AuthMethod, Login, LoginError};

/// Bytes asked from the socket at a time.
const READ_BYTES: usize = 16 * 1024;

/// A client that says exactly what it is told to, and shows exactly what comes back.
///
/// It blocks, and every read has a deadline. It knows no protocol state: frames may be malformed,
/// out of order or cut anywhere.
#[derive(Debug)]
pub struct WireClient {
    stream: TcpStream,
    /// Read from the socket and not given out yet.
    buffer: Vec<u8>,
    patience: Duration,
    auth_method: AuthMethod,
    /// The messages from AuthenticationOk to the first ReadyForQuery.
    greeting: Vec<Message>,
}

impl WireClient {
    /// A TCP connection and nothing on it yet.
    ///
    /// # Errors
    /// When nobody accepts it.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        // Each send is to be a segment of its own: tests choose where the bytes are cut.
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            patience: PATIENCE,
            auth_method: AuthMethod::Trust,
            greeting: Vec::new(),
        })
    }

    /// A connection that is logged in and has seen its first ReadyForQuery.
    ///
    /// # Errors
    /// When the server refuses it, with the server's ErrorResponse, or the connection fails.
    pub fn login(address: SocketAddr, login: &Login) -> Result<Self, LoginError> {
        let mut client = Self::open(address)?;
        login.perform(&mut client)?;
        Ok(client)
    }

    /// Fails reads after `patience` instead of [`PATIENCE`], to show that nothing comes.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Sends bytes in one write.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends bytes in writes of `chunk` bytes.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send_split(&mut self, bytes: &[u8], chunk: usize) -> io::Result<()> {
        bytes.chunks(chunk).try_for_each(|part| self.send(part))
    }

    /// Reads one message; `None` when the server closed the connection between two messages.
    ///
    /// # Errors
    /// `TimedOut` when it does not come, `UnexpectedEof` in the middle of a message,
    /// `InvalidData` for a length below 4, and those of the socket.
    pub fn read(&mut self) -> io::Result<Option<Message>> {
        let deadline = Deadline::after(self.patience);
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            if self.fill(deadline)? == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Reads up to the next ReadyForQuery, which is the last message given.
    ///
    /// # Errors
    /// As [`Self::read`]; `UnexpectedEof` when the connection is closed before.
    pub fn read_until_ready(&mut self) -> io::Result<Vec<Message>> {
        let mut messages = Vec::new();
        while messages.last().is_none_or(|message: &Message| message.tag != b'Z') {
            messages.push(self.read()?.ok_or(ErrorKind::UnexpectedEof)?);
        }
        Ok(messages)
    }

    /// Reads until the server closes the connection.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_to_end(&mut self) -> io::Result<Vec<Message>> {
        let mut messages = Vec::new();
        while let Some(message) = self.read()? {
            messages.push(message);
        }
        Ok(messages)
    }

    /// Whether bytes were read from the socket that no message was made of yet.
    #[must_use]
    pub fn has_read_ahead(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Reads the single byte that answers SSLRequest and GSSENCRequest.
    ///
    /// # Errors
    /// Those of the socket; `UnexpectedEof` when the connection is closed instead.
    pub fn read_byte(&mut self) -> io::Result<u8> {
        let deadline = Deadline::after(self.patience);
        if self.buffer.is_empty() && self.fill(deadline)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(self.buffer.remove(0))
    }

    /// Runs one simple Query and gives the values of its rows in text, `None` for NULL.
    ///
    /// # Errors
    /// The ErrorResponse, after its ReadyForQuery.
    ///
    /// # Panics
    /// When the connection fails, or a value is no UTF-8.
    #[track_caller]
    pub fn try_query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Message> {
        self.send(&frames::query(sql)).or_fail(format!("send {sql:?}"));
        let messages = self.read_until_ready().or_fail(format!("read the reply to {sql:?}"));
        if let Some(error) = messages.iter().find(|message| message.tag == b'E') {
            return Err(error.clone());
        }
        let rows = messages.iter().filter(|message| message.tag == b'D');
        let text = |value| String::from_utf8(value).or_fail("read a value as text");
        Ok(rows
            .map(|row| row.values().into_iter().map(|value| value.map(text)).collect())
            .collect())
    }

    /// Runs one simple Query, which must succeed, and gives its rows with `|` between the values,
    /// like [`crate::Cluster::psql`].
    ///
    /// # Panics
    /// On an ErrorResponse, or when the connection fails.
    #[track_caller]
    pub fn query(&mut self, sql: &str) -> Vec<String> {
        let rows = match self.try_query(sql) {
            Ok(rows) => rows,
            Err(error) => panic!("{sql:?}: {error}"),
        };
        let line = |row: Vec<Option<String>>| {
            row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
        };
        rows.into_iter().map(line).collect()
    }

    /// Says that no more will be sent; replies can still be read.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn half_close(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Closes with a reset, as a client whose host vanished does: what it has not read is lost.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn reset(self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))
    }

    /// The key to cancel this connection's statements with, if the server sent one.
    #[must_use]
    pub fn cancel_key(&self) -> Option<CancelKey> {
        let key = self.greeting.iter().find(|message| message.tag == b'K')?;
        let (pid, secret) = key.body.split_first_chunk()?;
        Some(CancelKey { pid: u32::from_be_bytes(*pid), secret: secret.to_vec() })
    }

    /// The value of a parameter that the server reported at login.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.greeting.iter().filter(|message| message.tag == b'S').find_map(|status| {
            let text = String::from_utf8_lossy(&status.body);
            let (key, value) = text.strip_suffix('\0')?.split_once('\0')?;
            (key == name).then(|| value.to_owned())
        })
    }

    /// How the server had this client prove who it is.
    #[must_use]
    pub fn auth_method(&self) -> AuthMethod {
        self.auth_method
    }

    /// The messages from the start of the login to its ReadyForQuery, without authentication.
    #[must_use]
    pub fn greeting(&self) -> &[Message] {
        &self.greeting
    }

    /// The connection itself, for what is not covered here.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn take_message(&mut self) -> io::Result<Option<Message>> {
        let Some((&[tag, a, b, c, d], rest)) = self.buffer.split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some(body_length) = length.checked_sub(4) else {
            let what = format!("message {:?} with length {length}", char::from(tag));
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        };
        let Some(body) = rest.get(..body_length) else { return Ok(None) };
        let message = Message { tag, body: body.to_vec() };
        self.buffer.drain(..1 + length);
        Ok(Some(message))
    }

    /// Reads once into the buffer and says how many bytes came, 0 for the end of the stream.
    fn fill(&mut self, deadline: Deadline) -> io::Result<usize> {
        let mut chunk = [0; READ_BYTES];
        loop {
            let left = deadline.remaining().ok_or(ErrorKind::TimedOut)?;
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut chunk) {
                Ok(length) => {
                    self.buffer.extend_from_slice(&chunk[..length]);
                    return Ok(length);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What Linux calls a read timeout.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What BackendKeyData gave, to cancel with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelKey {
    /// The process id.
    pub pid: u32,
    /// 4 bytes under protocol 3.0, up to 256 under 3.2.
    pub secret: Vec<u8>,
}

impl CancelKey {
    /// Sends the CancelRequest on a connection of its own and waits until the server closes that:
    /// PostgreSQL has then signalled the backend.
    ///
    /// # Errors
    /// Those of the socket; `InvalidData` when the server answers with anything.
    pub fn cancel(&self, address: SocketAddr) -> io::Result<()> {
        let mut client = WireClient::open(address)?;
        client.send(&frames::cancel_request(self.pid, &self.secret))?;
        match client.read()? {
            None => Ok(()),
            Some(answer) => Err(io::Error::new(ErrorKind::InvalidData, answer.to_string())),
        }
    }
}
