//! Files for this user alone: mail of others and passwords are in them, and the
//! directory may be open to everybody on the machine.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The mode of every file.
pub const MODE: u32 = 0o600;

/// What SQLite keeps beside a file. It gives those it makes the mode of that
/// file; those that are there may be older.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Makes a database file that is not there, and takes it and its companions
/// from everybody else.
///
/// The file is never opened if it is there: to close it again would end the
/// locks that SQLite has on it in this process.
pub fn with_companions(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => tighten(path)?,
    }
    for companion in COMPANIONS {
        let mut name = path.as_os_str().to_owned();
        name.push(companion);
        tighten(Path::new(&name))?;
    }
    Ok(())
}

/// Takes every file in a directory from everybody else.
pub fn all_in(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            tighten(&entry.path())?;
        }
    }
    Ok(())
}

/// Takes a file from everybody else, if it is there.
pub fn tighten(path: &Path) -> io::Result<()> {
    let mode = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match mode & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(MODE)),
    }
}
