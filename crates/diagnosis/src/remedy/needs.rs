//! The conditions under which a remedy is considered at all.

use super::{Facts, NotOffered};

/// A condition of a remedy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// The user set none of these flags, options and variables.
    Unset(&'static [&'static str]),
    /// The JVM has this flag, or its flags are not known. Records of trials keep it ([`crate::flags_kept`]).
    Flag(&'static str),
    /// The C allocator is glibc's, or is not known.
    Glibc,
}

impl Need {
    /// # Errors
    /// Why this subject does not meet it.
    pub(super) fn check(self, facts: &Facts) -> Result<(), NotOffered> {
        match self {
            Self::Unset(names) => facts.unset(names),
            Self::Flag(name) => match &facts.flags {
                Some(flags) if !flags.contains(name) => Err(NotOffered::NoFlag(name)),
                _ => Ok(()),
            },
            Self::Glibc => match facts.allocator.as_deref() {
                Some("glibc") | None => Ok(()),
                Some(other) => Err(NotOffered::Allocator(other.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_lacked_only_where_the_flags_were_read() {
        let lacks = |flags: Option<&str>| {
            let facts = Facts { flags: flags.map(|name| [name.to_owned()].into()), ..Facts::default() };
            Need::Flag("UseG1GC").check(&facts).err()
        };
        assert_eq!(lacks(None), None);
        assert_eq!(lacks(Some("UseG1GC")), None);
        assert_eq!(lacks(Some("UseZGC")), Some(NotOffered::NoFlag("UseG1GC")));
    }
}
