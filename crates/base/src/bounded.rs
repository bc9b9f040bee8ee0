//! Reads files written by others: up to a limit, and only regular files unless the user names them. A pipe might never
//! respond, `/dev/zero` never ends, and opening a device may have side effects.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file, or the target of a link to one. Fails if it cannot be opened, or is a directory, a pipe, a
/// socket, or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Avoids opening a device. A second check after opening is needed because the file may be replaced in between.
    plain_file(&std::fs::metadata(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    plain_file(&file.metadata()?)?;
    Ok(file)
}

fn plain_file(about: &Metadata) -> io::Result<()> {
    match about.is_file() {
        true => Ok(()),
        false if about.is_dir() => Err(Errno::ISDIR.into()),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads a regular file of at most `bytes_max` bytes. Errors: as for [`open`] and [`bytes_of`].
pub fn bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    bytes_of(open(path)?, bytes_max)
}

/// Reads a regular file of at most `bytes_max` bytes as text. Errors: as for [`bytes()`], or if the file is not text.
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_from(bytes(path, bytes_max)?)
}

/// Reads at most `bytes_max` bytes from the start of a regular file, as text. Invalid UTF-8 is replaced. Errors: as for
/// [`open`], or if the file cannot be read.
pub fn beginning(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads text from a path given by the user, of at most `bytes_max` bytes: a file, or a pipe such as the shell's
/// `<(command)`. Fails if it cannot be read, has more than `bytes_max` bytes, or is not text.
pub fn text_named(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_from(bytes_of(File::open(path)?, bytes_max)?)
}

/// Reads to the end, at most `bytes_max` bytes. Fails if `from` cannot be read, or contains more.
pub fn bytes_of(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let most = match bytes_max {
            0..1_048_576 => format!("{} KiB", bytes_max >> 10),
            _ => format!("{} MiB", bytes_max >> 20),
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most}")));
    }
    Ok(bytes)
}

fn text_from(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn pipes_devices_and_directories_fail_immediately() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, Path::new("/dev/zero")] {
            let why = bytes(path, 10).unwrap_err().to_string();
            assert_eq!(why, "it is not a regular file", "{}", path.display());
        }
        assert_eq!(bytes(folder.path(), 10).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(bytes(&folder.path().join("none"), 10).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_completely_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "ten bytes.").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!((text(&file, 10).unwrap(), text(&link, 10).unwrap()), ("ten bytes.".into(), "ten bytes.".into()));
        let large = |of: io::Result<String>| of.unwrap_err().to_string();
        assert_eq!(large(text(&file, 9)), "it is larger than 0 KiB");
        assert_eq!(large(text_named(Path::new("/dev/zero"), 3 << 20)), "it is larger than 3 MiB");
        std::fs::write(&file, [0xff; 4]).unwrap();
        assert_eq!(large(text(&file, 10)), "it is not UTF-8 text");
    }
}
