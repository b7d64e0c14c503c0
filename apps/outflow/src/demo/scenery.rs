//! Where the demonstration takes place: a temporary directory, one sandboxed
//! account, and three mailbox providers with different limits.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use outflow_config::Settings;

/// A provider and the limit that it is said to have.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    /// Its name in policies.
    pub isp: &'static str,
    /// A domain of its.
    pub domain: &'static str,
    /// What it takes.
    pub limit: &'static str,
}

/// The providers: a large burst, a small one, and none at all.
pub const PROVIDERS: [Provider; 3] = [
    Provider {
        isp: "google",
        domain: "gmail.com",
        limit: "40/s burst 40",
    },
    Provider {
        isp: "outlook",
        domain: "outlook.com",
        limit: "20/s burst 5",
    },
    Provider {
        isp: "yahoo",
        domain: "yahoo.com",
        limit: "10/s spaced",
    },
];

impl Provider {
    /// Its destination, as lanes and limits name it.
    pub fn destination(&self) -> String {
        format!("isp:{}", self.isp)
    }
}

/// A directory that goes when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one.
    pub fn new() -> io::Result<Self> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let path = std::env::temp_dir().join(format!("outflow-demo-{random:016x}"));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The settings of the demonstration's server.
pub fn settings(dir: &Path) -> Result<Settings, outflow_config::LoadError> {
    let mut text = String::from(
        r#"
[server]
listen = "127.0.0.1:0"
[store]
segment_size = "4MiB"
body_segment_size = "4MiB"
reserve_size = "16MiB"
[log]
level = "error"
[classes.critical]
headroom = "20%"
[[account]]
id = "demo"
transport = "sandbox"
sandbox = { latency = { p50 = "40ms", p99 = "250ms" } }
"#,
    );
    for Provider { isp, limit, .. } in PROVIDERS {
        text.push_str(&format!(
            "[[policy]]\nmatch = {{ isp = \"{isp}\" }}\nlimits = [\"{limit}\"]\n"
        ));
    }
    let mut settings = Settings::parse(&text)?;
    settings.server.data_dir = dir.to_owned();
    Ok(settings)
}
