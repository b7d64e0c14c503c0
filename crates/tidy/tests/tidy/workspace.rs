//! The packages of the workspace, as `cargo metadata` knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::files::root;

/// What one package of the workspace is.
pub struct Member {
    pub manifest: PathBuf,
    /// Names of the packages it is built from, without those of its tests.
    pub uses: BTreeSet<String>,
    /// The same, and what those use, and so on.
    pub reaches: BTreeSet<String>,
    /// Kind and name of each target.
    pub targets: Vec<(String, String)>,
    pub is_default: bool,
}

pub fn members() -> &'static BTreeMap<String, Member> {
    static MEMBERS: OnceLock<BTreeMap<String, Member>> = OnceLock::new();
    MEMBERS.get_or_init(|| {
        let metadata = metadata();
        let names: BTreeMap<&str, &str> = list(&metadata, "packages")
            .map(|package| (text(package, "id"), text(package, "name")))
            .collect();
        let uses: BTreeMap<&str, Vec<&str>> = metadata
            .get("resolve")
            .into_iter()
            .flat_map(|resolve| list(resolve, "nodes"))
            .map(|node| (text(node, "id"), built_from(node)))
            .collect();
        let members: BTreeSet<&str> = list(&metadata, "workspace_members")
            .filter_map(Value::as_str)
            .collect();
        let default: BTreeSet<&str> = list(&metadata, "workspace_default_members")
            .filter_map(Value::as_str)
            .collect();
        let name = |id: &&str| names.get(id).copied().unwrap_or_default().to_owned();
        list(&metadata, "packages")
            .filter(|package| members.contains(text(package, "id")))
            .map(|package| {
                let id = text(package, "id");
                let member = Member {
                    manifest: PathBuf::from(text(package, "manifest_path")),
                    uses: uses.get(id).into_iter().flatten().map(name).collect(),
                    reaches: reach(id, &uses).iter().map(name).collect(),
                    targets: list(package, "targets").map(target).collect(),
                    is_default: default.contains(id),
                };
                (text(package, "name").to_owned(), member)
            })
            .collect()
    })
}

/// What cargo knows of the workspace, for this machine and without a network.
fn metadata() -> Value {
    let cargo = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap_or_else(|error| panic!("cargo does not run: {error}"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "cargo {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let version = cargo(&["-vV"]);
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap_or_else(|| panic!("cargo -vV names no host:\n{version}"));
    let metadata = cargo(&[
        "metadata",
        "--offline",
        "--format-version=1",
        "--filter-platform",
        host,
    ]);
    serde_json::from_str(&metadata).unwrap_or_else(|error| panic!("cargo metadata: {error}"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn target(target: &Value) -> (String, String) {
    let kind = list(target, "kind").find_map(Value::as_str);
    (
        kind.unwrap_or_default().to_owned(),
        text(target, "name").to_owned(),
    )
}

/// The packages a node is built from. Those of its tests have the kind `dev`.
fn built_from(node: &Value) -> Vec<&str> {
    list(node, "deps")
        .filter(|dep| list(dep, "dep_kinds").any(|kind| text(kind, "kind") != "dev"))
        .map(|dep| text(dep, "pkg"))
        .collect()
}

fn reach<'a>(id: &'a str, uses: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        for &used in uses.get(id).into_iter().flatten() {
            if reached.insert(used) {
                open.push(used);
            }
        }
    }
    reached
}
