//! `outflow config check|show|reference`, and how every command that needs
//! settings reads them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outflow_config::{LoadError, Settings, reference_markdown};
use serde_json::json;

/// The file that is read if it is there and no other is named.
const USUAL: &str = "outflow.toml";

/// Where settings come from.
#[derive(Debug, clap::Args)]
pub struct Sources {
    /// The settings file. Without it, `outflow.toml` if there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Sources {
    /// The settings, with the command line over all: the data directory, and
    /// `over`. What is wrong with them is printed.
    pub fn load(
        &self,
        data_dir: Option<&Path>,
        over: &[(&str, &str)],
    ) -> Result<Settings, ExitCode> {
        self.read(data_dir, over).map_err(|error| {
            eprintln!("{error}");
            ExitCode::from(2)
        })
    }

    /// The same, for whoever says himself what is wrong.
    pub fn read(
        &self,
        data_dir: Option<&Path>,
        over: &[(&str, &str)],
    ) -> Result<Settings, LoadError> {
        let data_dir = data_dir.map(Path::to_string_lossy);
        let data_dir = data_dir.as_deref().map(|dir| ("server.data_dir", dir));
        let over: Vec<(&str, &str)> = over.iter().copied().chain(data_dir).collect();
        let usual = PathBuf::from(USUAL);
        let usual = usual.is_file().then_some(usual);
        let file = self.config.clone().or(usual);
        let env = std::env::vars_os();
        let env = env.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Settings::load_with(file.as_deref(), env, &over)
    }
}

/// What to do with settings.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Look for mistakes without starting anything.
    Check(Sources),
    /// Print what is in force, and where each value comes from.
    Show {
        #[command(flatten)]
        sources: Sources,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the reference of all settings.
    Reference,
}

/// Runs the command.
pub fn run(arguments: &Arguments, data_dir: Option<&Path>) -> ExitCode {
    let (sources, is_json) = match &arguments.action {
        Action::Reference => {
            say!("{}", reference_markdown().trim_end());
            return ExitCode::SUCCESS;
        }
        Action::Check(sources) => (sources, None),
        Action::Show { sources, json } => (sources, Some(*json)),
    };
    let settings = match sources.load(data_dir, &[]) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    match is_json {
        Some(true) => say!("{}", json!(settings.entries())),
        Some(false) => say!("{}", settings.show().trim_end()),
        None => {
            let unbuilt = crate::serve::unbuilt::unbuilt(&settings);
            if !unbuilt.is_empty() {
                unbuilt.iter().for_each(|line| eprintln!("{line}"));
                return ExitCode::from(2);
            }
            if let Err(error) = crate::rules::load(&settings.classify_rules) {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
            say!("the settings are good");
        }
    }
    ExitCode::SUCCESS
}
