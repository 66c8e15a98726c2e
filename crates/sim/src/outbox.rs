/// Bytes that are to be sent, some of which may be out. What is out is let go when all is, so that
/// a long message that goes out in small pieces is not moved with each of them.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// What is not out yet.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unsent().is_empty()
    }

    /// So many bytes are out.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.is_empty() {
            self.clear();
        }
    }

    /// Where to put more.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }
}

impl From<Vec<u8>> for Outbox {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, sent: 0 }
    }
}
