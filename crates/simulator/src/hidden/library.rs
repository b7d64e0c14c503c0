//! The providers that ship.

use super::spec::ProviderSpec;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../networks/", $name, ".toml")))),*]
    };
}

/// The ten kinds that the targets are stated for.
const KINDS: &[(&str, &str)] = files![
    "01-token-bucket",
    "02-connections",
    "03-growing-penalty",
    "04-greylisting",
    "05-daily-quota",
    "06-reputation",
    "07-diurnal",
    "08-dips",
    "09-hourly-window",
    "10-noise",
];

/// Others. No target is stated for them.
const OTHERS: &[(&str, &str)] = files![
    "11-penalty-in-flight",
    "12-hour-block",
    "13-hour-block-pushed",
    "14-noise-2",
    "15-large-burst",
    "16-slow-replies",
    "17-no-burst",
    "18-quota-elsewhere",
    "19-short-block",
];

/// A provider by name.
#[derive(Clone, Debug)]
pub struct Named {
    /// Of its file.
    pub name: &'static str,
    /// What is in it.
    pub provider: ProviderSpec,
}

/// The ten kinds that the targets are stated for.
pub fn kinds() -> Result<Vec<Named>, toml::de::Error> {
    read(KINDS)
}

/// Further kinds, to see how it fares where no target is stated.
pub fn others() -> Result<Vec<Named>, toml::de::Error> {
    read(OTHERS)
}

/// The provider of this name.
pub fn named(name: &str) -> Option<Named> {
    let all = [KINDS, OTHERS];
    let mut files = all.into_iter().flatten();
    let file = files.find(|(known, _)| *known == name)?;
    read(&[*file]).ok()?.pop()
}

fn read(files: &[(&'static str, &str)]) -> Result<Vec<Named>, toml::de::Error> {
    files
        .iter()
        .map(|&(name, text)| toml::from_str(text).map(|provider| Named { name, provider }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_that_ships_reads() {
        let all = [kinds().unwrap(), others().unwrap()].concat();
        assert_eq!(all.len(), KINDS.len() + OTHERS.len());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/networks");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, all.len(), "a file in networks/ is in no list");
        assert!(named("07-diurnal").is_some() && named("99").is_none());
    }
}
