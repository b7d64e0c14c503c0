//! Letters become mails that others read as they were meant.

mod composing;
mod letters;
mod refusing;
mod signing;
