//! The bytes of a recording and the primitive values in them.
//!
//! Format: JFR 2.x of JDK 9 to 27 with compressed integers (`jdk.jfr.internal.parser.RecordingInput`), the only one
//! that async-profiler writes. An integer has 7 bits per byte, lowest first; the ninth byte has 8. A string begins with
//! its encoding:
//!
//! ```text
//! 00 null   01 empty   02 KEY pool   03 LEN UTF-8   04 COUNT chars   05 LEN Latin-1
//! ```

use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Bytes per read.
const BUFFER_BYTES: usize = 64 << 10;
/// async-profiler truncates strings at 8 KiB; a longer one than this is damaged.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// How many more values than bytes an event may have, because values without fields take no bytes.
const FREE_VALUES: u64 = 256;

/// Why bytes are not a recording.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file itself could not be read.
    Io(io::Error),
    /// The bytes contain something that no writer produces.
    Damage(&'static str),
}

pub(crate) type InputResult<T> = Result<T, Fault>;

impl From<io::Error> for Fault {
    fn from(cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damage("the file ends here"),
            _ => Self::Io(cause),
        }
    }
}

/// A string as it is written in an event or a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    /// No string.
    Null,
    /// The string itself.
    Inline(String),
    /// A key into the pool of strings.
    Pooled(u64),
}

pub(crate) trait RecordingFile: Read + Seek {}

impl<R: Read + Seek> RecordingFile for R {}

/// A file with a position and an end that no read passes.
pub(crate) struct Input<'f> {
    from: BufReader<&'f mut dyn RecordingFile>,
    position: u64,
    end: u64,
    /// How many more values may be read before `end`.
    values: u64,
}

impl<'f> Input<'f> {
    /// Starts at the beginning of a file, without an event; returns the file's length.
    pub(crate) fn new(file: &'f mut dyn RecordingFile) -> io::Result<(Self, u64)> {
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        Ok((Self { from: BufReader::with_capacity(BUFFER_BYTES, file), position: 0, end: 0, values: 0 }, len))
    }

    /// Moves to a position from which at most this many bytes are read.
    pub(crate) fn enter(&mut self, position: u64, bytes: u64) -> io::Result<()> {
        // No file is long enough for this to overflow.
        self.from.seek_relative(position.cast_signed() - self.position.cast_signed())?;
        self.position = position;
        self.end = position.saturating_add(bytes);
        self.values = bytes.saturating_add(FREE_VALUES);
        Ok(())
    }

    /// Bytes up to the end of the event.
    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }

    /// Counts one value: otherwise, arrays of types without fields would take no bytes and never end.
    pub(crate) fn step(&mut self) -> InputResult<()> {
        self.values =
            self.values.checked_sub(1).ok_or(Fault::Damage("it declares more values than there are bytes"))?;
        Ok(())
    }

    pub(crate) fn byte(&mut self) -> InputResult<u8> {
        if self.left() == 0 {
            return Err(Fault::Damage("a value extends past its event"));
        }
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        self.position += 1;
        Ok(byte[0])
    }

    /// An integer of 1 to 9 bytes.
    pub(crate) fn integer(&mut self) -> InputResult<u64> {
        let mut value = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Ok(value | u64::from(self.byte()?) << 56)
    }

    /// The number of elements that follow. Each takes at least a byte, so a count above the number of bytes left is
    /// damage.
    pub(crate) fn count(&mut self) -> InputResult<u64> {
        let count = self.integer()?;
        if count > self.left() {
            return Err(Fault::Damage("it declares more elements than there are bytes"));
        }
        Ok(count)
    }

    /// A number in the chunk's header: this many bytes, most significant first.
    pub(crate) fn fixed(&mut self, bytes: usize) -> InputResult<u64> {
        (0..bytes).try_fold(0, |value, _| Ok(value << 8 | u64::from(self.byte()?)))
    }

    pub(crate) fn skip(&mut self, bytes: u64) -> InputResult<()> {
        if bytes > self.left() {
            return Err(Fault::Damage("a value extends past its event"));
        }
        let (end, values) = (self.end, self.values);
        self.enter(self.position + bytes, 0)?;
        (self.end, self.values) = (end, values);
        Ok(())
    }

    pub(crate) fn text(&mut self) -> InputResult<Text> {
        match self.byte()? {
            0 => Ok(Text::Null),
            1 => Ok(Text::Inline(String::new())),
            2 => Ok(Text::Pooled(self.integer()?)),
            3 => Ok(Text::Inline(String::from_utf8_lossy(&self.raw()?).into_owned())),
            4 => {
                let count = self.text_count()?;
                let units: Vec<u16> = (0..count).map(|_| Ok(self.integer()? as u16)).collect::<InputResult<_>>()?;
                Ok(Text::Inline(String::from_utf16_lossy(&units)))
            }
            5 => Ok(Text::Inline(self.raw()?.iter().map(|byte| char::from(*byte)).collect())),
            _ => Err(Fault::Damage("a string has an unknown encoding")),
        }
    }

    /// The number of bytes or characters in the following string.
    fn text_count(&mut self) -> InputResult<u64> {
        match self.count()? {
            count if count > TEXT_BYTES_MAX => Err(Fault::Damage("a string is impossibly long")),
            count => Ok(count),
        }
    }

    fn raw(&mut self) -> InputResult<Vec<u8>> {
        let (count, mut bytes) = (self.text_count()?, Vec::new());
        let read = self.from.by_ref().take(count).read_to_end(&mut bytes)? as u64;
        self.position += read;
        if read == count { Ok(bytes) } else { Err(Fault::Damage("the file ends here")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Returns the result of `read` for these bytes.
    fn of<T>(bytes: &[u8], read: impl FnOnce(&mut Input<'_>) -> T) -> T {
        let mut file = Cursor::new(bytes);
        let (mut input, len) = Input::new(&mut file).unwrap();
        input.enter(0, len).unwrap();
        read(&mut input)
    }

    #[test]
    fn integers_have_one_to_nine_bytes() {
        let cases: &[(&[u8], u64)] = &[
            (&[0], 0),
            (&[0x7f], 127),
            (&[0x80, 1], 128),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], 1 << 63),
        ];
        for (bytes, expect) in cases {
            assert_eq!(of(bytes, |input| input.integer()).unwrap(), *expect);
        }
        assert!(of(&[0x80], |input| input.integer()).is_err());
    }

    #[test]
    fn strings_in_every_encoding_are_read() {
        let text = |bytes: &[u8]| of(bytes, |input| input.text()).unwrap();
        let inline = |text: &str| Text::Inline(text.to_owned());
        assert_eq!(text(&[0]), Text::Null);
        assert_eq!(text(&[1]), inline(""));
        assert_eq!(text(&[2, 9]), Text::Pooled(9));
        assert_eq!(text(&[3, 3, b'a', 0xc3, 0xa4]), inline("aä"));
        assert_eq!(text(&[4, 2, b'a', 0xe4, 1]), inline("aä"));
        assert_eq!(text(&[5, 2, b'a', 0xe4]), inline("aä"));
        assert!(of(&[6, 0], |input| input.text()).is_err());
        assert!(of(&[3, 0xff, 0x7f, b'a'], |input| input.text()).is_err(), "a text longer than its event is rejected");
    }

    #[test]
    fn reads_stay_within_an_event() {
        of(&[1, 2, 3, 4], |input| {
            input.enter(1, 2).unwrap();
            assert_eq!((input.byte().unwrap(), input.byte().unwrap()), (2, 3));
            assert!(input.byte().is_err());
            input.enter(0, 100).unwrap();
            assert!(input.skip(200).is_err());
            input.skip(4).unwrap();
            assert!(input.byte().is_err(), "reading beyond the end of the file fails");
        });
    }
}
