//! Splits a stream of bytes into lines of bounded length.

/// Longer lines are truncated.
const LINE_BYTES_MAX: usize = 4096;
/// Marks a truncated line.
const CUT: &[u8] = "…".as_bytes();

/// An incomplete line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Passes each line that ends in `bytes` to `give`, without its newline.
    pub(super) fn split(&mut self, bytes: &[u8], mut give: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            match piece.split_last() {
                Some((b'\n', line)) if self.begun.is_empty() && line.len() <= LINE_BYTES_MAX => give(line),
                Some((b'\n', line)) => {
                    self.begin(line);
                    give(&self.begun);
                    self.begun.clear();
                }
                _ => self.begin(piece),
            }
        }
    }

    /// Passes the last line if the stream ends without a newline.
    pub(super) fn finish(&mut self, mut give: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            give(&self.begun);
            self.begun.clear();
        }
    }

    fn begin(&mut self, piece: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.begun.len());
        if piece.len() <= room {
            self.begun.extend_from_slice(piece);
        } else if self.begun.len() <= LINE_BYTES_MAX {
            self.begun.extend_from_slice(&piece[..room]);
            self.begun.extend_from_slice(CUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.split(piece, |line| found.push(line.to_vec()));
        }
        lines.finish(|line| found.push(line.to_vec()));
        found
    }

    #[test]
    fn lines_do_not_depend_on_read_sizes() {
        let text = b"one\n\nthree\nfour";
        let whole = lines(&[text]);
        assert_eq!(whole, [&b"one"[..], b"", b"three", b"four"]);
        for cut in 0..text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
        assert!(lines(&[]).is_empty());
    }

    #[test]
    fn a_huge_line_is_truncated_once() {
        let huge = vec![b'x'; 3 * LINE_BYTES_MAX];
        for pieces in [vec![&huge[..]], huge.chunks(1000).collect(), vec![&huge[..], b"yy\n", b"z"]] {
            let found = lines(&pieces);
            assert_eq!(found[0].len(), LINE_BYTES_MAX + CUT.len());
            assert!(found[0].ends_with(CUT));
        }
        let exact = [&vec![b'x'; LINE_BYTES_MAX][..], b"\n"].concat();
        assert_eq!(lines(&[&exact])[0].len(), LINE_BYTES_MAX);
    }
}
