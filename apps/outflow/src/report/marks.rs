//! The letters of changes. Where several lie too close to be told apart they
//! share a mark, as in B–F.

/// `A` to `Z`, then `A2` to `Z2`, and so on.
pub fn letter(index: usize) -> String {
    let name = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => name.to_string(),
        round => format!("{name}{}", round + 1),
    }
}

/// Letters that share a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// The number of the first.
    pub first: usize,
    /// The number of the last.
    pub last: usize,
    /// Where it lies.
    pub x: f64,
}

impl Mark {
    /// `A`, or the first and the last of several.
    pub fn text(&self) -> String {
        match self.first == self.last {
            true => letter(self.first),
            false => format!("{}\u{2013}{}", letter(self.first), letter(self.last)),
        }
    }

    /// How wide it is drawn.
    pub fn width(&self) -> f64 {
        11.0 + 8.0 * self.text().chars().count() as f64
    }
}

/// The marks of letters at these places, from left to right. None touches the
/// next.
pub fn marks(places: &[(usize, f64)]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for &(index, x) in places {
        let mark = Mark {
            first: index,
            last: index,
            x,
        };
        match marks.last_mut() {
            Some(last) if x - last.x < (last.width() + mark.width()) / 2.0 + 2.0 => {
                last.last = index;
            }
            _ => marks.push(mark),
        }
    }
    marks
}
