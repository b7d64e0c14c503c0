//! Letters and digits that survive a mail system which changes their case.

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Five bits to a letter, without padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            push(&mut text, held >> bits);
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        push(&mut text, held << (5 - bits));
    }
    text
}

fn push(text: &mut String, value: u32) {
    let letter = ALPHABET.get((value & 31) as usize).copied();
    text.extend(letter.map(char::from));
}

/// The bytes again; nothing if a letter is none of ours or bits are left over.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for letter in text.bytes() {
        let value = match letter.to_ascii_lowercase() {
            letter @ b'a'..=b'z' => letter - b'a',
            letter @ b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        held = held << 5 | u32::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    // One text for each row of bytes: what is left over must be nothing.
    (bits < 5 && held == 0).then_some(bytes)
}
