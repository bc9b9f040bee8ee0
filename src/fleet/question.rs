//! The question about a service as a hash: a line is comparable with the previous one if both answer the same question.

use crate::error::{Error, Result};
use crate::scenario::Scenario;
use ring::digest::{SHA256, digest};

/// SHA-256, in hex, of the command and the target: the scenario as passed on ([`Scenario::seen_from`]) without name,
/// seed, budgets, file hashes, and the limit to confirm. None of these affects the line.
pub fn question(scenario: &Scenario) -> Result<String> {
    let mut asked = Scenario { name: String::new(), seed: 0, budgets: Vec::new(), ..scenario.clone() };
    asked.find.prove = None;
    asked.configurations.iter_mut().for_each(|configuration| configuration.inputs = None);
    let text =
        serde_json::to_string(&asked).map_err(|cause| Error::bug(format!("cannot encode a scenario: {cause}")))?;
    Ok(hex(text.as_bytes()))
}

/// SHA-256 in hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
