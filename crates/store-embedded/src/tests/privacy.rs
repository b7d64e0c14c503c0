//! Nobody else on the machine reads what is kept, also in a directory that is
//! open to all.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::scratch::Scratch;
use crate::settings::Settings;
use crate::store::EmbeddedStore;

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn open_to_all(dir: &Path) -> Vec<PathBuf> {
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut found = files(dir);
    found.retain(|path| mode(path) != 0o600);
    found
}

fn open(dir: &Path) -> EmbeddedStore {
    let settings = Settings {
        envelope_segment_bytes: 1 << 20,
        body_segment_bytes: 1 << 20,
        ..Settings::default()
    };
    EmbeddedStore::open(dir, settings, Arc::new(|| ()))
        .unwrap()
        .0
}

#[test]
fn no_file_is_open_to_others_also_if_it_was() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let store = open(dir);
    let names = files(dir);
    let has = |ending: &str| {
        names
            .iter()
            .any(|it| it.display().to_string().ends_with(ending))
    };
    for ending in [
        "lock",
        "record.sqlite",
        "record.sqlite-wal",
        "record.sqlite-shm",
    ] {
        assert!(has(ending), "{ending} is not in {names:?}");
    }
    assert_eq!(open_to_all(dir), [] as [PathBuf; 0]);
    // As a crash leaves it: what SQLite has beside its file is still there.
    let left = Scratch::new();
    fs::create_dir(left.path().join("journal")).unwrap();
    for from in files(dir) {
        let to = left.path().join(from.strip_prefix(dir).unwrap());
        fs::copy(&from, &to).unwrap();
        fs::set_permissions(&to, Permissions::from_mode(0o644)).unwrap();
    }
    drop(store);
    let _store = open(left.path());
    assert_eq!(open_to_all(left.path()), [] as [PathBuf; 0]);
}
