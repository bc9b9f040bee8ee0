//! Parses and executes the command line, and maps the outcome to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Nothing may precede this, because a guardian or launcher must stay small.
    if let Some(code) = loadline::subject::guardian::main(arguments.get(1).and_then(|word| word.to_str())) {
        return ExitCode::from(code as u8);
    }
    loadline::cli::main(arguments)
}
