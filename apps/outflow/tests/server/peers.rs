//! What `scripts/fetch-peers` has put into the user's cache.

use std::path::PathBuf;

/// The place of one of them, by its path below the peers.
pub fn peer(path: &str) -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|cache| !cache.is_empty());
    let cache = cache.map_or_else(home, PathBuf::from);
    let path = cache.join("outflow/peers").join(path);
    assert!(
        path.exists(),
        "there is no {}. Put it there: scripts/fetch-peers",
        path.display()
    );
    path
}
