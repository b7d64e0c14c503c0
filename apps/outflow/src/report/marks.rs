//! The letters of changes, and where on the drawing they find room.

/// Rows of letters above the drawing.
pub const ROWS: usize = 3;
/// Letters closer than this would overlap.
const APART: f64 = 19.0;

/// `A` to `Z`, then `A2` to `Z2`, and so on.
pub fn letter(index: usize) -> String {
    let name = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => name.to_string(),
        round => format!("{name}{}", round + 1),
    }
}

/// The row of each letter, given its place from left to right: the lowest in
/// which it touches no other, or none if all are taken.
pub fn rows(places: &[f64]) -> Vec<Option<usize>> {
    let mut last = [f64::NEG_INFINITY; ROWS];
    let row = |place: &f64| {
        let found = last
            .iter_mut()
            .enumerate()
            .find(|(_, last)| place - **last >= APART);
        found.map(|(row, last)| {
            *last = *place;
            row
        })
    };
    places.iter().map(row).collect()
}
