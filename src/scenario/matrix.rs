//! A matrix of configurations: every combination of its axes, less what is excluded.

use super::{Configuration, Gc, Jdk, Nmt};
use crate::error::{Error, Result};
use crate::units::Bytes;
use serde::Deserialize;

/// The axes as written; an empty axis leaves its value to the JVM.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Matrix {
    gc: Vec<String>,
    heap: Vec<Bytes>,
    /// Releases, folders, or `found`: every JDK of release 17 or newer that is on the machine.
    jdk: Vec<String>,
    limit: Vec<Bytes>,
    nmt: Vec<String>,
    exclude: Vec<Cell>,
}

/// Cells to leave out: all that match every value given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Cell {
    gc: Option<String>,
    heap: Option<Bytes>,
    jdk: Option<String>,
    limit: Option<Bytes>,
    nmt: Option<String>,
}

/// The oldest release `found` stands for: what Loadline itself asks of a machine.
const RELEASE_FOUND_MIN: u32 = 17;
/// More configurations than anyone compares.
const CONFIGURATIONS_MAX: usize = 1000;

impl Matrix {
    /// Every combination not excluded, the first axis slowest. A name is made of the axes that vary.
    pub(super) fn expand(&self, found: &[u32]) -> Result<Vec<Configuration>> {
        let gcs = parsed::<Gc>(&self.gc)?;
        let jdks = self.jdks(found)?;
        let nmts = parsed::<Nmt>(&self.nmt)?;
        let mut cells = vec![(Vec::<String>::new(), Configuration::default())];
        vary(&mut cells, &gcs, |c, &gc| c.gc = Some(gc), |gc| gc.word().to_owned())?;
        vary(&mut cells, &self.heap, |c, &heap| c.heap = Some(heap), |heap| heap.java())?;
        vary(&mut cells, &jdks, |c, jdk| c.jdk = Some(jdk.clone()), jdk_name)?;
        vary(&mut cells, &self.limit, |c, &limit| c.limit = Some(limit), |limit| format!("limit-{}", limit.java()))?;
        vary(&mut cells, &nmts, |c, &nmt| c.nmt = nmt, |nmt| format!("nmt-{nmt:?}").to_lowercase())?;
        let excluded = self.exclude.iter().map(Cell::resolve).collect::<Result<Vec<_>>>()?;
        let kept = cells.into_iter().filter(|(_, c)| !excluded.iter().any(|cell| cell.matches(c)));
        Ok(kept.map(named).collect())
    }

    fn jdks(&self, found: &[u32]) -> Result<Vec<Jdk>> {
        let mut jdks = Vec::new();
        for word in &self.jdk {
            if word != "found" {
                jdks.push(word.parse().map_err(Error::request)?);
                continue;
            }
            jdks.extend(found.iter().filter(|&&release| release >= RELEASE_FOUND_MIN).map(|&r| Jdk::Release(r)));
            if jdks.is_empty() {
                return Err(Error::machine(format!("no JDK of release {RELEASE_FOUND_MIN} or newer was found"))
                    .hint("install one, or see `loadline doctor`"));
            }
        }
        jdks.dedup();
        Ok(jdks)
    }
}

fn parsed<T: std::str::FromStr<Err = String>>(words: &[String]) -> Result<Vec<T>> {
    words.iter().map(|word| word.parse().map_err(Error::request)).collect()
}

fn jdk_name(jdk: &Jdk) -> String {
    match jdk {
        Jdk::Release(release) => format!("jdk{release}"),
        Jdk::Home(home) => home.file_name().unwrap_or(home.as_os_str()).to_string_lossy().into_owned(),
    }
}

fn named((parts, configuration): (Vec<String>, Configuration)) -> Configuration {
    let name = if parts.is_empty() { "default".to_owned() } else { parts.join("-") };
    Configuration { name, ..configuration }
}

/// Multiplies the cells by one axis. Only an axis with a choice shows in the names.
fn vary<T>(
    cells: &mut Vec<(Vec<String>, Configuration)>,
    axis: &[T],
    set: impl Fn(&mut Configuration, &T),
    name: impl Fn(&T) -> String,
) -> Result<()> {
    if axis.is_empty() {
        return Ok(());
    }
    if cells.len() * axis.len() > CONFIGURATIONS_MAX {
        return Err(Error::request(format!("the matrix has more than {CONFIGURATIONS_MAX} configurations")));
    }
    let old = std::mem::take(cells);
    for (parts, configuration) in old {
        for value in axis {
            let (mut parts, mut configuration) = (parts.clone(), configuration.clone());
            set(&mut configuration, value);
            if axis.len() > 1 {
                parts.push(name(value));
            }
            cells.push((parts, configuration));
        }
    }
    Ok(())
}

/// An excluded cell with its words read.
struct Excluded {
    gc: Option<Gc>,
    heap: Option<Bytes>,
    jdk: Option<Jdk>,
    limit: Option<Bytes>,
    nmt: Option<Nmt>,
}

impl Cell {
    fn resolve(&self) -> Result<Excluded> {
        Ok(Excluded {
            gc: self.gc.as_deref().map(str::parse).transpose().map_err(Error::request)?,
            heap: self.heap,
            jdk: self.jdk.as_deref().map(str::parse).transpose().map_err(Error::request)?,
            limit: self.limit,
            nmt: self.nmt.as_deref().map(str::parse).transpose().map_err(Error::request)?,
        })
    }
}

impl Excluded {
    fn matches(&self, c: &Configuration) -> bool {
        (self.gc.is_none() || self.gc == c.gc)
            && (self.heap.is_none() || self.heap == c.heap)
            && (self.jdk.is_none() || self.jdk == c.jdk)
            && (self.limit.is_none() || self.limit == c.limit)
            && self.nmt.is_none_or(|nmt| nmt == c.nmt)
    }
}
