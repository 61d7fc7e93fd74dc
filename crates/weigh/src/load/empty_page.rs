//! Empty pages, which a server may answer to a host name that it does not know.

use load::{BodyRule, Expect, Job, Request, StatusRule};

use crate::cli::LoadArgs;

/// A note where every good answer is 200 with an empty body, and no option says that this is right.
/// The job has been prepared: it expects what the target answered before the load.
pub(super) fn note(args: &LoadArgs, job: &Job) -> Option<String> {
    let says_what_is_right =
        args.expect_status.is_some() || args.expect_contains.is_some() || args.body_varies;
    let requests = &job.targets.first()?.requests;
    if says_what_is_right || !requests.iter().all(asks_for_an_empty_page) {
        return None;
    }
    Some(format!(
        "every answer had status 200 and an empty body: the server may not know the host name `{}`. \
         --header 'Host: NAME' sets another name, --expect-contains TEXT says what the page contains; \
         if the empty page is right, --expect-status 200 says so",
        host(requests.first()?)?
    ))
}

fn asks_for_an_empty_page(request: &Request) -> bool {
    let empty = Expect {
        status: StatusRule::Exactly(200),
        body: BodyRule::Bytes([].into()),
    };
    request.bytes.starts_with(b"GET ") && request.expect == empty
}

/// The value of a request's field `Host`.
fn host(request: &Request) -> Option<String> {
    let head = String::from_utf8_lossy(&request.bytes);
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, host) = fields.find(|(name, _)| name.eq_ignore_ascii_case("host"))?;
    Some(host.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_page_is_200_to_get_without_content() {
        let request = |method: &str, status, body: &[u8]| Request {
            name: format!("{method} /"),
            bytes: format!("{method} / HTTP/1.1\r\nHost: a.test:81\r\n\r\n").into_bytes(),
            expect: Expect {
                status: StatusRule::Exactly(status),
                body: BodyRule::Bytes(body.into()),
            },
            weight: 1,
        };
        let empty = request("GET", 200, b"");
        assert!(asks_for_an_empty_page(&empty));
        assert_eq!(host(&empty).as_deref(), Some("a.test:81"));
        for other in [
            request("GET", 200, b"x"),
            request("GET", 204, b""),
            request("GET", 304, b""),
            request("HEAD", 200, b""),
            request("POST", 200, b""),
        ] {
            assert!(!asks_for_an_empty_page(&other), "{other:?}");
        }
        let varying = Request {
            expect: Expect {
                body: BodyRule::Any,
                ..empty.expect.clone()
            },
            ..empty
        };
        assert!(!asks_for_an_empty_page(&varying));
    }
}
