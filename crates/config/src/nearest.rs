//! What somebody probably meant.

/// The word that takes the fewest edits to get to, if these are at most half of
/// it; of several the one of about the same length. Long texts are nobody's typing error.
pub fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > 64 {
        return None;
    }
    let text = text.to_lowercase().replace('-', "_");
    words
        .into_iter()
        .map(|word| {
            let length = word.chars().count();
            (
                edits(&text, word),
                length.abs_diff(text.chars().count()),
                word,
            )
        })
        .filter(|(edits, _, word)| edits * 2 <= word.chars().count())
        .min()
        .map(|(.., word)| word)
}

/// How many letters must be put in, left out, changed or swapped with the next
/// to get from `a` to `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    let mut last_letter = None;
    for (i, letter) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for (j, (&other, pair)) in b.iter().zip(row.windows(2)).enumerate() {
            let &[diagonal, above] = pair else { continue };
            left = (diagonal + usize::from(letter != other))
                .min(above + 1)
                .min(left + 1);
            let swapped = j > 0 && last_letter == Some(other) && b.get(j - 1) == Some(&letter);
            if swapped && let Some(&earlier) = before.get(j - 1) {
                left = left.min(earlier + 1);
            }
            next.push(left);
        }
        last_letter = Some(letter);
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}
