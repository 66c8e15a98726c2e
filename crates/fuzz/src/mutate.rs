use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::script::{MARK, Op};

/// Inputs grow no longer than this.
const INPUT_MAX: usize = 4_096;

/// What is found in the protocol, in SQL, in SCRAM and in configurations.
const TOKENS: &[&[u8]] = &[
    b"\0\0\0\x04",
    b"\0\0\0\x08",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x3f\xff\xff\xfe",
    b"\0\x03\0\0",
    b"\0\x03\0\x02",
    b"\x04\xd2\x16\x2e",
    b"\x04\xd2\x16\x2f",
    b"user\0",
    b"database\0",
    b"options\0",
    b"_pq_.x\0",
    b"replication\0",
    b"S\0\0\0\x04",
    b"H\0\0\0\x04",
    b"X\0\0\0\x04",
    b"c\0\0\0\x04",
    b"d\0\0\0\x06a\n",
    b"f\0\0\0\x06x\0",
    b"Q\0\0\0\x05\0",
    b"Q\0\0\0\x0aBEGIN\0",
    b"Q\0\0\0\x0bCOMMIT\0",
    b"Q\0\0\0\x0aERROR\0",
    b"Q\0\0\0\x0cCOPY IN\0",
    b"Q\0\0\0\x0dCOPY OUT\0",
    b"Q\0\0\0\x0aSLEEP\0",
    b"Q\0\0\0\x0eSET x = 1\0",
    b"Q\0\0\0\x15COPY IN;COPY OUT\0",
    b"P\0\0\0\x10\0SELECT 1\0\0\0",
    b"P\0\0\0\x11s\0SELECT 1\0\0\0",
    b"P\0\0\0\x0f\0COPY IN\0\0\0",
    b"P\0\0\0\x0d\0DEFER\0\0\0",
    b"P\0\0\0\x0c\0MANY\0\0\0",
    b"B\0\0\0\x0c\0\0\0\0\0\0\0\0",
    b"B\0\0\0\x0d\0s\0\0\0\0\0\0\0",
    b"D\0\0\0\x06P\0",
    b"D\0\0\0\x06S\0",
    b"C\0\0\0\x06S\0",
    b"C\0\0\0\x07Ss\0",
    b"E\0\0\0\x09\0\0\0\0\0",
    b"E\0\0\0\x09\0\0\0\0\x01",
    b"F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0",
    b"Z\0\0\0\x05I",
    b"Z\0\0\0\x05T",
    b"Z\0\0\0\x05E",
    b"1\0\0\0\x04",
    b"2\0\0\0\x04",
    b"3\0\0\0\x04",
    b"n\0\0\0\x04",
    b"s\0\0\0\x04",
    b"t\0\0\0\x06\0\0",
    b"I\0\0\0\x04",
    b"C\0\0\0\x0dSELECT 1\0",
    b"D\0\0\0\x0b\0\x01\0\0\0\x011",
    b"T\0\0\0\x06\0\0",
    b"E\0\0\0\x13SERROR\0C42601\0\0",
    b"E\0\0\0\x13SFATAL\0C57P01\0\0",
    b"N\0\0\0\x14SNOTICE\0C00000\0\0",
    b"S\0\0\0\x08a\0b\0",
    b"A\0\0\0\x0c\0\0\0\x01c\0p\0",
    b"G\0\0\0\x07\0\0\0",
    b"H\0\0\0\x07\0\0\0",
    b"W\0\0\0\x07\0\0\0",
    b"V\0\0\0\x08\xff\xff\xff\xff",
    b"R\0\0\0\x08\0\0\0\0",
    b"K\0\0\0\x0c\0\0\0\x01abcd",
    b"n,,",
    b"y,,",
    b"p=tls-unique,,",
    b"r=",
    b",s=c2FsdA==",
    b",i=4096",
    b"c=biws,",
    b",p=",
    b"v=",
    b"m=x,",
    b"'",
    b"''",
    b"\"",
    b"$$",
    b"$a$",
    b"--",
    b"/*",
    b"*/",
    b"\\",
    b"\\'",
    b"U&\"",
    b"E'",
    b";",
    b"SET ",
    b"LOCAL ",
    b"set_config(",
    b"CREATE TEMP ",
    b" ON COMMIT DROP",
    b"LISTEN ",
    b"PREPARE ",
    b"[pools.app]\n",
    b"[pools.app.users.0]\n",
    b" = \"",
    b" = 0\n",
    b" = [[",
    b"# ",
];

/// Makes inputs out of others. The same seed and the same corpus make the same inputs.
pub struct Mutator {
    random: ChaCha8Rng,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    /// Starts from these inputs; without any, from nothing.
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), corpus }
    }

    /// The next input: one of the corpus, changed a few times.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.chosen();
        // Mostly one to four changes, now and then up to sixteen.
        let most = if self.below(8) == 0 { 16 } else { 4 };
        for _ in 0..=self.below(most) {
            self.change(&mut input);
        }
        input.truncate(INPUT_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.below(12) {
            0 => self.flip(input),
            1 => self.overwrite(input),
            2 => drop(input.drain(self.range(input))),
            3 => self.duplicate(input),
            4 => input.truncate(self.place(input)),
            5 => self.splice(input),
            6 => self.edit_length(input),
            7 => self.frame(input),
            8 => self.insert_op(input),
            _ => self.insert_token(input),
        }
    }

    fn flip(&mut self, input: &mut [u8]) {
        let at = self.place(input);
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << self.below(8);
        }
    }

    fn overwrite(&mut self, input: &mut [u8]) {
        let at = self.place(input);
        if let Some(byte) = input.get_mut(at) {
            *byte = self.random.next_u32() as u8;
        }
    }

    /// A piece comes again elsewhere.
    fn duplicate(&mut self, input: &mut Vec<u8>) {
        let piece = input[self.range(input)].to_vec();
        self.insert(input, &piece);
    }

    /// A piece of another input comes in.
    fn splice(&mut self, input: &mut Vec<u8>) {
        let other = self.chosen();
        let piece = other[self.range(&other)].to_vec();
        self.insert(input, &piece);
    }

    /// Four bytes somewhere become a length that somebody may have got wrong.
    fn edit_length(&mut self, input: &mut [u8]) {
        let at = self.place(input);
        let left = input.len() - at;
        let Some(field) = input.get_mut(at..at + 4) else { return };
        let old = i32::from_be_bytes([field[0], field[1], field[2], field[3]]);
        let new = match self.below(8) {
            0 => 0,
            1 => 3,
            2 => 4,
            3 => old.wrapping_add(1),
            4 => old.wrapping_sub(1),
            5 => left as i32,
            6 => i32::MAX,
            _ => -1,
        };
        field.copy_from_slice(&new.to_be_bytes());
    }

    /// The bytes behind a place become the body of a message that is framed as it should be.
    fn frame(&mut self, input: &mut [u8]) {
        let at = self.place(input);
        let room = (input.len() - at).saturating_sub(5);
        let length = self.below(1 + room.min(64)) as i32 + 4;
        if let Some(field) = input.get_mut(at + 1..at + 5) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }

    fn insert_op(&mut self, input: &mut Vec<u8>) {
        let op = self.below(Op::ALL.len()) as u8;
        self.insert(input, &[MARK[0], MARK[1], op]);
    }

    fn insert_token(&mut self, input: &mut Vec<u8>) {
        let token = TOKENS[self.below(TOKENS.len())];
        self.insert(input, token);
    }

    fn insert(&mut self, input: &mut Vec<u8>, piece: &[u8]) {
        let at = self.place(input);
        input.splice(at..at, piece.iter().copied());
    }

    fn chosen(&mut self) -> Vec<u8> {
        match self.corpus.len() {
            0 => Vec::new(),
            n => {
                let which = self.below(n);
                self.corpus[which].clone()
            }
        }
    }

    /// A place in `input`, or its end.
    fn place(&mut self, input: &[u8]) -> usize {
        self.below(input.len() + 1)
    }

    /// A piece of `input`, rather a short one.
    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.place(input);
        let most = 1 << self.below(10);
        start..input.len().min(start + self.below(most + 1))
    }

    /// A number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        self.random.next_u32() as usize % n
    }
}
