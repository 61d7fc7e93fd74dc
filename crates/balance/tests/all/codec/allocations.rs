//! Reading heads and following bodies allocates nothing, and neither does passing on what has not
//! to be changed; what is changed goes into memory that the caller has.

use allocation_counter::measure;

use balance::http::{
    BodyTracker, Direction, Edit, EditKind, Framing, RequestContext, Rewritten, ToClient,
    ToUpstream, read_request, read_response, rewrite_request, rewrite_response,
};

const REQUEST: &[u8] = b"GET /index.html?a=b HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8.14.1\r\nAccept: */*\r\nCookie: a=1; node=two\r\nConnection: keep-alive\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\n";

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn the_common_case_allocates_nothing() {
    assert!(
        allocations(|| drop(std::hint::black_box(vec![1]))) > 0,
        "allocations are counted"
    );
    let up = ToUpstream {
        edits: &[],
        keep_alive: true,
        upgrade: true,
        trusted: true,
        host: b"a",
    };
    let down = ToClient {
        edits: &[],
        keep_alive: true,
        minor_version: 1,
    };
    let mut out = Vec::new();
    let used = allocations(|| {
        let head = read_request(REQUEST).unwrap().unwrap();
        assert_eq!(head.cookie(b"node"), Some(b"two".as_slice()));
        assert_eq!(rewrite_request(&head, &up, &mut out), Rewritten::AsIs);
        let head = read_response(ANSWER, RequestContext::default())
            .unwrap()
            .unwrap();
        assert_eq!(
            rewrite_response(&head, &down, &mut out).head,
            Rewritten::AsIs
        );
    });
    assert_eq!(used, 0);
}

#[test]
fn changes_and_bodies_allocate_nothing_beyond_the_output() {
    let edits = [
        Edit::new(EditKind::Append, "X-Forwarded-For", b"192.0.2.1").unwrap(),
        Edit::new(EditKind::Set, "User-Agent", b"x").unwrap(),
    ];
    let up = ToUpstream {
        edits: &edits,
        keep_alive: false,
        upgrade: true,
        trusted: true,
        host: b"a",
    };
    let mut out = Vec::with_capacity(4096);
    let body = b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
    let used = allocations(|| {
        let head = read_request(REQUEST).unwrap().unwrap();
        assert_eq!(rewrite_request(&head, &up, &mut out), Rewritten::Written);
        let mut tracker = BodyTracker::new(Direction::Request, Framing::Chunked);
        for piece in body.chunks(3) {
            tracker.take(piece).unwrap();
        }
        assert!(tracker.is_complete());
    });
    assert_eq!(used, 0);
}
