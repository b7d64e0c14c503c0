use super::*;

fn slot(mark: u64) -> Slot {
    Slot {
        recipient: mark,
        stand: Stand::Held,
        ..Slot::default()
    }
}

#[test]
fn a_slot_is_small() {
    assert_eq!(size_of::<Slot>(), 64);
}

#[test]
fn a_stuck_message_pins_little() {
    let mut slots = Slots::default();
    let all = 1..=5 * CHUNK;
    for seq in all.clone() {
        slots.insert(Seq(seq), slot(seq));
    }
    let stays = |seq: u64| seq % 1_000 == 1;
    for seq in all.clone().filter(|seq| !stays(*seq)) {
        assert_eq!(slots.remove(Seq(seq)).map(|it| it.recipient), Some(seq));
    }
    let sparse = slots.chunks_from(0).map(|(_, chunk)| chunk);
    let sparse = sparse.filter(|chunk| matches!(chunk, Chunk::Sparse(_)));
    assert_eq!(
        sparse.count(),
        5,
        "all chunks but the current one are arrays"
    );
    for seq in all.clone() {
        let found = slots.get(Seq(seq)).map(|it| it.recipient);
        assert_eq!(found, stays(seq).then_some(seq));
    }
    let left: Vec<u64> = slots.iter(Seq(500)).map(|(seq, _)| seq.0).collect();
    let expected: Vec<u64> = all.filter(|seq| *seq >= 500 && stays(*seq)).collect();
    assert_eq!(left, expected, "in order, from where one wants");
}

#[test]
fn copies_of_old_messages_fill_a_chunk() {
    let mut slots = Slots::default();
    slots.insert(Seq(100 * CHUNK), slot(0));
    for seq in (1..CHUNK).rev() {
        slots.insert(Seq(seq), slot(seq));
    }
    assert!((1..CHUNK).all(|seq| slots.get(Seq(seq)).is_some_and(|it| it.recipient == seq)));
    assert_eq!(slots.len() as u64, CHUNK);
}

#[test]
fn the_low_half_names_a_living_message() {
    let mut slots = Slots::default();
    let (old, new) = (Seq(7), Seq((3 << 32) + 9));
    slots.insert(old, slot(1));
    slots.insert(new, slot(2));
    assert_eq!(slots.find_low(7), Some(old), "however far behind");
    assert_eq!(slots.find_low(9), Some(new));
    assert_eq!(slots.find_low(8), None);
}

#[test]
fn times_round_up_and_never_is_never() {
    let noon: i64 = 1_800_000_000_000_000_000;
    let near = |nanos| Wall(noon + nanos);
    assert_eq!(Stamp::of(near(1)).wall(), near(10_000));
    assert_eq!(Stamp::floor(near(19_999)).wall(), near(10_000));
    assert_eq!(Stamp::floor(near(10_000)).wall(), near(10_000));
    assert_eq!(Stamp::of(Wall::NEVER).wall(), Wall::NEVER);
}
