//! Redirects, which a load does not follow, and upgrades, after which it closes the connection.

use load::{Expect, StatusRule};
use readings::LoadReading;

use crate::cli::LoadArgs;

/// Statuses that send a client to another URL (RFC 9110, 15.4).
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// A note where good answers are redirects, and neither an option nor the file of requests says that
/// this is right: `stated` is what they say of each request, and `expectations` are what the target
/// answered to each before the load.
pub(super) fn note(args: &LoadArgs, stated: &[Expect], expectations: &[Expect]) -> Option<String> {
    match args.answer.expect_status {
        Some(_) => None,
        None => note_on_answers(stated, expectations),
    }
}

/// A note where answers are upgrades: what then follows on a connection is not measured.
pub(super) fn upgrade_note(reading: &LoadReading) -> Option<&'static str> {
    verdict::is_of_handshakes(reading).then_some(
        "every answer was an upgrade (status 101), after which the connection is closed: these are \
         handshakes per second and their latency, not messages over the upgraded connection",
    )
}

fn note_on_answers(stated: &[Expect], expectations: &[Expect]) -> Option<String> {
    let redirect = |(number, expect): (usize, &Expect)| match expect.status {
        _ if stated
            .get(number)
            .is_some_and(|one| one.status == expect.status) =>
        {
            None
        }
        StatusRule::Exactly(status) => REDIRECTS.contains(&status).then_some(status),
        StatusRule::OrRefused(_) | StatusRule::Success => None,
    };
    let numbered = expectations.iter().enumerate();
    let mut statuses: Vec<u16> = numbered.filter_map(redirect).collect();
    let (some, all) = (statuses.len(), expectations.len());
    let status = *statuses.first()?;
    statuses.sort_unstable();
    statuses.dedup();
    let which: Vec<String> = statuses.iter().map(u16::to_string).collect();
    let which = which.join(", ");
    let found = match some == all {
        true => format!("every answer was a redirect with status {which}"),
        false => format!("the answers to {some} of {all} requests were redirects (status {which})"),
    };
    // The option gives one status for all requests.
    let right = match some == all && statuses.len() == 1 {
        true => format!("; if the redirect is right, --expect-status {status} says so"),
        false => String::new(),
    };
    Some(format!(
        "{found}, which is not followed: the page that it leads to was not measured. Give the URL \
         that it names{right}"
    ))
}

#[cfg(test)]
mod tests {
    use load::BodyRule;
    use testing::Text as _;

    use super::*;

    fn note_of(statuses: &[u16]) -> Option<String> {
        let expect = |status: &u16| Expect {
            status: StatusRule::Exactly(*status),
            body: BodyRule::Any,
        };
        let expectations: Vec<Expect> = statuses.iter().map(expect).collect();
        let stated = vec![Expect::default(); expectations.len()];
        note_on_answers(&stated, &expectations)
    }

    #[test]
    fn redirects_are_told_and_other_answers_are_not() {
        let all = note_of(&[302, 302]).unwrap();
        for part in [
            "every answer was a redirect with status 302, which is not followed",
            "--expect-status 302 says so",
        ] {
            assert!(all.contains(part), "no {part:?} in {all}");
        }
        let some = note_of(&[200, 301, 308]).unwrap();
        some.has("the answers to 2 of 3 requests were redirects (status 301, 308)");
        assert!(!some.contains("--expect-status"), "{some}");
        // Not Modified sends nobody anywhere.
        for other in [&[200][..], &[304], &[300], &[204, 200], &[]] {
            assert_eq!(note_of(other), None);
        }
        let success = [Expect::default()];
        assert_eq!(note_on_answers(&success, &success), None);
    }

    #[test]
    fn a_redirect_that_the_file_of_requests_states_is_right() {
        let [moved, page, found] = [301, 200, 302].map(|status| Expect {
            status: StatusRule::Exactly(status),
            body: BodyRule::Any,
        });
        let stated = [Expect::default(), page.clone(), found.clone()];
        assert_eq!(
            note_on_answers(&stated[1..], &[page.clone(), found.clone()]),
            None
        );
        let note = note_on_answers(&stated, &[moved, page, found]).unwrap();
        note.has("1 of 3 requests were redirects (status 301)");
    }
}
