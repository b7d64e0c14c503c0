//! The rules that come with the program, one file for each provider.

/// What replies mean when no provider's own rules speak.
pub(crate) const GENERIC: &str = include_str!("../../data/replies/generic.toml");

macro_rules! files {
    ($($name:literal,)*) => {
        /// The rules of providers: the file's name, and what it says. Each says
        /// itself for whom it holds.
        pub(crate) const PROVIDERS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../data/replies/", $name, ".toml"))),)*
        ];
    };
}

files! {
    "comcast",
    "cox",
    "free",
    "gmx",
    "godaddy",
    "google",
    "icloud",
    "mail.ru",
    "microsoft",
    "mimecast",
    "netease",
    "orange",
    "qq",
    "rackspace",
    "spectrum",
    "yahoo",
    "yandex",
}
