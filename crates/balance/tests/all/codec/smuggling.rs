//! The known ways to make two servers read different requests from the same bytes: each is
//! refused, or goes on in a form that can be read in one way only.

use balance::http::{
    BodyTracker, Direction, Framing, Refusal, Rewritten, ToUpstream, read_request, rewrite_request,
};

/// What becomes of the bytes of a connection.
#[derive(Debug, PartialEq)]
enum Fate {
    Head(Refusal),
    Body(Refusal),
    /// Goes on as it came, with that framing.
    AsIs(Framing),
    /// Goes on as that.
    As(String),
    /// More is needed.
    Partial,
}

const TO: ToUpstream<'_> = ToUpstream {
    edits: &[],
    keep_alive: true,
    upgrade: true,
    trusted: true,
    host: b"upstream",
};

fn fate(bytes: &[u8]) -> Fate {
    let head = match read_request(bytes) {
        Ok(Some(head)) => head,
        Ok(None) => return Fate::Partial,
        Err(refusal) => return Fate::Head(refusal),
    };
    let mut body = BodyTracker::new(Direction::Request, head.framing());
    if !body.is_complete()
        && let Err(refusal) = body.take(&bytes[head.len()..])
    {
        return Fate::Body(refusal);
    }
    let mut out = Vec::new();
    match rewrite_request(&head, &TO, &mut out) {
        Rewritten::AsIs => Fate::AsIs(head.framing()),
        _ => Fate::As(String::from_utf8_lossy(&out).into_owned()),
    }
}

/// The rows of a table of two columns, whose texts are escaped as in Rust.
fn rows(table: &str) -> impl Iterator<Item = [String; 2]> {
    let unescaped = |text: &str| {
        let mut text = text.to_owned();
        while let Some((before, rest)) = text.split_once("\\u{") {
            let (code, behind) = rest.split_once('}').unwrap();
            let code = u32::from_str_radix(code, 16).unwrap();
            text = format!("{before}{}{behind}", char::from_u32(code).unwrap());
        }
        let named = [("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\0", "\0")];
        named
            .iter()
            .fold(text, |text, (name, one)| text.replace(name, one))
    };
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    table.lines().filter(is_row).map(move |line| {
        let (one, other) = line.rsplit_once(" | ").expect("two columns");
        [unescaped(one), unescaped(other)]
    })
}

/// POST with these fields and a body that starts another request if it is framed otherwise.
fn post(fields: &str) -> Fate {
    let body = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n";
    fate(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}").as_bytes())
}

/// POST with this body in chunks.
fn chunks(body: &str) -> Fate {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    fate(format!("{head}{body}").as_bytes())
}

#[test]
fn lengths_and_codings_that_contradict() {
    for [fields, refusal] in rows(include_str!("smuggling/framing.txt")) {
        assert_eq!(
            format!("{:?}", post(&fields)),
            format!("Head({refusal})"),
            "{fields:?}"
        );
    }
}

#[test]
fn first_lines_and_hosts_that_are_read_in_two_ways() {
    for [bytes, refusal] in rows(include_str!("smuggling/first_lines.txt")) {
        let fate = fate(bytes.as_bytes());
        assert_eq!(format!("{fate:?}"), format!("Head({refusal})"), "{bytes:?}");
    }
}

#[test]
fn heads_without_end_are_refused_at_their_limit() {
    let long = format!("GET /{}", "a".repeat(70_000));
    assert_eq!(fate(long.as_bytes()), Fate::Head(Refusal::TargetTooLong));
    let begin = "GET / HTTP/1.1\r\nHost: a\r\n";
    let long = format!("{begin}X: {}\r\n\r\n", "a".repeat(70_000));
    assert_eq!(fate(long.as_bytes()), Fate::Head(Refusal::HeadTooLarge));
    assert_eq!(fate(&long.as_bytes()[..65_535]), Fate::Partial);
    let many = |n: usize| format!("{begin}{}\r\n", "X: y\r\n".repeat(n));
    assert_eq!(fate(many(99).as_bytes()), Fate::AsIs(Framing::None));
    assert_eq!(
        fate(many(100).as_bytes()),
        Fate::Head(Refusal::HeadTooLarge)
    );
    let names = |n: usize| format!("{begin}Connection: {}\r\n\r\n", "a,".repeat(n));
    assert!(matches!(fate(names(32).as_bytes()), Fate::As(_)));
    assert_eq!(fate(names(33).as_bytes()), Fate::Head(Refusal::Connection));
}

#[test]
fn chunks_that_are_read_in_two_ways() {
    let long_extension = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(5000));
    let long_trailers = format!("0\r\nA: {}\r\n\r\n", "x".repeat(20_000));
    for [body, refusal] in rows(include_str!("smuggling/chunks.txt")) {
        assert_eq!(
            format!("{:?}", chunks(&body)),
            format!("Body({refusal})"),
            "{body:.60?}"
        );
    }
    assert_eq!(chunks(&long_extension), Fate::Body(Refusal::Chunk));
    assert_eq!(
        chunks(&long_trailers),
        Fate::Body(Refusal::TrailersTooLarge)
    );
    for good in [
        "0\r\n\r\n",
        "1\r\na\r\n0\r\n\r\n",
        "0001;a=b;c=\"d\"\r\na\r\n000\r\nExpires: 0\r\nContent-Length-X: 1\r\n\r\n",
        "1 ;a\r\na\r\n0\r\n\r\n",
        "7FFFFFFF\r\na",
    ] {
        assert_eq!(chunks(good), Fate::AsIs(Framing::Chunked), "{good:?}");
    }
}

#[test]
fn what_is_unusual_but_clear_goes_on_in_its_usual_form() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\n";
    for [fields, sent] in rows(include_str!("smuggling/usual_form.txt")) {
        let sent = sent.trim_end_matches("nothing");
        let expected = Fate::As(format!("{head}{sent}\r\n"));
        assert_eq!(post(&fields), expected, "{fields:?}");
    }
    let twice = b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let read = read_request(twice).unwrap().unwrap();
    assert_eq!((read.skipped(), read.len()), (4, twice.len()));
    assert_eq!(read.raw(), &twice[4..]);
}
