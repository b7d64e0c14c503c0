//! The kinds of entries, by the first byte of each. A number is never used again
//! for something else.

pub const FLOW: u8 = 1;
pub const MESSAGE: u8 = 2;
pub const DEFERRAL: u8 = 3;
pub const SETTLEMENT: u8 = 4;
pub const DEAD: u8 = 5;
pub const FEEDBACK: u8 = 6;
pub const CANCELLED: u8 = 7;
pub const MOVED: u8 = 8;
pub const HASTENED: u8 = 9;
pub const RESERVATION: u8 = 10;
pub const FORGET: u8 = 11;
pub const COMMIT: u8 = 12;
pub const KEPT: u8 = 13;
pub const KEYS: u8 = 14;
pub const BODY: u8 = 15;
pub const TABLE: u8 = 16;
pub const FORGOTTEN: u8 = 17;
pub const HELD: u8 = 18;
pub const ADAPTED: u8 = 19;
/// What stands where something was lost.
pub const FILLER: u8 = 20;
