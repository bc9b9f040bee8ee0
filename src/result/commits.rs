//! A list of commits, as printed by `git log --reverse --format='%H %s'`: their order and subject lines.

/// A short hash has as many digits as git shows, or more if needed to be unique.
pub(super) const SHORT_MIN: usize = 7;

/// Commits, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commits(Vec<Commit>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Commit {
    hash: String,
    /// Empty without a subject line.
    subject: String,
}

impl Commits {
    /// Parses one commit per line: its hash, then its subject line. git 2.39 prints `3f2a91c4… Caches share their
    /// keys`.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (hash, subject) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
            (!hash.is_empty()).then(|| Commit { hash: hash.to_owned(), subject: subject.trim().to_owned() })
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn rank(&self, hash: &str) -> Option<usize> {
        self.0.iter().position(|commit| is_same(&commit.hash, hash))
    }

    /// The subject line of the commit at a position, if it has one.
    pub(super) fn subject(&self, rank: usize) -> Option<&str> {
        Some(self.0.get(rank)?.subject.as_str()).filter(|subject| !subject.is_empty())
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let shorter = one.len().min(other.len());
    one == other || shorter >= SHORT_MIN && (one.starts_with(other) || other.starts_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_list_matches_hashes_by_prefix() {
        let commits = Commits::parse("aaaaaaaa11  First one \n\n\taaaaaaaa22\nv1\n");
        assert_eq!(
            (commits.rank("aaaaaaaa22"), commits.rank("aaaaaaaa223"), commits.rank("v1")),
            (Some(1), Some(1), Some(2))
        );
        assert_eq!((commits.subject(0), commits.subject(1)), (Some("First one"), None));
        assert_eq!((commits.rank("aaa"), commits.rank("v"), commits.is_empty()), (None, None, false));
        assert!(Commits::parse(" \n").is_empty());
    }
}
