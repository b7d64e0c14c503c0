//! `docs/cli.md`: every command with its arguments, from the same definitions
//! that read the command line.

use clap::{Arg, Command};

const INTRODUCTION: &str = "# Command line\n\n\
One binary, `outflow`. This page is generated from the definitions that read the command line; \
`outflow COMMAND --help` says the same.\n\n\
- Results go to stdout, errors to stderr. Exit codes: 0 done, 1 failed, 2 wrong use.\n\
- Commands that read take `--json` and then print what the server answered, as it is: the shapes \
are those of the API. Without it they print tables and sentences for people; do not parse those.\n\
- Times are UTC. Where a time is asked for, `90s`, `2h`, `3d`, `2026-01-31` and \
`2026-01-31T12:00:00Z` are read.\n\
- The server is found by `--server` or `OUTFLOW_SERVER`, else by the file `address` in the data \
directory (`--data-dir` or `OUTFLOW_DATA_DIR`, else `outflow-data`), else at \
`http://127.0.0.1:8025`. The token is `--token` or `OUTFLOW_TOKEN`, else the file `admin-token` \
in the data directory, which is sent only to the server that wrote it or to this machine.\n";

/// The page about all commands below `root`.
pub fn markdown(mut root: Command) -> String {
    root.build();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Options of all commands\n\n");
    let globals: Vec<&Arg> = root
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .collect();
    arguments(&mut page, &globals);
    for command in root.get_subcommands() {
        section(&mut page, command, "outflow", 2);
    }
    page
}

fn section(page: &mut String, command: &Command, before: &str, depth: usize) {
    let name = command.get_name();
    if name == "help" {
        return;
    }
    let full = format!("{before} {name}");
    page.push_str(&format!("\n{} `{full}`\n\n", "#".repeat(depth)));
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    page.push_str(&format!("{}\n", sentence(&about)));
    let mut inner = command.get_subcommands();
    let is_leaf = inner.all(|inner| inner.get_name() == "help");
    if is_leaf || !command.is_subcommand_required_set() {
        let mut command = command.clone();
        let usage = command.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        page.push_str(&format!("\n```\n{usage}\n```\n\n"));
        let own = command.get_arguments();
        let own: Vec<&Arg> = own
            .filter(|argument| !argument.is_global_set() && argument.get_id() != "help")
            .collect();
        arguments(page, &own);
    }
    for command in command.get_subcommands() {
        section(page, command, &full, depth + 1);
    }
}

fn arguments(page: &mut String, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    page.push_str("| argument | meaning |\n|---|---|\n");
    for argument in arguments {
        let help = argument.get_long_help().or(argument.get_help());
        let mut help = sentence(&help.map(ToString::to_string).unwrap_or_default());
        let possible: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|_| argument.get_action().takes_values())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !possible.is_empty() {
            help.push_str(&format!(" One of {}.", possible.join(", ")));
        }
        let default = argument.get_default_values().first();
        if let Some(default) = default.filter(|_| argument.get_action().takes_values()) {
            help.push_str(&format!(" Default: `{}`.", default.to_string_lossy()));
        }
        if let Some(variable) = argument.get_env() {
            help.push_str(&format!(" Environment: `{}`.", variable.to_string_lossy()));
        }
        page.push_str(&format!("| `{}` | {help} |\n", written(argument)));
    }
}

fn written(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.first().map(ToString::to_string);
    let takes = argument.get_action().takes_values();
    let value = value.filter(|_| takes).unwrap_or_default();
    let flag = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        _ => return value,
    };
    match value.is_empty() {
        true => flag,
        false => format!("{flag} {value}"),
    }
}

/// On one line, with a full stop, and safe in a table.
fn sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace('|', "\\|");
    match line.ends_with(['.', '!', '?']) || line.is_empty() {
        true => line,
        false => format!("{line}."),
    }
}
