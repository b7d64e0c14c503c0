//! The reference and the commented default file, both written from the table
//! of keys.

use crate::key::{Form, Key};
use crate::keys;

const REFERENCE_HEAD: &str = "# Configuration

Everything has a default: `outflow serve` needs no file. This page is generated from the table of \
keys that also checks what you write; `outflow config reference` prints it. A file with all defaults \
is in [`examples/outflow.toml`](../examples/outflow.toml).

- A key that does not exist is an error that says file, line and column and what was probably meant. \
All problems are told at once; `outflow config check` looks for them without starting anything.
- What counts: the command line, then the environment, then the file, then the default. \
`outflow config show` prints what is in force and where each value comes from.
- `OUTFLOW_SECTION__KEY` in the environment sets a single value, as \
`OUTFLOW_SERVER__LISTEN=127.0.0.1:9000` or `OUTFLOW_RETRY__EMAIL__FIRST=1m`. An empty variable sets \
nothing. Accounts and policies are lists, and are set in the file or over the API.
- Secrets do not belong into the file: an account names a variable (`password_env`) or a file \
(`password_file`). URLs with a password are best set by the environment (`OUTFLOW_LEDGER__URL`).
- Times are written `\"200ms\"`, `\"90s\"`, `\"5m\"`, `\"4h\"`, `\"2d\"`; sizes `\"64MiB\"` or \
`\"64MB\"`; shares `\"20%\"`.
";

const TOML_HEAD: &str = "# All settings of Outflow with their defaults. Everything may be left out.
# What each means: docs/configuration.md, or `outflow config reference`.
";

/// How wide the comments of the default file are.
const COMMENT_WIDTH: usize = 88;

/// The reference of all settings, as Markdown.
pub fn reference_markdown() -> String {
    let mut text = REFERENCE_HEAD.to_owned();
    for section in keys::ROOT {
        match section.form {
            Form::List(Form::Table(keys), _) => {
                write_section(
                    &mut text,
                    &format!("[[{}]]", section.name),
                    section.doc,
                    keys,
                    2,
                );
            }
            Form::Table(keys) => {
                write_section(
                    &mut text,
                    &format!("[{}]", section.name),
                    section.doc,
                    keys,
                    2,
                );
            }
            _ => {}
        }
    }
    text
}

fn write_section(text: &mut String, title: &str, doc: &str, keys: &[Key], depth: usize) {
    let marks = "#".repeat(depth);
    text.push_str(&format!("\n{marks} `{title}`\n\n{doc}\n"));
    let plain: Vec<&Key> = keys.iter().filter(|key| inner(key).is_none()).collect();
    if !plain.is_empty() {
        text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
    }
    for key in plain {
        let default = key
            .default
            .map_or(String::new(), |toml| format!("`{toml}`"));
        let row = [
            format!("`{}`", key.name),
            cell(&key.form.wanted()),
            cell(&default),
            cell(key.doc),
        ];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    let name = title.trim_matches(['[', ']']);
    for key in keys {
        if let Some(keys) = inner(key) {
            let path = format!("{name}.{}", key.name);
            let title = match key.form {
                Form::List(..) => format!("[[{path}]]"),
                _ => format!("[{path}]"),
            };
            write_section(text, &title, key.doc, keys, depth + 1);
        }
    }
}

/// The keys of a table, of a list of tables, or of a table that may stand for a
/// plain value.
pub(crate) fn inner(key: &Key) -> Option<&'static [Key]> {
    match key.form {
        Form::Table(keys) | Form::List(&Form::Table(keys), _) => Some(keys),
        _ => None,
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A file with all settings at their defaults, with comments. What has no
/// default is commented out.
pub fn default_toml() -> String {
    let mut text = TOML_HEAD.to_owned();
    for section in keys::ROOT {
        match section.form {
            Form::List(Form::Table(keys), _) => write_example(&mut text, section, keys),
            Form::Table(keys) => write_table(&mut text, &[section.name], section.doc, keys),
            _ => {}
        }
    }
    text
}

fn write_table(text: &mut String, path: &[&str], doc: &str, keys: &[Key]) {
    text.push('\n');
    write_comment(text, doc);
    text.push_str(&format!("[{}]\n", path.join(".")));
    for key in keys.iter().filter(|key| inner(key).is_none()) {
        write_comment(text, key.doc);
        match (key.default, key.example) {
            (Some(toml), _) => text.push_str(&format!("{} = {toml}\n", key.name)),
            (None, Some(toml)) => text.push_str(&format!("# {} = {toml}\n", key.name)),
            (None, None) => text.push_str(&format!("# {} = ...\n", key.name)),
        }
    }
    for key in keys {
        if let Some(keys) = inner(key) {
            let path: Vec<&str> = path.iter().copied().chain([key.name]).collect();
            write_table(text, &path, key.doc, keys);
        }
    }
}

/// An entry of a list has no default: an example of one is commented out.
fn write_example(text: &mut String, section: &Key, keys: &[Key]) {
    text.push('\n');
    write_comment(text, section.doc);
    text.push_str(&format!("#\n# [[{}]]\n", section.name));
    for key in keys.iter().filter(|key| !key.is_aside) {
        if let Some(toml) = key.default.or(key.example) {
            text.push_str(&format!("# {} = {toml}\n", key.name));
        }
    }
}

fn write_comment(text: &mut String, doc: &str) {
    let mut line = String::from("#");
    for word in doc.split_whitespace() {
        if line.chars().count() + word.chars().count() + 1 > COMMENT_WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
