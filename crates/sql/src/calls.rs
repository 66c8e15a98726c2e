use crate::{PinReason, Pins};

/// Functions that a FunctionCall may name without leaving state in the session: the ones that
/// libpq calls for large objects, whose descriptors end with the transaction. Their OIDs are fixed
/// (`pg_proc.dat`).
const HARMLESS: [u32; 14] = [
    715,  // lo_create
    764,  // lo_import
    952,  // lo_open
    953,  // lo_close
    954,  // loread
    955,  // lowrite
    956,  // lo_lseek
    957,  // lo_creat
    958,  // lo_tell
    964,  // lo_unlink
    1004, // lo_truncate
    3170, // lo_lseek64
    3171, // lo_tell64
    3172, // lo_truncate64
];

/// What a FunctionCall of this function leaves behind: anything, unless it is known.
pub fn function_call(oid: u32) -> Pins {
    if HARMLESS.contains(&oid) { Pins::NONE } else { PinReason::Unclear.into() }
}
