//! `loadline --generate`: the manual page and shell completions, from the same options table as the help, and the
//! scenario schema.

use super::args::{Args, Generate};
use super::exit::{self, Code};
use super::init::SCENARIO_SCHEMA;
use crate::error::{Error, Result};
use crate::report;
use clap::{Command, CommandFactory};
use clap_complete::Generator;
use clap_complete::shells::{Bash, Fish, Zsh};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;

/// The start of definitions that roff prepends to each part of a page.
const PREAMBLE: [&str; 2] = [".ie \\n(.g", ".el .ds"];

/// Prints the output. Errors: `Machine` if writing to stdout fails.
pub(super) fn generate(what: Generate) -> Result<Code> {
    let text = match what {
        Generate::Man => manual().map_err(|cause| Error::bug(cause.to_string()))?,
        Generate::CompleteBash => completions(Bash),
        Generate::CompleteZsh => completions(Zsh),
        Generate::CompleteFish => completions(Fish),
        Generate::ScenarioSchema => SCENARIO_SCHEMA.to_owned(),
    };
    report::print(&text)?;
    Ok(Code::Yes)
}

fn completions(shell: impl Generator) -> String {
    let mut command = Args::command();
    let mut out = Vec::new();
    clap_complete::aot::generate(shell, &mut command, "loadline", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A single page for the program, with a section per verb.
fn manual() -> io::Result<String> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let man = Man::new(command.clone()).manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    let mut verbs = Roff::new();
    verbs.control("SH", ["VERBS"]);
    for verb in command.get_subcommands() {
        verbs.control("TP", []);
        verbs.text([bold(verb.get_name())]);
        verbs.text([about(verb)]);
    }
    verbs.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    as_written("EXAMPLES", &command, &mut page)?;
    for verb in command.get_subcommands() {
        page.extend(of_verb(verb)?);
    }
    let mut codes = Roff::new();
    codes.control("SH", ["EXIT STATUS"]);
    verbatim(&mut codes, exit::HELP.lines().skip(1));
    codes.to_writer(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    let (preamble, text): (Vec<&str>, Vec<&str>) = page.lines().partition(|line| is_preamble(line));
    let preamble = preamble.into_iter().take(PREAMBLE.len());
    Ok(preamble.chain(text).flat_map(|line| [line, "\n"]).collect())
}

/// A verb's page as a section, with its sections as subsections.
fn of_verb(verb: &Command) -> io::Result<Vec<u8>> {
    let mut heading = Roff::new();
    heading.control("SH", [verb.get_bin_name().unwrap_or(verb.get_name()).to_uppercase().as_str()]);
    heading.text([about(verb)]);
    let mut section = Vec::new();
    heading.to_writer(&mut section)?;
    let man = Man::new(verb.clone());
    let mut parts = Vec::new();
    man.render_synopsis_section(&mut parts)?;
    man.render_options_section(&mut parts)?;
    as_written("EXAMPLES", verb, &mut parts)?;
    for line in String::from_utf8_lossy(&parts).lines() {
        let line = line.strip_prefix(".SH ").map_or(line.to_owned(), |part| format!(".SS {part}"));
        section.extend(line.bytes().chain([b'\n']));
    }
    Ok(section)
}

fn is_preamble(line: &str) -> bool {
    PREAMBLE.iter().any(|begins| line.starts_with(begins))
}

fn about(verb: &Command) -> Inline {
    roman(verb.get_about().map(ToString::to_string).unwrap_or_default())
}

/// Writes the text before a command's help, line by line.
fn as_written(title: &str, command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let Some(examples) = command.get_before_help().map(ToString::to_string) else { return Ok(()) };
    let mut section = Roff::new();
    section.control("SH", [title]);
    verbatim(&mut section, examples.lines().skip(1));
    section.to_writer(page)
}

fn verbatim<'a>(section: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    section.control("nf", []);
    for line in lines {
        section.text([roman(line)]);
    }
    section.control("fi", []);
}
