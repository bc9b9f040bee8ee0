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

impl StackTraces {
    /// Recognizes stack traces in the form of `Throwable.printStackTrace` (JDK 8 to 27), line by line. `before` is the
    /// previous line, if any.
    pub(super) fn take_line(&mut self, line: &[u8], before: Option<&[u8]>) {
        let begins = |before: &&[u8]| line.trim_ascii_start().starts_with(b"at ") && is_part(line) && !is_part(before);
        let Some(before) = before.filter(begins) else { return };
        self.count += 1;
        if self.first.is_empty() {
            self.first = clipped(readable(before).trim(), FIRST_CHARACTERS_MAX);
        }
    }
}

/// `at shop.Cart.add(Cart.java:12)`, `... 23 more`, `Caused by: …`, `Suppressed: …`.
fn is_part(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
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
        let (mut seen, mut before) = (StackTraces::default(), None);
        for line in text.lines().map(str::as_bytes) {
            seen.take_line(line, before.replace(line));
        }
        seen
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
