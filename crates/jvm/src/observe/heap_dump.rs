//! `GC.heap_dump` (JDK 11–27): the JVM writes all reachable objects into a file, after a full collection, while its
//! threads are stopped. The file is the JVM's: its own folder, its own mounts, its own user.
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
/// A dump of 100 GB on a disk that takes 100 MB a second.
const DUMPED_WITHIN: Duration = Duration::from_secs(1000);

/// A heap dump that was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dumped {
    /// Size of the file.
    pub bytes: u64,
    /// For how long the JVM wrote, as it says.
    pub seconds: f64,
}

/// Has the JVM write its heap into a new file of this absolute path, as it sees it.
///
/// # Errors
/// Fails if the JVM cannot take the path, the file is there already, or the JVM does not write it.
pub fn write(process: &Process, attach: &Attach, path: &Path) -> Result<Dumped, Unavailable> {
    let command = command(path)?;
    if inside::has(process, &path.display().to_string()) {
        return Err(Unavailable::new(SOURCE, format!("{} is there already, and stays as it is", path.display())));
    }
    let reply = attach.jcmd_within(&command, DUMPED_WITHIN)?.value;
    parse(&reply)
}

/// The command. Blanks separate its words, except between quotes.
fn command(path: &Path) -> Result<String, Unavailable> {
    let refuse = |why: &str| Unavailable::new(SOURCE, format!("{}: {why}", path.display()));
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    let text = text.ok_or_else(|| refuse("the JVM takes no such path"))?;
    if !path.is_absolute() {
        return Err(refuse("the path must be absolute"));
    }
    let quote = ['"', '\''].into_iter().find(|quote| !text.contains(*quote));
    let quote = quote.ok_or_else(|| refuse("the JVM takes no path with both kinds of quotes"))?;
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
    let why = || reply.lines().last().unwrap_or("the JVM says nothing").trim().to_owned();
    created().ok_or_else(|| Unavailable::new(SOURCE, why()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_so_that_it_is_one_word() {
        let of = |path: &str| command(Path::new(path)).map_err(|why| why.why);
        assert_eq!(of("/tmp/a b.hprof").unwrap(), "GC.heap_dump \"/tmp/a b.hprof\"");
        assert_eq!(of("/tmp/a\"b").unwrap(), "GC.heap_dump '/tmp/a\"b'");
        for (path, why) in [("a.hprof", "absolute"), ("/a'\"", "quotes"), ("/a\nb", "no such path")] {
            assert!(of(path).unwrap_err().contains(why), "{path}");
        }
    }

    #[test]
    fn replies_tell_the_size_or_why_there_is_none() {
        let text = "Dumping heap to /tmp/a.hprof ...\nHeap dump file created [2345678 bytes in 0.045 secs]\n";
        assert_eq!(parse(text).unwrap(), Dumped { bytes: 2_345_678, seconds: 0.045 });
        for end in 0..text.len() - 3 {
            assert!(parse(&text[..end]).is_err() || end > 82, "{end}");
        }
        assert!(parse("Heap dump file created [1 bytes in inf secs]").is_err(), "no number of JSON");
        let why = parse("Dumping heap to /x ...\nUnable to create /x: Permission denied\n").unwrap_err().why;
        assert_eq!(why, "Unable to create /x: Permission denied");
    }
}
