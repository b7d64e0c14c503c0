//! What every transport must do.
