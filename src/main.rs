//! Parses, calls, maps the outcome to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A guardian or launcher must stay small: nothing comes before this.
    let first_argument = std::env::args_os().nth(1);
    if let Some(code) = loadline::subject::guardian::main(first_argument.as_deref().and_then(|word| word.to_str())) {
        return ExitCode::from(code as u8);
    }
    ExitCode::SUCCESS
}
