//! `GC.heap_dump` (JDK 11–27): the JVM writes all reachable objects to a file, after a full collection, with its
//! threads paused. It writes as its own user, in its own directory and mount namespace.
//!
//! ```text
//! Dumping heap to /tmp/app.hprof ...
//! Heap dump file created [2345678 bytes in 0.045 secs]
//! Unable to create /tmp/app.hprof: File exists
//! ```

use super::attach::Attach;
use super::procfs::Process;
use super::{Unavailable, inside};
use std::path::Path;
use std::time::Duration;

const SOURCE: &str = "GC.heap_dump";
/// Enough for 100 GB on a disk that writes 100 MB per second.
const DUMPED_WITHIN: Duration = Duration::from_secs(1000);

/// A heap dump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dumped {
    /// Size of the file.
    pub bytes: u64,
    /// How long writing took, as the JVM reports it.
    pub seconds: f64,
}

/// Makes the JVM write its heap to a new file at this absolute path, as seen by the JVM. Fails if the JVM rejects the
/// path, the file already exists, or the JVM does not write it.
pub fn write(process: &Process, attach: &Attach, path: &Path) -> Result<Dumped, Unavailable> {
    let command = command(path)?;
    if inside::has(process, &path.display().to_string()) {
        return Err(Unavailable::new(SOURCE, format!("{} already exists", path.display())));
    }
    let reply = attach.jcmd_within(&command, DUMPED_WITHIN)?.value;
    parse(&reply)
}

/// The command. Spaces separate its words, except inside quotes.
fn command(path: &Path) -> Result<String, Unavailable> {
    let refuse = |why: &str| Unavailable::new(SOURCE, format!("{}: {why}", path.display()));
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    let text = text.ok_or_else(|| refuse("the JVM does not accept this path"))?;
    if !path.is_absolute() {
        return Err(refuse("the path must be absolute"));
    }
    let quote = ['"', '\''].into_iter().find(|quote| !text.contains(*quote));
    let quote = quote.ok_or_else(|| refuse("the JVM does not accept a path with both kinds of quotes"))?;
    Ok(format!("{SOURCE} {quote}{text}{quote}"))
}

fn parse(reply: &str) -> Result<Dumped, Unavailable> {
    let created = || {
        let (_, rest) = reply.split_once("Heap dump file created [")?;
        let (bytes, rest) = rest.split_once(" bytes in ")?;
        let (seconds, _) = rest.split_once(" secs")?;
        let seconds = seconds.trim().parse().ok().filter(|seconds: &f64| seconds.is_finite())?;
        Some(Dumped { bytes: bytes.parse().ok()?, seconds })
    };
    let why = || reply.lines().last().unwrap_or("the JVM gave no reason").trim().to_owned();
    created().ok_or_else(|| Unavailable::new(SOURCE, why()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_as_one_word() {
        let of = |path: &str| command(Path::new(path)).map_err(|why| why.why);
        assert_eq!(of("/tmp/a b.hprof").unwrap(), "GC.heap_dump \"/tmp/a b.hprof\"");
        assert_eq!(of("/tmp/a\"b").unwrap(), "GC.heap_dump '/tmp/a\"b'");
        for (path, why) in [("a.hprof", "absolute"), ("/a'\"", "quotes"), ("/a\nb", "does not accept this path")] {
            assert!(of(path).unwrap_err().contains(why), "{path}");
        }
    }

    #[test]
    fn replies_have_the_size_or_an_error() {
        let text = "Dumping heap to /tmp/a.hprof ...\nHeap dump file created [2345678 bytes in 0.045 secs]\n";
        assert_eq!(parse(text).unwrap(), Dumped { bytes: 2_345_678, seconds: 0.045 });
        for end in 0..text.len() - 3 {
            assert!(parse(&text[..end]).is_err() || end > 82, "{end}");
        }
        assert!(parse("Heap dump file created [1 bytes in inf secs]").is_err(), "`inf` is not a valid duration");
        let why = parse("Dumping heap to /x ...\nUnable to create /x: Permission denied\n").unwrap_err().why;
        assert_eq!(why, "Unable to create /x: Permission denied");
    }
}
