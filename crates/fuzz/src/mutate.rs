use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::Target;
use crate::script::{MARK, Op};
use crate::words::words;

/// Makes inputs out of others. The same seed and the same corpus make the same inputs.
pub struct Mutator {
    random: ChaCha8Rng,
    corpus: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    longest: usize,
}

impl Mutator {
    /// Starts from these inputs of a target; without any, from nothing.
    pub fn new(seed: u64, target: Target, corpus: Vec<Vec<u8>>) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { random, corpus, words: words(target.language), longest: target.longest }
    }

    /// The next input: one of the corpus, changed a few times.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.chosen();
        // Mostly one to four changes, now and then up to sixteen.
        let most = if self.below(8) == 0 { 16 } else { 4 };
        for _ in 0..=self.below(most) {
            self.change(&mut input);
        }
        input.truncate(self.longest);
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
            _ => self.insert_word(input),
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

    fn insert_word(&mut self, input: &mut Vec<u8>) {
        let which = self.below(self.words.len());
        let word = self.words[which].clone();
        self.insert(input, &word);
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
