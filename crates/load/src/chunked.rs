//! Finds the end of a chunked body (RFC 9112, section 7.1) without storing any of it: `4\r\nWiki\r\n0\r\n\r\n`; skips
//! extensions and trailers. Tested through `response`.

use super::response::HEAD_BYTES_MAX;

/// The position in a chunked body at the end of the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Chunks {
    at: At,
    /// The chunk's size while its digits are read, then its remaining bytes.
    size: u64,
    /// Digits of the size so far; at most 15, which fit 60 bits.
    digits: u8,
    /// Bytes of extensions and trailers, limited like a head.
    spent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    TrailerLine,
    EndLf,
}

/// The result of taking a piece.
pub(super) enum Skipped {
    More,
    Done(usize),
    Broken,
}

impl Chunks {
    /// Passes on the contents and skips the framing; returns how much of the piece is after the body.
    pub(super) fn skip(&mut self, bytes: &[u8], contents: &mut impl FnMut(&[u8])) -> Skipped {
        let mut index = 0;
        while index < bytes.len() {
            if self.at == At::Data {
                let taken = self.size.min((bytes.len() - index) as u64);
                contents(&bytes[index..index + taken as usize]);
                self.size -= taken;
                index += taken as usize;
                if self.size == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            let byte = bytes[index];
            index += 1;
            if self.at == At::EndLf && byte == b'\n' {
                return Skipped::Done(bytes.len() - index);
            }
            match self.step(byte) {
                Some(next) => self.at = next,
                None => return Skipped::Broken,
            }
        }
        Skipped::More
    }

    /// Returns the state after one byte of framing; `None` if the byte is not allowed at this point.
    fn step(&mut self, byte: u8) -> Option<At> {
        match (self.at, byte) {
            (At::Size, b'\r') if self.digits > 0 => Some(At::SizeLf),
            (At::Size, b';' | b' ' | b'\t') if self.digits > 0 => Some(At::Extension),
            (At::Size, _) if self.digits < 15 => {
                self.size = self.size * 16 + u64::from((byte as char).to_digit(16)?);
                self.digits += 1;
                Some(At::Size)
            }
            (At::Extension, b'\r') => Some(At::SizeLf),
            (At::SizeLf, b'\n') if self.size == 0 => Some(At::Trailer),
            (At::SizeLf, b'\n') => Some(At::Data),
            (At::DataCr, b'\r') => Some(At::DataLf),
            (At::DataLf, b'\n') => {
                (self.size, self.digits) = (0, 0);
                Some(At::Size)
            }
            (At::Trailer, b'\r') => Some(At::EndLf),
            (At::TrailerLine, b'\n') => Some(At::Trailer),
            (At::Extension | At::Trailer | At::TrailerLine, _) => {
                self.spent += 1;
                let on = if self.at == At::Extension { At::Extension } else { At::TrailerLine };
                (self.spent as usize <= HEAD_BYTES_MAX).then_some(on)
            }
            _ => None,
        }
    }
}
