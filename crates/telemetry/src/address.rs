//! Keeps people's addresses out of logs.
//!
//! Events carry no recipient, but far ends like to repeat it in what they say.

/// What stands where an address stood.
const HIDDEN: &str = "<address>";

/// The text with everything that looks like an address hidden.
pub fn hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut word = String::new();
    for letter in text.chars() {
        if letter.is_whitespace() || "<>()[]{},;:\"'`".contains(letter) {
            put(&mut shown, &mut word);
            shown.push(letter);
        } else {
            word.push(letter);
        }
    }
    put(&mut shown, &mut word);
    shown
}

fn put(shown: &mut String, word: &mut String) {
    shown.push_str(if word.contains('@') { HIDDEN } else { word });
    word.clear();
}
