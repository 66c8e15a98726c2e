//! Lines on their way to where writing may take long, or be impossible: a pipe that nobody reads,
//! a disk that is full.
//!
//! A [`Queue`] decides what waits, what is dropped and what is told of that. It reads no clock and
//! writes nothing, so the simulator runs it with a disk of its own. A [`Sink`] is a queue with a
//! thread that writes; whoever has a line goes on at once.
//!
//! Invariants:
//! - A line is written once, or counted as lost once; those that are written stand in their order.
//! - Lines that wait take up no more than the room that the queue was given.
//! - That lines were lost is told as soon as something can be written again, and not before: to
//!   tell of it where nothing can be written would be as vain as the lines were.
#![forbid(unsafe_code)]

mod queue;
mod sink;

pub use queue::{Next, Queue};
pub use sink::Sink;
