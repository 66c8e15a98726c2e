use crate::Malformed;

/// The transaction status that ReadyForQuery carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// `I`: outside a transaction block.
    Idle,
    /// `T`: inside a transaction block.
    Active,
    /// `E`: inside a transaction block that failed; everything but its end is refused.
    Failed,
}

impl TransactionStatus {
    /// The status that this byte of ReadyForQuery stands for.
    pub fn parse(byte: u8) -> Result<Self, Malformed> {
        match byte {
            b'I' => Ok(Self::Idle),
            b'T' => Ok(Self::Active),
            b'E' => Ok(Self::Failed),
            _ => Err(Malformed::InvalidField),
        }
    }

    /// The byte that ReadyForQuery carries.
    pub fn as_byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::Active => b'T',
            Self::Failed => b'E',
        }
    }

    /// Whether a transaction block is open, failed or not.
    pub fn in_block(self) -> bool {
        self != Self::Idle
    }
}
