//! Asks before something cannot be undone, if somebody is there to answer.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use super::failure::Failure;

/// Whether to go on. A script is not asked: it said what it wants.
pub fn confirm(question: &str, yes: bool) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if yes || !stdin.is_terminal() {
        return Ok(true);
    }
    let mut err = std::io::stderr();
    let asked = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    asked.map_err(|error| Failure::of_output(&error))?;
    let mut answer = String::new();
    let read = stdin.lock().take(64).read_line(&mut answer);
    read.map_err(|error| Failure::Other(format!("stdin cannot be read: {error}")))?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(is_yes("y\n") && is_yes("YES\n"));
        assert!(!is_yes("\n") && !is_yes("no\n") && !is_yes("yesterday\n"));
    }
}
