//! What people write, and what becomes of it.

mod accounts;
mod any_text;
mod file;
mod policies;
mod table;
