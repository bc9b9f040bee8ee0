//! The stacks of a process's threads: stack pointers from `/proc/PID/task/TID/syscall` (man proc_pid_syscall), names
//! from `comm`. Needs permission to trace.

use super::Unavailable;
use super::procfs::{Process, open_below, read_from_start};

/// A thread and its stack pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadStack {
    /// Thread id, as Loadline sees it.
    pub tid: u32,
    /// Stack pointer; `None` for a currently running thread.
    pub pointer: Option<u64>,
}

/// The next-to-last address in `syscall`: `202 0x7f… … 0x7ffc… 0x7f…`, or `-1 0x7ffc… 0x7f…` outside a system call.
/// `running` has none.
pub fn parse_pointer(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace().rev();
    let _program_counter = words.next()?;
    u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()
}

/// The stack pointers of all threads; skips threads that end in the meantime. Fails if no stack pointer can be read.
pub fn pointers(process: &Process) -> Result<Vec<ThreadStack>, Unavailable> {
    let mut stacks = Vec::new();
    let mut refused = None;
    for tid in process.threads()? {
        let read = open_below(process.folder(), &format!("task/{tid}/syscall")).and_then(|file| {
            let mut buffer = [0; 256];
            let text = read_from_start(&file, &mut buffer)?;
            Ok(parse_pointer(&String::from_utf8_lossy(text)))
        });
        match read {
            Ok(pointer) => stacks.push(ThreadStack { tid, pointer }),
            Err(why) => refused = Some(why),
        }
    }
    match refused {
        Some(why) if stacks.is_empty() => Err(Unavailable::io("syscall")(why)),
        _ => Ok(stacks),
    }
}

/// The kernel's name for each thread, at most 15 bytes.
pub fn names(process: &Process) -> Result<Vec<(u32, String)>, Unavailable> {
    let name = |tid: u32| {
        let name = process.text_below(&format!("task/{tid}/comm"), 64).ok()?;
        Some((tid, name.trim_end().to_owned()))
    };
    Ok(process.threads()?.into_iter().filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_the_next_to_last_word() {
        for (text, pointer) in [
            ("202 0x7f 0x80 0x0 0x0 0x0 0x1 0x7ffc1000 0x7f00\n", Some(0x7ffc_1000)),
            ("-1 0x7ffc1000 0x7f00\n", Some(0x7ffc_1000)),
            ("running\n", None),
            ("", None),
        ] {
            assert_eq!(parse_pointer(text), pointer, "{text}");
        }
        let own = Process::open(std::process::id()).unwrap();
        assert!(!pointers(&own).unwrap().is_empty() && !names(&own).unwrap().is_empty());
    }
}
