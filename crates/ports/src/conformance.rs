//! What every implementation of a port must do, one suite per trait.
