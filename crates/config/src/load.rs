//! Settings from their sources: defaults, file, environment, command line, each
//! over the one before.
//!
//! Each layer is checked by itself, so that every problem is told where it was
//! written: file, line and column, or the name of the variable. What cannot be
//! used is left out and the rest is looked at together.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::check;
use crate::document::{Document, Place};
use crate::environment;
use crate::key::{Form, Key};
use crate::keys;
use crate::merge::merge;
use crate::problem::Problems;
use crate::valid::Settings;

/// No file of settings is larger.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody wrote it.
    Default,
    /// The file.
    File,
    /// This environment variable.
    Env(String),
    /// The command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::Env(name) => write!(f, "env {name}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// One thing that is wrong, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it was written.
    pub origin: Origin,
    /// Where in the file.
    pub place: Option<Place>,
    /// Which key, as `server.listen`; empty for the whole.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub detail: String,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {error}", path = path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The settings cannot be taken.
    #[error("{}", listed(path.as_deref(), faults))]
    Wrong {
        /// The file, if there was one.
        path: Option<PathBuf>,
        /// All that is wrong.
        faults: Vec<Fault>,
    },
}

fn listed(path: Option<&Path>, faults: &[Fault]) -> String {
    let path = path.map_or("settings".to_owned(), |path| path.display().to_string());
    let lines = faults.iter().map(|fault| {
        let place = match (&fault.origin, fault.place) {
            (Origin::File, Some(Place { line, column })) => format!("{path}:{line}:{column}"),
            (Origin::File | Origin::Default, _) => path.clone(),
            (Origin::Env(name), _) => format!("environment variable {name}"),
            (Origin::CommandLine, _) => "command line".to_owned(),
        };
        match fault.key.as_str() {
            "" => format!("{place}: {}", fault.detail),
            key => format!("{place}: {key}: {}", fault.detail),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What was written where.
#[derive(Clone, Default)]
pub(crate) struct Layers {
    /// The file.
    file: Document,
    /// Who set what over the file, by pointer.
    over: BTreeMap<String, Origin>,
    /// All of it, merged.
    pub merged: Value,
}

/// Shows nothing: a URL in it may carry a password.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Layers(..)")
    }
}

impl Layers {
    /// Where the value at `pointer` comes from.
    pub fn origin(&self, pointer: &str) -> Origin {
        match self.over.get(pointer) {
            Some(origin) => origin.clone(),
            None if self.file.has(pointer) => Origin::File,
            None => Origin::Default,
        }
    }

    fn fault(&self, pointer: &str, detail: String) -> Fault {
        let origin = self.origin(pointer);
        let place = self.file.place(pointer);
        Fault {
            // What is missing is missing in the file.
            origin: match origin {
                Origin::Default if place.is_some() => Origin::File,
                origin => origin,
            },
            place,
            key: key_of(pointer),
            detail,
        }
    }
}

/// `/account/0/port` as people say it: `account[0].port`.
pub(crate) fn key_of(pointer: &str) -> String {
    let mut key = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let step: String = step.chars().take(64).collect();
        match step.parse::<usize>() {
            Ok(index) => key.push_str(&format!("[{index}]")),
            Err(_) if key.is_empty() => key.push_str(&step),
            Err(_) => key.push_str(&format!(".{step}")),
        }
    }
    key
}

impl Settings {
    /// Settings from a file, if one is named, and the environment over it. With
    /// neither everything has its default.
    pub fn load(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, LoadError> {
        Self::load_with(path, env, &[])
    }

    /// The same, with the command line over both: pairs of a key, as
    /// `server.listen`, and its value.
    pub fn load_with(
        path: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        command_line: &[(&str, &str)],
    ) -> Result<Self, LoadError> {
        let text = match path {
            Some(path) => read(path)?,
            None => String::new(),
        };
        Self::from_layers(&text, env, command_line).map_err(|faults| LoadError::Wrong {
            path: path.map(Path::to_owned),
            faults,
        })
    }

    /// Settings from the text of a file alone.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        Self::from_layers(text, std::iter::empty(), &[])
            .map_err(|faults| LoadError::Wrong { path: None, faults })
    }

    fn from_layers(
        text: &str,
        env: impl Iterator<Item = (String, String)>,
        command_line: &[(&str, &str)],
    ) -> Result<Self, Vec<Fault>> {
        let file = Document::parse(text).map_err(|error| {
            vec![Fault {
                origin: Origin::File,
                place: error.place,
                key: String::new(),
                detail: error.detail,
            }]
        })?;
        let mut problems = Problems::default();
        let mut written = file.value.clone();
        check::table(&mut written, keys::ROOT, "", &mut problems);
        let mut faults = Vec::new();
        let (over, origins) = over(env, command_line, &mut faults);
        let merged = merge(&merge(&defaults(keys::ROOT), &written), &over);
        let layers = Layers {
            file,
            over: origins,
            merged: merged.clone(),
        };
        let settings = Self::of(merged, layers.clone(), &mut problems);
        let found = problems.or(()).err().map(|invalid| invalid.errors);
        let found = found.into_iter().flatten();
        faults.extend(found.map(|problem| layers.fault(&problem.pointer, problem.detail)));
        match settings {
            Some(settings) if faults.is_empty() => Ok(settings),
            _ => Err(faults),
        }
    }
}

fn read(path: &Path) -> Result<String, LoadError> {
    let unreadable = |error| LoadError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    let mut file = file.take(FILE_BYTES_MAX + 1);
    file.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let error = io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes"));
        return Err(unreadable(error));
    }
    Ok(text)
}

/// What environment and command line say, and who said it; each setting is
/// checked by itself.
fn over(
    env: impl Iterator<Item = (String, String)>,
    command_line: &[(&str, &str)],
    faults: &mut Vec<Fault>,
) -> (Value, BTreeMap<String, Origin>) {
    let mut layer = Value::Object(Map::new());
    let mut origins = BTreeMap::new();
    let variables = env.filter(|(_, text)| !text.trim().is_empty());
    let mut variables: Vec<_> = variables
        .filter_map(|(name, text)| Some((environment::steps(&name)?, text, Origin::Env(name))))
        .collect();
    // The order in which the environment lists them is nobody's intention.
    variables.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let command_line = command_line.iter().map(|(key, text)| {
        let steps = key.split('.').map(str::to_owned).collect();
        (steps, (*text).to_owned(), Origin::CommandLine)
    });
    for (steps, text, origin) in variables.into_iter().chain(command_line) {
        let mut problems = Problems::default();
        let mut one = Value::Object(Map::new());
        if let Some(pointer) = environment::set(&mut one, &steps, &text, &mut problems) {
            check::table(&mut one, keys::ROOT, "", &mut problems);
            layer = merge(&layer, &one);
            origins.insert(pointer, origin.clone());
        }
        let found = problems.or(()).err().map(|invalid| invalid.errors);
        for problem in found.into_iter().flatten() {
            faults.push(Fault {
                origin: origin.clone(),
                place: None,
                key: key_of(&problem.pointer),
                detail: problem.detail,
            });
        }
    }
    (layer, origins)
}

/// Every key of the table that has a default, with it.
pub(crate) fn defaults(keys: &[Key]) -> Value {
    let mut fields = Map::new();
    for key in keys {
        let value = match (key.form, key.default) {
            (Form::Table(inner), _) => Some(defaults(inner)),
            (_, Some(toml)) => literal(toml),
            (_, None) => None,
        };
        if let Some(value) = value {
            fields.insert(key.name.to_owned(), value);
        }
    }
    Value::Object(fields)
}

/// A value as it is written in TOML.
pub(crate) fn literal(toml: &str) -> Option<Value> {
    let document = Document::parse(&format!("it = {toml}")).ok()?;
    document.value.get("it").cloned()
}
