//! How a start reads segments whole: one after the other, or the next one while
//! this one is replayed. A store that is stepped has no threads, so that all it
//! does comes in an order that its caller decides.

use std::io;
use std::sync::mpsc::sync_channel;

use crate::disk::read_range;
use crate::recovery::{JournalError, Opened};

/// Segments in memory that are not replayed yet.
const READ_AHEAD: usize = 1;

/// Who reads the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// A thread, while this one is replayed.
    ByThread,
    /// Whoever replays, when it comes to it.
    Never,
}

/// Where a segment ends, if another one follows it, and all of it up to there.
type Whole = (Option<u64>, io::Result<Vec<u8>>);

fn whole<'a>(segments: &'a [Opened]) -> impl Iterator<Item = Whole> + 'a {
    let following = segments.iter().skip(1).map(Some).chain([None]);
    segments.iter().zip(following).map(|(segment, next)| {
        let end = next.map(|next| next.header.before_end);
        let bytes = read_range(&*segment.file, 0, end.unwrap_or(segment.bytes));
        (end, bytes)
    })
}

/// Has each segment replayed, oldest first, until one cannot be.
pub(crate) fn each_whole(
    segments: &[Opened],
    ahead: Ahead,
    mut replay: impl FnMut(&Opened, Option<u64>, io::Result<Vec<u8>>) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let mut each = |(segment, (end, bytes)): (&Opened, Whole)| replay(segment, end, bytes);
    if ahead == Ahead::Never {
        return segments.iter().zip(whole(segments)).try_for_each(each);
    }
    std::thread::scope(|scope| {
        let (sender, read) = sync_channel(READ_AHEAD);
        scope.spawn(move || {
            for read in whole(segments) {
                if sender.send(read).is_err() {
                    break;
                }
            }
        });
        segments.iter().zip(read).try_for_each(&mut each)
    })
}
