//! Decodes terminal keys: byte sequences of the VT100 family (ECMA-48; xterm's control sequences, `ctlseqs`).
//!
//! ```text
//! ESC [ A   ESC O A   up     ESC [ 5 ~   page up     ESC alone   escape
//! ```

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The previous item.
    Up,
    /// The next item.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// The first item.
    First,
    /// The last item.
    Last,
    /// Shows the selected item in full.
    Open,
    /// Back.
    Close,
    /// Back; in the list, exit.
    Quit,
    /// The next sort order.
    Sort,
    /// Redraw.
    Redraw,
}

/// Incomplete key sequences.
#[derive(Debug, Default)]
pub struct Keys {
    pending: Vec<u8>,
}

/// No key has a longer sequence.
const SEQUENCE_MAX: usize = 16;
const ESCAPE: u8 = 0x1b;

impl Keys {
    /// Decodes these bytes after the pending ones. An escape that is still alone at the next call is the escape key.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        if bytes.is_empty() {
            let alone = self.pending == [ESCAPE];
            self.pending.clear();
            return if alone { vec![Key::Close] } else { Vec::new() };
        }
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut at = 0;
        while let Some((key, length)) = first(&self.pending[at..]) {
            keys.extend(key);
            at += length;
        }
        self.pending.drain(..at);
        if self.pending.len() > SEQUENCE_MAX {
            self.pending.clear();
        }
        keys
    }
}

/// The first key, if these bytes contain a complete one, and its length.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let plain = |byte: u8| match byte {
        b'k' => Some(Key::Up),
        b'j' => Some(Key::Down),
        b'g' => Some(Key::First),
        b'G' => Some(Key::Last),
        b'\r' | b'\n' | b'l' => Some(Key::Open),
        0x7f | 0x08 | b'h' => Some(Key::Close),
        b' ' | 0x06 => Some(Key::PageDown),
        b'b' | 0x02 => Some(Key::PageUp),
        b'q' | b'Q' => Some(Key::Quit),
        b's' => Some(Key::Sort),
        0x0c => Some(Key::Redraw),
        _ => None,
    };
    match bytes {
        [] | [ESCAPE] | [ESCAPE, b'[' | b'O'] => None,
        [ESCAPE, b'[' | b'O', rest @ ..] => {
            // Parameter bytes are lower than final bytes.
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            Some((sequence(&rest[..end], rest[end]), end + 3))
        }
        [ESCAPE, ESCAPE, ..] => Some((Some(Key::Close), 1)),
        // A key pressed with Alt means the same as the key alone.
        [ESCAPE, byte, ..] => Some((plain(*byte), 2)),
        [byte, ..] => Some((plain(*byte), 1)),
    }
}

fn sequence(parameters: &[u8], end: u8) -> Option<Key> {
    match (end, parameters) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C' | b'M', _) => Some(Key::Open),
        (b'D', _) => Some(Key::Close),
        (b'H', _) | (b'~', b"1" | b"7") => Some(Key::First),
        (b'F', _) | (b'~', b"4" | b"8") => Some(Key::Last),
        (b'~', b"5") => Some(Key::PageUp),
        (b'~', b"6") => Some(Key::PageDown),
        // F10, as in mc and htop.
        (b'~', b"21") => Some(Key::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_recognized_even_if_split_between_reads() {
        use Key::{Close, Down, First, Last, Open, PageDown, PageUp, Quit, Sort, Up};
        let text = b"\x1b[A\x1bOBj\r\x1b[5~\x1b[6~\x1b[H\x1b[1;5F\x1b[21~zs\x1b\x1b[Dq";
        let want = [Up, Down, Down, Open, PageUp, PageDown, First, Last, Quit, Sort, Close, Close, Quit];
        assert_eq!(Keys::default().take(text), want);
        for cut in 1..text.len() {
            let mut keys = Keys::default();
            let mut told = keys.take(&text[..cut]);
            told.extend(keys.take(&text[cut..]));
            assert_eq!(told, want, "{cut}");
        }
    }

    #[test]
    fn a_lone_escape_is_a_key_and_noise_is_ignored() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert_eq!(keys.take(b""), [Key::Close]);
        assert_eq!(keys.take(b""), []);
        for _ in 0..1000 {
            assert_eq!(keys.take(b"\x1b[\x01\x01\x01\x01\x01\x01"), []);
            assert!(keys.pending.len() <= SEQUENCE_MAX);
        }
        assert_eq!(Keys::default().take(&[0xff, 0, b'x', 0xc3, 0xa4]), []);
    }
}
