//! The files beside the store: the administrator's token, and the address, by
//! which the command line finds a running server.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outflow_api::state::StartError;
use outflow_api::tokens;
use outflow_core::time::Wall;
use outflow_ports::registry::Registry;

/// Where the administrator's token is.
pub const TOKEN: &str = "admin-token";
/// Where the address of a running server is.
pub const ADDRESS: &str = "address";

/// Where the keys of return addresses are: one on each line, the first signs.
pub const KEYS: &str = "return-address-keys";

/// The mode of every file.
const PRIVATE: u32 = 0o600;

/// Where the name is under which a ledger knows this node.
const LEDGER_NAME: &str = "ledger-name";

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
    let mut file = create_private(&begun).map_err(at(&begun))?;
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

/// The name under which a ledger knows this node, the same at each start. It is
/// made at the first.
pub fn ledger_name(dir: &Path) -> Result<String, FilesError> {
    let path = dir.join(LEDGER_NAME);
    match fs::read_to_string(&path) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(at(&path)(error)),
    }
    // The keys of the standard library's hashes are random.
    let name = format!("{:016x}", RandomState::new().build_hasher().finish());
    let begun = dir.join("ledger-name.new");
    create_private(&begun)
        .and_then(|mut file| {
            writeln!(file, "{name}")?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&begun, &path))
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(at(&path))?;
    Ok(name)
}

/// Says where the server is.
pub fn write_address(dir: &Path, url: &str) -> Result<(), FilesError> {
    let path = dir.join(ADDRESS);
    create_private(&path)
        .and_then(|mut file| writeln!(file, "{url}"))
        .map_err(at(&path))
}

/// The server is not there any more. Nobody is helped by an error.
pub fn remove_address(dir: &Path) {
    let _ = fs::remove_file(dir.join(ADDRESS));
}

/// Begins a file that only this user can read, also in the place of one that
/// others can.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    let file = options.mode(PRIVATE).open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE))?;
    Ok(file)
}

/// Takes the files beside the store from everybody else: an older server, or a
/// backup that was copied back, may have left them open.
pub fn tighten(dir: &Path) -> Result<(), FilesError> {
    for path in [TOKEN, LEDGER_NAME, KEYS].map(|name| dir.join(name)) {
        match fs::set_permissions(&path, Permissions::from_mode(PRIVATE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
    }
    Ok(())
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
    builder.mode(0o700);
    builder.create(dir).map_err(at(dir))
}
