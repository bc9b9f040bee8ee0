//! The question asked of a service, as a hash: a line is comparable with the one before if it answers the same one.

use crate::error::{Error, Result};
use crate::scenario::Scenario;
use ring::digest::{SHA256, digest};

/// SHA-256, in hexadecimal digits, of what is run and what must hold: the scenario as it is handed on
/// ([`Scenario::seen_from`]) but for its name, its seed, its budgets, the hash of its files, and the limit that is to
/// be proved, none of which moves the line.
///
/// # Errors
/// `Bug` where the scenario cannot be written down.
pub fn question(scenario: &Scenario) -> Result<String> {
    let mut asked = Scenario { name: String::new(), seed: 0, budgets: Vec::new(), ..scenario.clone() };
    asked.find.prove = None;
    asked.configurations.iter_mut().for_each(|configuration| configuration.inputs = None);
    let text = serde_json::to_string(&asked).map_err(|cause| Error::bug(format!("a scenario has no text: {cause}")))?;
    Ok(hex(text.as_bytes()))
}

/// SHA-256 in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
