//! The record: as it is if it is whole, else what can be read of it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{NewJournal, SalvageError, Salvaged, at};
use crate::journal::place::position;
use crate::pair::PairError;
use crate::record::{Record, RecordError, RecordSettings, cover_at_most, rescue, verify};

/// Saves the record. Up to where it covers the journal.
pub fn save(
    old: &Path,
    new: &Path,
    journal: &NewJournal,
    salvaged: &mut Salvaged,
) -> Result<u64, SalvageError> {
    let to = new.join("record.sqlite");
    let copy = new.join("record.part");
    let is_copied = copy_all(&old.join("record.sqlite"), &copy, salvaged)?;
    if !is_copied {
        salvaged.lose(
            "record.sqlite is missing or empty: accounts, policies, tokens and receipts that were \
             set at run time",
        );
    }
    match verify(&copy) {
        Ok(problems) if is_copied && problems.is_empty() => {
            for ending in ["", "-wal"] {
                let (from, to) = (with(&copy, ending), with(&to, ending));
                if from.exists() {
                    fs::rename(&from, &to).map_err(at(&to))?;
                }
            }
        }
        Err(error @ RecordError::Newer { .. }) => {
            return Err(SalvageError::Newer(error.to_string()));
        }
        _ if is_copied => {
            let rescued = rescue(&copy, &to)?;
            salvaged.lost.extend(rescued.lost);
        }
        _ => {}
    }
    for ending in ["", "-wal", "-shm", "-journal"] {
        let path = with(&copy, ending);
        if path.exists() {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    if to.exists() {
        cover_at_most(&to, journal.through)?;
    }
    let record = Record::open(&to, RecordSettings::default())?;
    let applied = record.applied();
    if applied < journal.first {
        if journal.was_paired && is_copied && journal.first > position(1, 0) {
            salvaged.lose(format!("record.sqlite: {}", PairError::OldRecord));
        }
        record.settle(Vec::new(), journal.first);
    }
    record.set_store_id(journal.list.id())?;
    record.close();
    let applied = record.applied();
    drop(record);
    Ok(applied)
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Copies a record with its log; whether there is one.
fn copy_all(old: &Path, copy: &Path, salvaged: &mut Salvaged) -> Result<bool, SalvageError> {
    let mut any = false;
    for ending in ["", "-wal"] {
        let (from, to) = (with(old, ending), with(copy, ending));
        match fs::metadata(&from) {
            Ok(metadata) if metadata.len() > 0 => {}
            _ => continue,
        }
        if let Err(error) = fs::copy(&from, &to) {
            salvaged.lose(format!("record.sqlite{ending}: {error}"));
            if !to.exists() {
                continue;
            }
        }
        any |= ending.is_empty();
    }
    if any {
        fs::File::open(copy)
            .and_then(|file| file.sync_all())
            .map_err(at(copy))?;
    }
    Ok(any)
}
