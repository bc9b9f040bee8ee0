//! The source revision of the subject, from options, the HEAD of the working directory, and CI variables.
//!
//! HEAD is read directly from git's files (gitrepository-layout(5), git 2.39). `.git` is a directory or, in an
//! additional work tree, a file: `gitdir: /repo/.git/worktrees/w`. Its HEAD is a commit or `ref: refs/heads/main`. A
//! reference is a file or a line of `packed-refs`, `3f2a91… refs/heads/main`. Other storage formats (reftable) are not
//! supported. Files changed since the commit are not detected: only git can tell.

use crate::bounded;
use crate::record::SourceRecord;
use std::path::{Component, Path, PathBuf};

/// Variables that name the commit being built: GitHub, GitLab, Jenkins, Azure, Buildkite, CircleCI, Bitbucket, Travis,
/// Drone.
const COMMITS: [&str; 9] = [
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "GIT_COMMIT",
    "BUILD_SOURCEVERSION",
    "BUILDKITE_COMMIT",
    "CIRCLE_SHA1",
    "BITBUCKET_COMMIT",
    "TRAVIS_COMMIT",
    "DRONE_COMMIT_SHA",
];
/// Variables that name the build, for the same systems. Jenkins and TeamCity share a name. Azure's value is a number,
/// like those of the others.
const BUILDS: [&str; 9] = [
    "GITHUB_RUN_NUMBER",
    "CI_PIPELINE_IID",
    "BUILD_NUMBER",
    "BUILD_BUILDID",
    "BUILDKITE_BUILD_NUMBER",
    "CIRCLE_BUILD_NUM",
    "BITBUCKET_BUILD_NUMBER",
    "TRAVIS_BUILD_NUMBER",
    "DRONE_BUILD_NUMBER",
];
/// The maximum length of a commit or build name; options and variables can contain anything.
const NAME_CHARS: usize = 200;
/// `HEAD` and reference files have one line.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// A million references of about 70 bytes.
const PACKED_BYTES_MAX: u64 = 70 << 20;
/// A reference can name another one; git follows five.
const REFERENCES_MAX: usize = 5;

/// The source according to options, CI, and git; `None` if none of them names it.
pub fn source_of(commit: Option<&str>, build: Option<&str>) -> Option<SourceRecord> {
    let folder = std::env::current_dir().ok();
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    told(commit, build, folder.as_deref(), &variable)
}

/// Like `source_of`, for a directory and these variables. HEAD takes precedence over CI: it is the actual state, even
/// if CI was started for a different commit than the one checked out, as in `git bisect`.
fn told(
    commit: Option<&str>,
    build: Option<&str>,
    folder: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<SourceRecord> {
    let name = |text: &str| -> Option<String> {
        let text = text.trim();
        (!text.is_empty()).then(|| text.chars().take(NAME_CHARS).collect())
    };
    let set = |names: &[&str]| names.iter().find_map(|at| Some((name(&variable(at)?)?, (*at).to_owned())));
    let typed = |text: Option<&str>, option: &str| Some((name(text?)?, option.to_owned()));
    let head = || Some((head(folder?)?, "git".to_owned()));
    let (commit, commit_from) = typed(commit, "--commit").or_else(head).or_else(|| set(&COMMITS)).unzip();
    let (build, build_from) = typed(build, "--build").or_else(|| set(&BUILDS)).unzip();
    let source = SourceRecord { commit, commit_from, build, build_from };
    (source != SourceRecord::default()).then_some(source)
}

/// The commit at HEAD of the work tree that contains a directory.
fn head(folder: &Path) -> Option<String> {
    let own = folder.ancestors().find_map(git_folder)?;
    let common = line(&own.join("commondir")).map_or_else(|| own.clone(), |path| own.join(path));
    let mut text = line(&own.join("HEAD"))?;
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = text.strip_prefix("ref:").map(str::trim) else { break };
        text = referenced(&own, &common, reference)?;
    }
    is_commit(&text).then_some(text)
}

/// The `.git` directory of the work tree that contains a directory.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let at = folder.join(".git");
    if at.is_dir() {
        return at.join("HEAD").is_file().then_some(at);
    }
    let place = line(&at)?;
    let place = folder.join(place.strip_prefix("gitdir:")?.trim());
    place.join("HEAD").is_file().then_some(place)
}

/// Resolves a reference: in the work tree's directory, in the shared one, or packed.
fn referenced(own: &Path, common: &Path, reference: &str) -> Option<String> {
    let is_below = Path::new(reference).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_below || !reference.starts_with("refs/") {
        return None;
    }
    let loose = [own, common].into_iter().find_map(|folder| line(&folder.join(reference)));
    loose.or_else(|| {
        let packed = bounded::text(&common.join("packed-refs"), PACKED_BYTES_MAX).ok()?;
        let named =
            |line: &str| line.split_once(' ').filter(|(_, name)| *name == reference).map(|(at, _)| at.to_owned());
        packed.lines().find_map(named)
    })
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The first line of a small regular file; never opens a pipe.
fn line(path: &Path) -> Option<String> {
    let text = bounded::text(path, LINE_BYTES_MAX).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_test_support::write;
    use std::fs::create_dir_all;

    const ONE: &str = "3f2a91c07d3e4b5a69788796a5b4c3d2e1f00112";
    const OTHER: &str = "9c01d2c07d3e4b5a69788796a5b4c3d2e1f00112";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| write(folder.path().join(name), text));
        folder
    }

    fn check(files: &[(&str, &str)], within: &str, expect: Option<&str>) {
        let folder = folder(files);
        let within = folder.path().join(within);
        create_dir_all(&within).unwrap();
        assert_eq!(head(&within).as_deref(), expect, "{files:?}");
    }

    #[test]
    fn head_is_read_from_branches_commits_and_packed_refs() {
        let packed = format!("# pack-refs with: peeled\n{OTHER} refs/heads/x\n^{ONE}\n{ONE} refs/heads/main\n");
        let head = (".git/HEAD", "ref: refs/heads/main\n");
        check(&[head, (".git/refs/heads/main", &format!("{ONE}\n"))], "src/main/java", Some(ONE));
        check(&[head, (".git/packed-refs", &packed)], ".", Some(ONE));
        check(&[head, (".git/packed-refs", &packed), (".git/refs/heads/main", OTHER)], ".", Some(OTHER));
        check(&[(".git/HEAD", ONE)], "a", Some(ONE));
        check(&[(".git/HEAD", &"a".repeat(64))], "a", Some(&"a".repeat(64)));
        check(
            &[head, (".git/refs/heads/main", "ref: refs/heads/next\n"), (".git/refs/heads/next", ONE)],
            ".",
            Some(ONE),
        );
    }

    #[test]
    fn each_git_worktree_has_its_own_head() {
        let files = [
            ("repo/.git/HEAD", "ref: refs/heads/main\n"),
            ("repo/.git/refs/heads/main", ONE),
            ("repo/.git/refs/heads/side", OTHER),
            ("repo/.git/worktrees/w/HEAD", "ref: refs/heads/side\n"),
            ("repo/.git/worktrees/w/commondir", "../..\n"),
            ("w/.git", "gitdir: ../repo/.git/worktrees/w\n"),
        ];
        check(&files, "w", Some(OTHER));
        check(&files, "repo", Some(ONE));
    }

    #[test]
    fn invalid_commits_are_unknown() {
        let head = (".git/HEAD", "ref: refs/heads/main\n");
        check(&[head], ".", None);
        check(&[head, (".git/refs/heads/main", "3f2a91\n")], ".", None);
        check(&[head, (".git/refs/heads/main", "ref: refs/heads/main\n")], ".", None);
        check(&[(".git/HEAD", "ref: refs/heads/.invalid\n"), (".git/reftable/tables.list", "x")], ".", None);
        check(&[(".git/HEAD", "ref: ../secret\n"), ("secret", ONE)], ".", None);
        check(&[(".git/HEAD", "ref: refs/../../secret\n"), ("secret", ONE)], ".", None);
        check(&[(".git/HEAD", "")], ".", None);
        check(&[(".git", "gitdir: nowhere\n")], ".", None);
        check(&[(".git/HEAD", &format!("{ONE}\n").repeat(1000))], ".", None);
    }

    #[test]
    fn options_override_head_and_head_overrides_ci_variables() {
        let folder = folder(&[(".git/HEAD", ONE)]);
        let outside = tempfile::tempdir().unwrap();
        let variable = |name: &str| match name {
            "GITHUB_SHA" => Some(OTHER.to_owned()),
            "CI_PIPELINE_IID" => Some(" 42 ".to_owned()),
            "GITHUB_RUN_NUMBER" => Some(String::new()),
            _ => None,
        };
        let told = |commit: Option<&str>, folder: &Path| told(commit, None, Some(folder), &variable).unwrap();
        let words = |of: SourceRecord| (of.commit.unwrap(), of.commit_from.unwrap());
        assert_eq!(words(told(Some("abc"), folder.path())), ("abc".to_owned(), "--commit".to_owned()));
        assert_eq!(words(told(None, folder.path())), (ONE.to_owned(), "git".to_owned()));
        let ci = told(None, outside.path());
        assert_eq!((ci.build.as_deref(), ci.build_from.as_deref()), (Some("42"), Some("CI_PIPELINE_IID")));
        assert_eq!(words(ci), (OTHER.to_owned(), "GITHUB_SHA".to_owned()));
        assert_eq!(super::told(None, None, Some(outside.path()), &|_| None), None);
        assert_eq!(super::told(Some(" "), Some(""), None, &|_| None), None);
    }
}
