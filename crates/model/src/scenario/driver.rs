//! A program that drives the load instead of the engine: its command line with placeholders.

use super::Driver;
use crate::error::{Error, Result};

/// The placeholders allowed in a driver's command line.
const PLACEHOLDERS: [&str; 3] = ["url", "host", "port"];

impl Driver {
    /// The command line with the subject's address inserted; `url` has no path. Other braces stay unchanged.
    pub fn line(&self, url: &str, host: &str, port: u16) -> String {
        self.command.replace("{url}", url).replace("{host}", host).replace("{port}", &port.to_string())
    }

    /// Checks that there is a command, and no misspelled placeholder.
    pub(super) fn validate(&self) -> Result<()> {
        if self.command.trim().is_empty() {
            return Err(Error::request("the driver has no command"));
        }
        for (at, _) in self.command.match_indices('{').filter(|(at, _)| !self.command[..*at].ends_with('$')) {
            let Some((name, _)) = self.command[at + 1..].split_once('}') else { continue };
            let meant = PLACEHOLDERS.iter().find(|known| strsim::damerau_levenshtein(known, name) == 1);
            if let (Some(meant), false) = (meant, PLACEHOLDERS.contains(&name)) {
                return Err(Error::request(format!("unknown placeholder `{{{name}}}` in the driver's command"))
                    .hint(format!("did you mean `{{{meant}}}`?")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    fn driver(command: &str) -> Driver {
        Driver { command: command.to_owned(), dir: None, within: Span::seconds(1) }
    }

    #[test]
    fn driver_placeholders_are_replaced_and_other_braces_kept() {
        let driver = driver("wrk {url}/hello | awk '{print $1}'; nc {host} {port} ${HOME}");
        assert_eq!(
            driver.line("http://[::1]:81", "::1", 81),
            "wrk http://[::1]:81/hello | awk '{print $1}'; nc ::1 81 ${HOME}"
        );
        driver.validate().unwrap();
    }

    #[test]
    fn a_typo_in_a_driver_placeholder_is_rejected() {
        let error = driver("wrk {ulr}/hello").validate().unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `{url}`?"));
        assert!(driver(" \n").validate().is_err());
        assert!(driver("echo ${prt} {} {a,b} {").validate().is_ok());
    }
}
