//! Empty pages, which a server may answer to a host name that it does not know.

use load::{BodyRule, Expect, Job, Request, StatusRule};

use crate::cli::LoadArgs;

/// A note where every good answer is 200 with an empty body, and no option says that this is right.
/// `expectations` are what the target answered to each request before the load.
pub(super) fn note(args: &LoadArgs, job: &Job, expectations: &[Expect]) -> Option<String> {
    let says_what_is_right = args.answer.expect_status.is_some()
        || args.answer.expect_contains.is_some()
        || args.answer.body_varies;
    let requests = &job.targets.first()?.requests;
    if says_what_is_right || !are_empty_pages(requests, expectations) {
        return None;
    }
    Some(format!(
        "every answer had status 200 and an empty body: the server may not know the host name `{}`. \
         --header 'Host: NAME' sets another name, --expect-contains TEXT says what the page contains; \
         if the empty page is right, --expect-status 200 says so",
        host(requests.first()?)?
    ))
}

fn are_empty_pages(requests: &[Request], expectations: &[Expect]) -> bool {
    let empty = Expect {
        status: StatusRule::Exactly(200),
        body: BodyRule::Bytes([].into()),
    };
    let is_get = |request: &Request| request.bytes.starts_with(b"GET ");
    let is_empty = |expect: &Expect| *expect == empty;
    !expectations.is_empty() && requests.iter().all(is_get) && expectations.iter().all(is_empty)
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

    fn request(method: &str, status: u16, body: &[u8]) -> Request {
        Request {
            name: format!("{method} /"),
            bytes: format!("{method} / HTTP/1.1\r\nHost: a.test:81\r\n\r\n").into_bytes(),
            expect: Expect {
                status: StatusRule::Exactly(status),
                body: BodyRule::Bytes(body.into()),
            },
            weight: 1,
        }
    }

    fn is_empty(request: Request) -> bool {
        let expectations = [request.expect.clone()];
        are_empty_pages(&[request], &expectations)
    }

    #[test]
    fn an_empty_page_is_200_to_get_without_content() {
        assert!(is_empty(request("GET", 200, b"")));
        assert_eq!(
            host(&request("GET", 200, b"")).as_deref(),
            Some("a.test:81")
        );
        for other in [
            request("GET", 200, b"x"),
            request("GET", 204, b""),
            request("GET", 304, b""),
            request("HEAD", 200, b""),
            request("POST", 200, b""),
        ] {
            assert!(!is_empty(other.clone()), "{other:?}");
        }
        let mut varying = request("GET", 200, b"");
        varying.expect.body = BodyRule::Any;
        assert!(!is_empty(varying));
    }
}
