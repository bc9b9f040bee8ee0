//! Secrets in a CI job's environment: tokens, and files through which steps communicate. Subjects, builds, and drivers
//! do not inherit them. `docs/ci.md` has the same list.

use super::protocol::Order;

/// Variable names; `*` matches any text, including none.
const WITHHELD: [&str; 24] = [
    "LOADLINE_TOKEN",
    // GitHub, and the compatible Gitea and Forgejo.
    "GITHUB_*TOKEN",
    "GH_*TOKEN",
    "GITEA_*TOKEN",
    "FORGEJO_*TOKEN",
    "ACTIONS_*TOKEN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    // GitLab and Woodpecker. The repository URL contains the job's token.
    "CI_*TOKEN",
    "CI_*PASSWORD",
    "CI_JOB_JWT*",
    "CI_REPOSITORY_URL",
    "GITLAB_*TOKEN",
    "DOCKER_AUTH_CONFIG",
    // Azure Pipelines, Bitbucket, Buildkite, CircleCI, Drone.
    "SYSTEM_ACCESSTOKEN",
    "BITBUCKET_*TOKEN",
    "BUILDKITE_*TOKEN",
    "CIRCLE_*TOKEN",
    "CIRCLE_OIDC_TOKEN*",
    "DRONE_*TOKEN",
    "DRONE_*PASSWORD",
];

/// The variables to withhold from the command: all matches, unless the scenario names them in the command line or sets
/// them.
pub(super) fn withheld(order: &Order, variables: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    variables.filter(|name| is_secret(name) && !names(order, name))
}

fn is_secret(name: &str) -> bool {
    WITHHELD.iter().any(|pattern| match pattern.split_once('*') {
        None => name == *pattern,
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
    })
}

/// Whether the command line contains this name as a shell word, as in `"$CI_JOB_TOKEN"`, or the order sets it.
fn names(order: &Order, name: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = order.argv.iter().flat_map(|word| word.split(|c| !of_name(c)));
    words.any(|word| word == name) || order.env.iter().any(|(set, _)| set == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ci_tokens_are_withheld() {
        let kept = ["CI", "GITHUB_SHA", "CI_JOB_NAME", "GITHUB_TOKEN_URL", "XGITHUB_TOKEN", "TOKEN", "PATH", "GH_HOST"];
        let dropped = [
            "LOADLINE_TOKEN",
            "GITHUB_TOKEN",
            "GITHUB_ENTERPRISE_TOKEN",
            "GH_TOKEN",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
            "GITHUB_ENV",
            "CI_JOB_TOKEN",
            "CI_REGISTRY_PASSWORD",
            "CI_JOB_JWT_V2",
            "CI_REPOSITORY_URL",
            "CIRCLE_OIDC_TOKEN_V2",
        ];
        let given = kept.iter().chain(&dropped).map(|name| (*name).to_owned());
        let found: Vec<String> = withheld(&Order::of_shell("true"), given).collect();
        assert_eq!(found, dropped);
    }

    #[test]
    fn variables_named_by_the_scenario_are_inherited() {
        let check = |order: &Order, expect: usize| {
            let given = ["CI_JOB_TOKEN".to_owned()].into_iter();
            assert_eq!(withheld(order, given).count(), expect, "{order:?}");
        };
        check(&Order::of_shell("mvn -Dtoken=${CI_JOB_TOKEN} package"), 0);
        check(&Order::of_shell("echo $MY_CI_JOB_TOKEN"), 1);
        let env = vec![("CI_JOB_TOKEN".to_owned(), "own".to_owned())];
        check(&Order { env, ..Order::of_shell("true") }, 0);
    }

    #[test]
    fn the_documentation_lists_all_withheld_variables() {
        let text = include_str!("../../docs/ci.md");
        for pattern in WITHHELD {
            assert!(text.contains(&format!("`{pattern}`")), "docs/ci.md lacks {pattern}");
        }
    }
}
