//! A plan as text: JSON lines, a header and an entry a line, sealed by the hash of its entries.

use super::question::hex;
use crate::error::{Error, Result};
use crate::record::{FLEET_PLAN_SCHEMA, PlanEntry, PlanHeader};

/// What is to be done on nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What names it.
    pub header: PlanHeader,
    /// By their index, from 0.
    pub entries: Vec<PlanEntry>,
}

impl Plan {
    /// A plan of these entries, which are numbered here, made at `made` (UTC, ISO 8601).
    ///
    /// # Errors
    /// `Request` where there is nothing to do; `Bug` where an entry cannot be written down.
    pub fn new(name: &str, made: String, mut entries: Vec<PlanEntry>) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::request("a plan without an entry").hint("name at least one service"));
        }
        (0..).zip(&mut entries).for_each(|(index, entry)| entry.index = index);
        let header = PlanHeader {
            schema: FLEET_PLAN_SCHEMA.to_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            name: name.to_owned(),
            made,
            entries: entries.len() as u32,
            hash: hex(lines(&entries)?.as_bytes()),
        };
        Ok(Self { header, entries })
    }

    /// The text of its file.
    ///
    /// # Errors
    /// `Bug` where it cannot be written down.
    pub fn text(&self) -> Result<String> {
        Ok(line(&self.header)? + &lines(&self.entries)?)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// `Request` where it is no plan, one of another version, cut short, or edited.
    pub fn parse(text: &str) -> Result<Self> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let header: serde_json::Value = serde_json::from_str(first).map_err(|cause| no_plan(&cause))?;
        match header["schema"].as_str() {
            Some(FLEET_PLAN_SCHEMA) => {}
            Some(other) => {
                return Err(Error::request(format!(
                    "this is `{other}`, and a plan of this Loadline is `{FLEET_PLAN_SCHEMA}`"
                ))
                .hint("make the plan anew with the Loadline that works on it"));
            }
            None => return Err(Error::request("the first line has no `schema`").hint(MAKES)),
        }
        let header: PlanHeader = serde_json::from_value(header).map_err(|cause| no_plan(&cause))?;
        let found = rest.lines().count();
        if found != header.entries as usize || !rest.ends_with('\n') {
            return Err(Error::request(format!("the plan has {} entries, and {found} lines follow", header.entries))
                .hint("it was cut short or edited; make it anew"));
        }
        if hex(rest.as_bytes()) != header.hash {
            return Err(Error::request("the entries of the plan are not those that its hash was made of")
                .hint("a plan is not edited: change what it is made from, and make it anew"));
        }
        let entry = |(at, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|cause| no_plan(&cause).at(format!("line {}", at + 2)))
        };
        let entries: Vec<PlanEntry> = rest.lines().enumerate().map(entry).collect::<Result<_>>()?;
        match (0..).zip(&entries).find(|(at, entry)| entry.index != *at) {
            Some((at, entry)) => {
                Err(Error::request(format!("entry {at} of the plan says that it is {}", entry.index)).hint(MAKES))
            }
            None => Ok(Self { header, entries }),
        }
    }

    /// One entry.
    ///
    /// # Errors
    /// `Request` where the plan has no such index.
    pub fn entry(&self, index: u32) -> Result<&PlanEntry> {
        self.entries.get(index as usize).ok_or_else(|| {
            let last = self.entries.len().saturating_sub(1);
            Error::request(format!("the plan has no entry {index}")).hint(format!("its indexes are 0 to {last}"))
        })
    }
}

const MAKES: &str = "`loadline plan` makes one";

fn no_plan(cause: &serde_json::Error) -> Error {
    Error::request(format!("this is no plan: {cause}")).hint(MAKES)
}

fn lines(entries: &[PlanEntry]) -> Result<String> {
    entries.iter().map(line).collect()
}

fn line<T: serde::Serialize>(value: &T) -> Result<String> {
    let text = serde_json::to_string(value).map_err(|cause| Error::bug(format!("a plan has no text: {cause}")))?;
    Ok(text + "\n")
}
