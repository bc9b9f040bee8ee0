//! Counts the stack traces in a server's output.

use super::output::readable;
use crate::units::clipped;

/// Characters kept of the line above the first stack trace.
const FIRST_CHARACTERS_MAX: usize = 120;

/// The stack traces seen so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackTraces {
    /// Their number. A cause or suppressed exception belongs to the trace that contains it.
    pub count: u64,
    /// The line above the first one, which names the exception.
    pub first: String,
}

/// Recognizes stack traces in the form of `Throwable.printStackTrace` (JDK 8 to 27), line by line.
#[derive(Debug, Default)]
pub(super) struct StackTraceReader {
    pub(super) seen: StackTraces,
    /// The previous line, unless it is part of a stack trace.
    before: Option<Vec<u8>>,
}

impl StackTraceReader {
    pub(super) fn take_line(&mut self, line: &[u8]) {
        let text = line.trim_ascii_start();
        if is_part(text) {
            if let Some(before) = self.before.take().filter(|_| text.starts_with(b"at ")) {
                self.seen.count += 1;
                if self.seen.first.is_empty() {
                    self.seen.first = clipped(readable(&before).trim(), FIRST_CHARACTERS_MAX);
                }
            }
            return;
        }
        // The buffer is reused, because servers print many lines.
        let mut before = self.before.take().unwrap_or_default();
        before.clear();
        before.extend_from_slice(line);
        self.before = Some(before);
    }
}

/// `at shop.Cart.add(Cart.java:12)`, `... 23 more`, `Caused by: …`, `Suppressed: …`, without indentation.
fn is_part(text: &[u8]) -> bool {
    // The name of a method contains no space.
    let name = text.strip_prefix(b"at ").and_then(|frame| frame.split(|&byte| byte == b'(').next());
    let is_frame = name.is_some_and(|name| name.len() + 3 < text.len() && !name.contains(&b' '));
    let is_more = text.starts_with(b"... ") && text.ends_with(b" more");
    is_frame || is_more || text.starts_with(b"Caused by: ") || text.starts_with(b"Suppressed: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> StackTraces {
        let mut reader = StackTraceReader::default();
        text.lines().for_each(|line| reader.take_line(line.as_bytes()));
        reader.seen
    }

    #[test]
    fn a_stack_trace_counts_once_with_its_causes() {
        let trace = "12:00 WARN cannot export\njava.io.IOException: refused\n\tat a.B.c(B.java:1)\n\
                     \tat a.B.d(B.java:2)\n\tSuppressed: java.lang.Error: x\n\t\tat a.B.e(B.java:3)\n\
                     Caused by: java.net.ConnectException: no\n\tat a.B.f(B.java:4)\n\t... 23 more\n";
        assert_eq!(seen(trace), StackTraces { count: 1, first: "java.io.IOException: refused".to_owned() });
        let bare = "java.lang.Error: y\n\tat a.B.c(Native Method)\n";
        assert_eq!(seen(&format!("{trace}{bare}12:01 INFO ok\n{trace}")).count, 3);
    }

    #[test]
    fn other_lines_are_not_stack_traces() {
        let text = "listening\nat 12:00 (UTC) all is well\n  at home\n... and more\nready\nCaused by: chance\n";
        assert_eq!(seen(text), StackTraces::default());
        assert_eq!(seen("at a.B.c(B.java:1)\n"), StackTraces::default(), "it has no exception");
        assert_eq!(seen(&"at a.B.c(B.java:1)\n".repeat(9)).count, 0);
    }
}
