//! A terminal in raw mode: reads single keys and the size, and restores the terminal on every exit. Respects job
//! control: a stopped or background job draws nothing and reads no key.

use super::session::flagged;
use crate::error::Result;
use crate::report::{Glyphs, Screen, Size};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The state to restore while the terminal is in use.
static TAKEN: Mutex<Option<SavedTerminal>> = Mutex::new(None);

/// A terminal in use; without modes if keys come from elsewhere.
struct SavedTerminal {
    usual: Option<Termios>,
}

/// The size of a terminal that does not report one.
const USUAL: Size = Size { columns: 80, lines: 24 };
/// Bytes of keys per read.
const KEYS: usize = 256;

/// The terminal of stdout while it is in use.
#[derive(Debug)]
pub(super) struct Console {
    /// Whether stdin is a terminal too.
    pub(super) keys: bool,
    stop: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
    drawing: bool,
}

/// Terminal input since the last call.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub(super) bytes: Vec<u8>,
    /// Whether everything must be redrawn.
    pub(super) spoilt: bool,
}

impl Console {
    /// Opens the terminal of stdout. Returns `None` if stdout is not a terminal, is a dumb one, or belongs to another
    /// job. Fails if signals cannot be handled.
    pub(super) fn open() -> Result<Option<Self>> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if dumb || !isatty(stdout()) || !in_front() {
            return Ok(None);
        }
        let mut console = Self {
            keys: isatty(stdin()),
            stop: flagged(&[SIGTSTP], false)?,
            goes_on: flagged(&[SIGCONT], false)?,
            resized: flagged(&[SIGWINCH], false)?,
            drawing: false,
        };
        console.enter();
        Ok(Some(console))
    }

    /// The current size.
    pub(super) fn size() -> Size {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), lines: size.ws_row.into() }
            }
            _ => USUAL,
        }
    }

    /// Whether drawing is currently allowed.
    pub(super) fn draws(&self) -> bool {
        self.drawing
    }

    /// Keys since the last call. Handles a stop from the keyboard, and returns when the job continues.
    pub(super) fn came(&mut self) -> Came {
        let mut came = Came { spoilt: self.resized.swap(false, Ordering::Relaxed), ..Came::default() };
        if self.stop.swap(false, Ordering::Relaxed) {
            leave();
            self.drawing = false;
            // If that fails, the job continues, which the user sees.
            let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
            self.goes_on.store(true, Ordering::Relaxed);
        }
        // The shell may have changed the modes.
        if self.goes_on.swap(false, Ordering::Relaxed) && self.drawing {
            leave();
            self.drawing = false;
        }
        if !self.drawing {
            self.enter();
            came.spoilt |= self.drawing;
        }
        if self.keys && self.drawing && in_front() {
            let mut bytes = [0; KEYS];
            match rustix::io::read(stdin(), &mut bytes) {
                Ok(read) => came.bytes.extend_from_slice(&bytes[..read]),
                // A disconnected terminal sends SIGHUP. If the keyboard is unreadable, continue without keys.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => self.keys = false,
            }
        }
        came
    }

    /// Takes over the terminal if the job is in the foreground.
    fn enter(&mut self) {
        if !in_front() {
            return;
        }
        let usual = if self.keys { tcgetattr(stdin()).ok() } else { None };
        if let Some(usual) = &usual {
            let mut modes = usual.clone();
            // Keyboard signals stay enabled: Ctrl-C ends, Ctrl-Z stops.
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            if tcsetattr(stdin(), OptionalActions::Now, &modes).is_err() {
                self.keys = false;
            }
        }
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(SavedTerminal { usual });
        Screen::enter();
        self.drawing = true;
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal if it is in use; also before a panic message.
pub(super) fn leave() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(taken) = taken else { return };
    // Doing this in the background would stop the job, and the shell has set its own modes. A terminal that accepts no
    // output still accepts mode changes.
    if let Some(usual) = taken.usual.filter(|_| in_front()) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &usual);
    }
    Screen::leave();
}

/// Whether this job is in the foreground; true without job control.
fn in_front() -> bool {
    let of = |terminal: rustix::fd::BorrowedFd<'_>| tcgetpgrp(terminal).map_or(true, |front| front == getpgrp());
    of(stdout().as_fd()) && (!isatty(stdin()) || of(stdin().as_fd()))
}

/// The glyphs for plots, according to the locale variables (POSIX: the first one that is set).
pub(super) fn glyphs() -> Glyphs {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") { Glyphs::Blocks } else { Glyphs::Ascii }
}
