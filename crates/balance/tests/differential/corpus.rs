//! Ambiguous messages. There are plain ones too, so that a test that sees nothing is noticed.

pub struct Message {
    pub name: &'static str,
    /// `/N` stands for a target that only this message has.
    pub text: String,
    /// How many requests a server has to see. `None`: at most one, as servers differ from the RFC.
    pub requests: Option<usize>,
}

/// A request that must never be seen: it lies in the body of another.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

/// A POST with these fields. Read as chunked, its body is empty and a hidden request follows.
fn post(fields: &str) -> String {
    format!("POST /N HTTP/1.1\r\nHost: a\r\n{fields}\r\n0\r\n\r\n{HIDDEN}")
}

/// A POST with this chunked body, which is refused, so that the request after it must not be seen.
fn chunks(body: &str) -> String {
    let head = "POST /N HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    format!("{head}{body}{HIDDEN}")
}

/// A GET with these lines after the first.
fn get(lines: &str) -> String {
    format!("GET /N HTTP/1.1\r\n{lines}\r\n{HIDDEN}")
}

pub fn messages() -> Vec<Message> {
    let mut all = Vec::new();
    let mut add = |requests, list: &[(&'static str, String)]| {
        all.extend(list.iter().map(|(name, text)| Message {
            name,
            text: text.clone(),
            requests,
        }));
    };
    add(Some(1), &plain());
    add(
        Some(2),
        &[
            (
                "two in a row",
                "GET /N HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2),
            ),
            // It is processed as 1.1 (RFC 9110, 2.5).
            (
                "a version to come",
                "GET /N HTTP/1.2\r\nHost: a\r\n\r\n".repeat(2),
            ),
        ],
    );
    add(Some(0), &lengths());
    add(Some(0), &codings());
    add(Some(0), &lines());
    add(Some(0), &request_lines());
    add(Some(0), &chunk_lines());
    add(None, &disputed());
    all
}

/// Messages with only one meaning.
fn plain() -> Vec<(&'static str, String)> {
    let (length, hex) = (HIDDEN.len(), format!("{:x}", HIDDEN.len()));
    let chunked = |field: &str, chunk: &str, trailer: &str| {
        format!(
            "POST /N HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n{chunk}\r\n{HIDDEN}\r\n0\r\n{trailer}\r\n"
        )
    };
    let coding = "Transfer-Encoding: chunked";
    vec![
        ("GET", "GET /N HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        (
            "a request as the body of another, by its length",
            format!("POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "GET with a body",
            format!("GET /N HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a length with zeros in front",
            format!("POST /N HTTP/1.1\r\nHost: a\r\nContent-Length: 000{length}\r\n\r\n{HIDDEN}"),
        ),
        ("a request as a chunk", chunked(coding, &hex, "")),
        (
            "a coding in capitals",
            chunked("Transfer-Encoding: CHUNKED", &hex, ""),
        ),
        (
            "a chunk with an extension",
            chunked(coding, &format!("{hex};name=value"), ""),
        ),
        (
            "a chunk with a quoted extension",
            chunked(coding, &format!("{hex};name=\"a b;c\""), ""),
        ),
        (
            "a size with zeros in front",
            chunked(coding, &format!("000{hex}"), ""),
        ),
        ("a trailer", chunked(coding, &hex, "X-Sum: 1\r\n")),
        (
            "absolute form",
            "GET http://a/N HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ),
        (
            "absolute form that contradicts Host",
            "GET http://a/N HTTP/1.1\r\nHost: b\r\n\r\n".to_owned(),
        ),
        (
            "an empty line in front",
            "\r\nGET /N HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ),
        (
            "HTTP/1.0",
            "GET /N HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
        ),
        (
            "a field that Connection names",
            "GET /N HTTP/1.1\r\nHost: a\r\nConnection: X-A\r\nX-A: 1\r\n\r\n".to_owned(),
        ),
        (
            "an upgrade that is not granted",
            "GET /N HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"
                .to_owned(),
        ),
        (
            "a request behind the last one",
            format!("GET /N HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n{HIDDEN}"),
        ),
    ]
}

fn lengths() -> Vec<(&'static str, String)> {
    vec![
        (
            "length, then coding",
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ),
        (
            "coding, then length",
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        ),
        (
            "length 0 and a coding",
            post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        ),
        (
            "two lengths",
            post("Content-Length: 5\r\nContent-Length: 6\r\n"),
        ),
        (
            "twice the same length",
            post("Content-Length: 5\r\nContent-Length: 5\r\n"),
        ),
        ("a list of lengths", post("Content-Length: 5, 5\r\n")),
        ("a length with a sign", post("Content-Length: +5\r\n")),
        ("a negative length", post("Content-Length: -5\r\n")),
        ("a hexadecimal length", post("Content-Length: 0x5\r\n")),
        ("a length with a fraction", post("Content-Length: 5.0\r\n")),
        ("an empty length", post("Content-Length:\r\n")),
        (
            "a length of more than 64 bits",
            post("Content-Length: 18446744073709551621\r\n"),
        ),
        ("a length with an underscore", post("Content_Length: 5\r\n")),
        (
            "a length that Connection names",
            post("Connection: Content-Length\r\nContent-Length: 5\r\n"),
        ),
    ]
}

fn codings() -> Vec<(&'static str, String)> {
    let length = "Content-Length: 5\r\n";
    let mut all: Vec<(&'static str, String)> = [
        ("another coding", "Transfer-Encoding: xchunked"),
        ("two codings in a field", "Transfer-Encoding: gzip, chunked"),
        ("chunked first", "Transfer-Encoding: chunked, identity"),
        ("twice chunked", "Transfer-Encoding: chunked, chunked"),
        ("identity", "Transfer-Encoding: identity"),
        ("an empty coding", "Transfer-Encoding:"),
        (
            "a coding with a parameter",
            "Transfer-Encoding: chunked;q=1",
        ),
        ("a quoted coding", "Transfer-Encoding: \"chunked\""),
        ("a vertical tab", "Transfer-Encoding: \u{b}chunked"),
        ("a form feed", "Transfer-Encoding: \u{c}chunked"),
        ("NUL behind the coding", "Transfer-Encoding: chunked\0"),
        ("space before the colon", "Transfer-Encoding : chunked"),
        ("tab before the colon", "Transfer-Encoding\t: chunked"),
        ("NUL in the name", "Transfer-Encoding\0: chunked"),
        ("an underscore", "Transfer_Encoding: chunked"),
        ("a dot", "Transfer.Encoding: chunked"),
        ("a folded value", "Transfer-Encoding:\r\n chunked"),
        ("a folded name", "X: y\r\n Transfer-Encoding: chunked"),
        ("a bare LF before it", "X: y\nTransfer-Encoding: chunked"),
        ("a bare CR before it", "X: y\rTransfer-Encoding: chunked"),
        ("a space in front", " Transfer-Encoding: chunked"),
        (
            "two codings",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        ),
    ]
    .into_iter()
    .map(|(name, field)| (name, post(&format!("{length}{field}\r\n"))))
    .collect();
    all.push((
        "a coding in HTTP/1.0",
        post("Transfer-Encoding: chunked\r\n").replacen("HTTP/1.1", "HTTP/1.0", 1),
    ));
    all
}

fn lines() -> Vec<(&'static str, String)> {
    vec![
        ("bare LFs", get("Host: a\n\n")),
        ("a bare LF behind a field", get("Host: a\nX: y\r\n")),
        ("a bare CR in a value", get("Host: a\r\nX: a\rb\r\n")),
        ("NUL in a value", get("Host: a\r\nX: a\0b\r\n")),
        ("a folded line", get("Host: a\r\nX: a\r\n b\r\n")),
        ("a folded first field", get(" X: a\r\nHost: a\r\n")),
        ("a space before the colon", get("Host: a\r\nX : y\r\n")),
        ("a field without a name", get("Host: a\r\n: y\r\n")),
        ("a field without a colon", get("Host: a\r\nXy\r\n")),
        ("no Host", get("X: y\r\n")),
        ("two Hosts", get("Host: a\r\nHost: b\r\n")),
        ("Host with a path", get("Host: a/b\r\n")),
        ("Host with a space", get("Host: a b\r\n")),
        ("Host with a user", get("Host: a@b\r\n")),
        (
            "Host that Connection names",
            get("Host: a\r\nConnection: Host\r\n"),
        ),
        ("another expectation", get("Host: a\r\nExpect: 200-ok\r\n")),
    ]
}

fn request_lines() -> Vec<(&'static str, String)> {
    [
        ("two spaces", "GET  /N HTTP/1.1"),
        ("a tab", "GET\t/N HTTP/1.1"),
        ("a space behind it", "GET /N HTTP/1.1 "),
        ("a space in the target", "GET /N b HTTP/1.1"),
        ("no version", "GET /N"),
        ("HTTP/2", "GET /N HTTP/2.0"),
        ("a version in small letters", "GET /N http/1.1"),
        ("a method with a colon", "GET: /N HTTP/1.1"),
        ("NUL in the target", "GET /N\0b HTTP/1.1"),
        ("a target without a slash", "GET N HTTP/1.1"),
        ("CONNECT", "CONNECT a:80 HTTP/1.1"),
        ("a bare CR", "GET /N\rX HTTP/1.1"),
    ]
    .into_iter()
    .map(|(name, line)| (name, format!("{line}\r\nHost: a\r\n\r\n{HIDDEN}")))
    .chain([(
        "a bare LF behind it",
        format!("GET /N HTTP/1.1\nHost: a\r\n\r\n{HIDDEN}"),
    )])
    .collect()
}

fn chunk_lines() -> Vec<(&'static str, String)> {
    [
        ("a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("a size with a sign", "+5\r\nhello\r\n0\r\n\r\n"),
        ("a negative size", "-5\r\nhello\r\n0\r\n\r\n"),
        ("a space before a size", " 5\r\nhello\r\n0\r\n\r\n"),
        ("a space behind a size", "5 \r\nhello\r\n0\r\n\r\n"),
        ("a bare LF behind a size", "5\nhello\r\n0\r\n\r\n"),
        ("a bare CR behind a size", "5\rX\nhello\r\n0\r\n\r\n"),
        ("a bare LF in an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        ("a bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        ("NUL in an extension", "5;a\0b\r\nhello\r\n0\r\n\r\n"),
        ("an empty size", "\r\nhello\r\n0\r\n\r\n"),
        ("a size that is no number", "five\r\nhello\r\n0\r\n\r\n"),
        (
            "a size of more than 64 bits",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
        ),
        (
            "a size of more than 32 bits",
            "100000005\r\nhello\r\n0\r\n\r\n",
        ),
        ("no line end behind a chunk", "5\r\nhello0\r\n\r\n"),
        ("a bare LF behind a chunk", "5\r\nhello\n0\r\n\r\n"),
        ("more than the size says", "5\r\nhello!!\r\n0\r\n\r\n"),
        ("a bare LF behind the last chunk", "0\n\r\n"),
        ("bare LFs behind the last chunk", "0\n\n"),
        ("a length as a trailer", "0\r\nContent-Length: 5\r\n\r\n"),
        (
            "a coding as a trailer",
            "0\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        ("Host as a trailer", "0\r\nHost: b\r\n\r\n"),
        (
            "a client as a trailer",
            "0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n",
        ),
        ("a trailer with a bare LF", "0\r\nX: y\n\r\n"),
        ("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n"),
        ("a trailer without a colon", "0\r\nX\r\n\r\n"),
    ]
    .into_iter()
    .map(|(name, body)| (name, chunks(body)))
    .collect()
}

/// Messages that servers may answer, refuse or cut off. None may hide a request.
fn disputed() -> Vec<(&'static str, String)> {
    let length = HIDDEN.len();
    let one = |line: &str, fields: &str, body: &str| {
        format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")
    };
    let bodied = format!("Content-Length: {length}\r\n");
    vec![
        ("HEAD with a body", one("HEAD /N", &bodied, HIDDEN)),
        ("OPTIONS of the server", one("OPTIONS *", "", "")),
        (
            "an unknown method with a body",
            one("BREW /N", &bodied, HIDDEN),
        ),
        (
            "an expectation with its body",
            one(
                "POST /N",
                &format!("Expect: 100-continue\r\n{bodied}"),
                HIDDEN,
            ),
        ),
        (
            "an upgrade with a body",
            one(
                "POST /N",
                &format!("Connection: Upgrade\r\nUpgrade: x\r\n{bodied}"),
                HIDDEN,
            ),
        ),
        (
            "letters beyond ASCII in a value",
            one("GET /N", "X: \u{ff}\r\n", ""),
        ),
        ("an escaped NUL in the target", one("GET /N%00", "", "")),
        ("dots in the target", one("GET /../../N", "", "")),
        ("a fragment in the target", one("GET /N#e", "", "")),
        ("another scheme", one("GET https://a/N", "", "")),
        ("a user in the target", one("GET http://u@a/N", "", "")),
        (
            "a field of 60 kB",
            one("GET /N", &format!("X: {}\r\n", "y".repeat(60_000)), ""),
        ),
        (
            "a hundred fields",
            one("GET /N", &"X: y\r\n".repeat(98), ""),
        ),
        (
            "half a body",
            one("POST /N", "Content-Length: 500\r\n", HIDDEN),
        ),
        (
            "half a chunk",
            one(
                "POST /N",
                "Transfer-Encoding: chunked\r\n",
                &format!("ff\r\n{HIDDEN}"),
            ),
        ),
    ]
}
