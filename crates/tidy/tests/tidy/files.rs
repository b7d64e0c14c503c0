//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below, without hidden folders and build output, by their path
/// from the root and in order.
pub fn files(below: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && name != ".ci";
            if path.is_dir() && !hidden && name != "target" {
                folders.push(path);
            } else if path.is_file() {
                let from_root = path.strip_prefix(root()).unwrap_or(&path);
                found.push(from_root.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// All Rust files in the `src` folders of packages.
pub fn sources() -> impl Iterator<Item = String> {
    ["crates", "apps", "benches"]
        .into_iter()
        .flat_map(files)
        .filter(|path| path.ends_with(".rs") && path.contains("/src/"))
}
