//! The files beside the store: the administrator's token, and the address, by
//! which the command line finds a running server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use outflow_api::state::StartError;
use outflow_api::tokens;
use outflow_core::time::Wall;
use outflow_ports::registry::Registry;

/// Where the administrator's token is.
pub const TOKEN: &str = "admin-token";
/// Where the address of a running server is.
pub const ADDRESS: &str = "address";

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The disk.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The registry.
    #[error(transparent)]
    Start(#[from] StartError),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FilesError {
    let path = path.to_owned();
    |error| FilesError::Io { path, error }
}

/// Makes the administrator's token at the first start. Where it is, if it is
/// there.
///
/// The file is begun before the token is made, so that a crash in between is
/// noticed: nobody knows that token, and another one is made.
pub fn admin_token(
    dir: &Path,
    registry: &dyn Registry,
    now: Wall,
) -> Result<Option<PathBuf>, FilesError> {
    let path = dir.join(TOKEN);
    let begun = dir.join("admin-token.new");
    let was_begun = begun.exists();
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&begun).map_err(at(&begun))?;
    let token = if was_begun {
        Some(tokens::issue_admin(registry, now)?)
    } else {
        tokens::first_admin(registry, now)?
    };
    let Some(token) = token else {
        fs::remove_file(&begun).map_err(at(&begun))?;
        return Ok(path.exists().then_some(path));
    };
    writeln!(file, "{token}")
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&begun, &path))
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(at(&path))?;
    Ok(Some(path))
}

/// Says where the server is.
pub fn write_address(dir: &Path, url: &str) -> Result<(), FilesError> {
    let path = dir.join(ADDRESS);
    fs::write(&path, format!("{url}\n")).map_err(at(&path))
}

/// The server is not there any more. Nobody is helped by an error.
pub fn remove_address(dir: &Path) {
    let _ = fs::remove_file(dir.join(ADDRESS));
}

/// Whether nothing was ever kept in a directory.
pub fn is_empty(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Makes a directory for this user alone: messages of others are in it.
pub fn make_private(dir: &Path) -> Result<(), FilesError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(at(dir))
}
