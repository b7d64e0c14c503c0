//! A segment of the journal, damaged: once as it is, and once with checks that
//! hold again, so that what they guard is tried as well.

use outflow_store_embedded::{read_segment, reseal_segment};

pub fn run(bytes: &[u8]) {
    read(bytes);
    let mut sealed = bytes.to_vec();
    reseal_segment(&mut sealed);
    read(&sealed);
}

fn read(bytes: &[u8]) {
    let Ok((_, report)) = read_segment(bytes) else {
        return;
    };
    assert!(report.entries <= report.frames);
    // The last frame may end with padding that the file no longer has.
    assert!(report.end <= bytes.len().next_multiple_of(8) as u64);
}
