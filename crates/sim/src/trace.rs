use std::fmt;

/// What happened in a simulation: always as a hash, on demand as text.
pub(crate) struct Trace {
    hash: u64,
    /// When the current event happens, in microseconds.
    pub(crate) now: u64,
    lines: Option<Vec<String>>,
    live: bool,
}

/// FNV-1a, over words instead of bytes.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Trace {
    /// `lines`: keep the text. `live`: print it as it comes, for runs that do not end well.
    pub(crate) fn new(lines: bool, live: bool) -> Self {
        Self { hash: OFFSET, now: 0, lines: lines.then(Vec::new), live }
    }

    /// Makes this number part of the hash.
    pub(crate) fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(PRIME);
        self.hash ^= self.hash >> 29;
    }

    /// Makes these bytes part of the hash.
    pub(crate) fn mix_all(&mut self, bytes: &[u8]) {
        // Word by word, and what is left over with how much it is.
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.mix(u64::from_be_bytes(*word)));
        let left = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.mix(left);
        self.mix(bytes.len() as u64);
    }

    /// Adds a line of text, which is only made if somebody reads it.
    pub(crate) fn note<L: fmt::Display>(&mut self, who: impl fmt::Display, line: impl Fn() -> L) {
        if let Some(lines) = &mut self.lines {
            let (seconds, micros) = (self.now / 1_000_000, self.now % 1_000_000);
            let line = format!("[{seconds:4}.{micros:06}] {who:<6} {}", line());
            // What has several lines stays together.
            let line = line.replace('\n', "\n                     ");
            if self.live {
                println!("{line}");
            }
            lines.push(line);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}

/// Somebody's name in the trace: a letter for the kind, and a number.
#[derive(Clone, Copy)]
pub(crate) struct Who(pub(crate) char, pub(crate) usize);

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}{}", self.0, self.1))
    }
}
