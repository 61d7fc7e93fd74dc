//! The commits of servers that were built from a revision of a git repository.
//!
//! The commit of a subject is what a line of runs follows, so it does not identify the line. That of
//! the baseline does: another baseline changes every ratio.

use std::collections::BTreeSet;

use readings::{Condition, Journal, ServerSettings};
use serde_json::Value;

use crate::facts::Facts;

/// Whether a server was built from a revision, as `hosts.json` says. A journal gives its version as
/// `main (4375c959788c)`, which images have in the same form.
pub(crate) fn is_built(hosts: Option<&Value>, server: &str) -> bool {
    hosts.is_some_and(|hosts| hosts["local"]["servers"][server]["revision"].is_object())
}

/// The commit in a version such as `main (4375c959788c)`.
fn commit(server: &ServerSettings) -> Option<&str> {
    let (_, commit) = server.version.as_deref()?.rsplit_once(" (")?;
    commit.strip_suffix(')')
}

/// The commits on a subject's path under a condition: `4375c959788c`, or with several
/// `back 4375c959788c, front 4b9c11848519`. `None` if no server there was built from a revision.
pub(crate) fn commits_of(
    journal: &Journal,
    hosts: Option<&Value>,
    condition: &Condition,
    subject: &str,
) -> Option<String> {
    let settings = journal.settings();
    // A figure may leave a factor out that only changes the rate.
    let row = settings.iter().find(|row| {
        let mut levels = condition.iter();
        levels.all(|(factor, level)| row.condition.get(factor) == Some(level))
    })?;
    let one = row.subjects.iter().find(|one| one.subject == subject)?;
    let built = one.servers.iter().filter(|s| is_built(hosts, &s.server));
    words(built.filter_map(|server| Some((server.server.as_str(), commit(server)?))))
}

/// One commit alone, or each with the name it belongs to.
pub(crate) fn words<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let named: BTreeSet<(&str, &str)> = named.collect();
    let commits: BTreeSet<&str> = named.iter().map(|(_, commit)| *commit).collect();
    let each = || {
        let each = named
            .iter()
            .map(|(name, commit)| format!("{name} {commit}"));
        each.collect::<Vec<_>>().join(", ")
    };
    match commits.len() {
        0 => None,
        1 => commits.first().map(|commit| (*commit).to_owned()),
        _ => Some(each()),
    }
}

/// What each server was built from, by its name: `main (4375c959788c)`, or under several conditions
/// `v1 (…), v2 (…)`.
pub(crate) fn revisions(journal: &Journal, hosts: Option<&Value>) -> Facts {
    let mut found: std::collections::BTreeMap<&str, BTreeSet<&str>> = Default::default();
    let settings = journal.settings();
    let subjects = settings.iter().flat_map(|row| &row.subjects);
    for server in subjects.flat_map(|one| &one.servers) {
        if let Some(version) = server.version.as_deref()
            && is_built(hosts, &server.server)
        {
            found.entry(&server.server).or_default().insert(version);
        }
    }
    let joined = |versions: BTreeSet<&str>| versions.into_iter().collect::<Vec<_>>().join(", ");
    found
        .into_iter()
        .map(|(server, versions)| (server.to_owned(), joined(versions)))
        .collect()
}
