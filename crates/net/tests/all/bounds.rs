//! Whatever a peer sends without end is refused after a bounded number of bytes.

use net::http::{HEAD_BYTES_MAX, HttpError, INTERIM_MAX, Progress, RequestParser, ResponseParser};

/// Repeats `again` behind `start` until the parser refuses; how many bytes that took.
fn refused_after(
    start: &str,
    again: &str,
    mut feed: impl FnMut(&[u8]) -> Result<bool, HttpError>,
) -> (usize, HttpError) {
    let mut fed = 0;
    let mut piece = start;
    while fed < 4 << 20 {
        match feed(piece.as_bytes()) {
            Ok(complete) => assert!(!complete, "complete after {fed} bytes of {again:?}"),
            Err(e) => return (fed, e),
        }
        fed += piece.len();
        piece = again;
    }
    panic!("{start:?} and then {again:?} without end is borne");
}

fn answer(start: &str, again: &str) -> (usize, HttpError) {
    let mut parser = ResponseParser::new(false);
    refused_after(start, again, |bytes| {
        let progress = parser.feed(bytes, |_| panic!("content"))?;
        Ok(progress != Progress::More)
    })
}

fn request(start: &str, again: &str) -> (usize, HttpError) {
    let mut parser = RequestParser::default();
    refused_after(start, again, |bytes| Ok(parser.feed(bytes)?.1))
}

const CHUNKS: &str = "Transfer-Encoding: chunked\r\n\r\n";

#[test]
fn endless_heads_are_refused() {
    use HttpError::{Head, HeadTooLarge};
    let most = HEAD_BYTES_MAX + 64;
    for (again, error) in [
        ("Field: value\r\n", HeadTooLarge),
        ("Field: value\r\n folded\r\n", HeadTooLarge),
        ("A", HeadTooLarge),
        ("\r\n folded", HeadTooLarge),
        ("\0", Head),
    ] {
        let (fed, found) = answer("HTTP/1.1 200 OK\r\nX: y", again);
        assert!(fed <= most, "{fed} bytes of {again:?}");
        assert!(found == error || found == Head, "{again:?}: {found}");
    }
    for (start, again) in [("", "H"), ("HTTP/1.1 200 ", "a"), ("", "\r\n"), ("", "\n")] {
        assert!(answer(start, again).0 <= most, "{again:?}");
    }
    for (start, again) in [
        ("GET /", "a"),
        ("", "G"),
        ("", "\r\n"),
        ("", "\n"),
        ("GET / HTTP/1.1\r\n", "Field: value\r\n"),
        ("GET / HTTP/1.1\r\nX: ", "y"),
    ] {
        assert!(request(start, again).0 <= most, "{again:?}");
    }
}

#[test]
fn endless_interim_answers_are_refused() {
    let again = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    let (fed, error) = answer("", again);
    assert_eq!(error, HttpError::Interim);
    assert_eq!(fed, again.len() * INTERIM_MAX as usize);
}

#[test]
fn endless_size_lines_are_refused() {
    let (head, post) = (
        format!("HTTP/1.1 200 OK\r\n{CHUNKS}5"),
        format!("POST / HTTP/1.1\r\n{CHUNKS}5"),
    );
    for again in ["0", " ", "\t", ";", ";a=b", ";\"\\\""] {
        for (fed, error) in [answer(&head, again), request(&post, again)] {
            assert_eq!(error, HttpError::Chunk, "{again:?}");
            assert!(fed < 4096 + 100, "{fed} bytes of {again:?}");
        }
    }
}

#[test]
fn endless_trailers_are_refused() {
    let (head, post) = (
        format!("HTTP/1.1 200 OK\r\n{CHUNKS}0\r\n"),
        format!("POST / HTTP/1.1\r\n{CHUNKS}0\r\n"),
    );
    for again in ["A: b\r\n", "a", "a\r\n", "A: b"] {
        for (fed, error) in [answer(&head, again), request(&post, again)] {
            assert_eq!(error, HttpError::TrailersTooLarge, "{again:?}");
            assert!(fed <= 3 * 16 * 1024 + 100, "{fed} bytes of {again:?}");
        }
    }
}

#[test]
fn a_head_of_the_greatest_length_is_read_and_one_byte_more_is_not() {
    for (more, fits) in [(0, true), (1, false)] {
        let (start, end) = ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ", "\r\n\r\n");
        let value = "y".repeat(HEAD_BYTES_MAX - start.len() - end.len() + more);
        let head = format!("{start}{value}{end}").into_bytes();
        for piece in [head.len(), 1, 1000] {
            let mut parser = ResponseParser::new(false);
            let mut last = Ok(Progress::More);
            for bytes in head.chunks(piece) {
                last = parser.feed(bytes, |_| {});
                if last.is_err() {
                    break;
                }
            }
            assert_eq!(last.is_ok(), fits, "{} bytes by {piece}", head.len());
            assert!(fits || last == Err(HttpError::HeadTooLarge));
        }
    }
}

#[test]
fn a_hundred_fields_are_read_and_one_more_is_not() {
    for (fields, fits) in [(100, true), (101, false)] {
        let head = format!("HTTP/1.1 204 x\r\n{}\r\n", "X: y\r\n".repeat(fields));
        let result = ResponseParser::new(false).feed(head.as_bytes(), |_| {});
        assert_eq!(result.is_ok(), fits);
        let head = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(fields));
        assert_eq!(RequestParser::default().feed(head.as_bytes()).is_ok(), fits);
    }
}
