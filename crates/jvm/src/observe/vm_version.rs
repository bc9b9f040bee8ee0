//! Replies to `VM.version` (JDK 11–27). They lack the vendor; see `hsperfdata`'s `java.property.java.vm.vendor`.

use super::Unavailable;

/// The version that a JVM reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmVersion {
    /// `OpenJDK 64-Bit Server VM`, `Java HotSpot(TM) 64-Bit Server VM` …
    pub name: String,
    /// Version of the VM, with build and packager suffix: `17.0.15+6-Debian-1deb12u1`.
    pub version: String,
    /// Version of the JDK: `17.0.15`.
    pub jdk: String,
    /// 11, 17, 21, 25 …
    pub feature: u32,
}

impl VmVersion {
    /// Parses a reply:
    ///
    /// ```text
    /// OpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1
    /// JDK 17.0.15
    /// ```
    pub fn parse(text: &str) -> Result<Self, Unavailable> {
        let parse = || {
            let (name, version) = text.lines().next()?.split_once(" version ")?;
            let jdk = text.lines().find_map(|line| line.strip_prefix("JDK "))?.trim();
            let feature = feature(jdk)?;
            Some(Self { name: name.to_owned(), version: version.trim().to_owned(), jdk: jdk.to_owned(), feature })
        };
        parse().ok_or_else(|| Unavailable::new("VM.version", "the response has an unknown format"))
    }
}

/// The feature version of `17.0.15+6`, `25-ea`, `1.8.0_402`.
pub fn feature(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_versions_are_parsed() {
        for (version, expect) in [("17.0.15+6", Some(17)), ("25-ea", Some(25)), ("1.8.0_402", Some(8)), ("", None)] {
            assert_eq!(feature(version), expect, "{version}");
        }
    }
}
