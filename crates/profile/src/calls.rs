//! Calls to Java methods whose memory use does not show up as allocations: starting processes and opening files.
//!
//! async-profiler (4.2 and newer) instruments the methods in its option `trace`, and records each call with its stack.
//! If a class name is the prefix of a traced one, it is traced too (seen in 4.4: `java.io.File`). Older versions print
//! a warning and ignore only this option.

use crate::stack::Frame;

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// It starts a child process.
    StartsProcess,
    /// It opens a file that may be written to.
    OpensFile,
}

/// The traced methods. In `java.base`, every way to start a process or open a file for writing ends in one of them (JDK
/// 11 to 27).
const TRACED: [(&str, &str, Call); 4] = [
    ("java.lang.ProcessBuilder", "start", Call::StartsProcess),
    ("sun.nio.ch.FileChannelImpl", "open", Call::OpensFile),
    ("java.io.RandomAccessFile", "open", Call::OpensFile),
    ("java.io.FileOutputStream", "open", Call::OpensFile),
];

/// Callers that only read: methods of `java.nio.file.Files`.
const READING_METHODS: [&str; 6] =
    ["newInputStream", "newBufferedReader", "readAllBytes", "readAllLines", "readString", "lines"];
/// Classes that only read: the JVM's, and archives from which it loads classes.
const READING_CLASSES: [&str; 3] = ["java.util.zip.ZipFile", "java.lang.ClassLoader", "jdk.internal.loader."];

/// The options that make the profiler trace these methods, each after a comma.
pub(crate) fn trace_words() -> String {
    TRACED.iter().map(|(class, method, _)| format!(",trace={class}.{method}")).collect()
}

/// The purpose of a recorded call, from its stack with the innermost frame first. `None` for an untraced method, a file
/// that is only read, and the inner one of two recorded calls that start the same process.
pub(crate) fn call_of<'f>(mut frames: impl Iterator<Item = &'f Frame> + Clone) -> Option<Call> {
    let is_of = |frame: &Frame, class: &str, method: &str| &*frame.class == class && &*frame.method == method;
    let inner = frames.next()?;
    let (class, method, call) = TRACED.into_iter().find(|(class, method, _)| is_of(inner, class, method))?;
    let is_part = frames.clone().next().is_some_and(|outer| is_of(outer, class, method));
    let reads = |frame: &Frame| match &*frame.class {
        "java.nio.file.Files" => READING_METHODS.contains(&&*frame.method),
        class => READING_CLASSES.iter().any(|reader| class.starts_with(reader)),
    };
    let is_read = call == Call::OpensFile && frames.any(reads);
    (!is_part && !is_read).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::tests::frames;

    #[track_caller]
    fn check(stack: &str, expect: Option<Call>) {
        assert_eq!(call_of(frames(stack).iter()), expect, "{stack}");
    }

    #[test]
    fn a_process_started_in_any_way_counts_once() {
        check("java.lang.ProcessBuilder.start:1073 Ocr.main:18", Some(Call::StartsProcess));
        check("java.lang.ProcessBuilder.start:1110 java.lang.ProcessBuilder.start:1073 Ocr.main:18", None);
        let pipeline = "java.lang.ProcessBuilder.start:1110 java.lang.ProcessBuilder.startPipeline:1300 Ocr.main:18";
        check(pipeline, Some(Call::StartsProcess));
        check("java.lang.ProcessBuilder.environment:1 Ocr.main:18", None);
        check("", None);
    }

    #[test]
    fn calls_that_open_files_only_for_reading_are_ignored() {
        let opened = "sun.nio.ch.FileChannelImpl.open:154 sun.nio.fs.UnixChannelFactory.newFileChannel:134";
        check(&format!("{opened} java.nio.channels.FileChannel.open:298 Uploads.spool:24"), Some(Call::OpensFile));
        check(&format!("{opened} java.nio.file.Files.newOutputStream:227 Uploads.spool:24"), Some(Call::OpensFile));
        check(&format!("{opened} java.nio.file.Files.newByteChannel:380 java.nio.file.Files.lines:1 A.a:1"), None);
        check("java.io.RandomAccessFile.open:345 java.util.zip.ZipFile$Source.<init>:1 A.a:1", None);
        check("java.io.File.<init>:282 A.a:1", None);
    }
}
