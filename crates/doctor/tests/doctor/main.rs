//! The judge, held against facts.
