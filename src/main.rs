//! Parses, calls, maps the outcome to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // A guardian or launcher must stay small: nothing comes before this.
    if let Some(code) = loadline::subject::guardian::main(arguments.get(1).and_then(|word| word.to_str())) {
        return ExitCode::from(code as u8);
    }
    loadline::cli::main(arguments)
}
