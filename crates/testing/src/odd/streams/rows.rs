//! Heads, fields and lengths.

use super::{Fate, Field, Frame, Framing, Row, framing, row};
use Fate::{Bad, Passes};
use Frame::{Data, Heads, PaddedData, SplitHeads};

const STATUS: &str = "RFC 9113, 8.3.2";
const PSEUDO: &str = "RFC 9113, 8.3";
const OK: Field = (b":status", b"200");

/// Heads of interim answers, and that of the final one.
#[rustfmt::skip]
pub const HEADS: [Row<&[Field]>; 22] = [
    row("200", &[&[OK]], Passes, STATUS),
    row("204", &[&[(b":status", b"204")]], Passes, "RFC 9110, 6.4.1"),
    row("304", &[&[(b":status", b"304")]], Passes, "RFC 9110, 6.4.1"),
    row("unknown status", &[&[(b":status", b"299")]], Passes, "RFC 9110, 15"),
    row("status of an unknown class", &[&[(b":status", b"999")]], Passes, "RFC 9110, 15"),
    row("status below 100", &[&[(b":status", b"099")]], Bad, "RFC 9110, 15"),
    row("status of two digits", &[&[(b":status", b"20")]], Bad, STATUS),
    row("status of four digits", &[&[(b":status", b"2000")]], Bad, STATUS),
    row("status with a sign", &[&[(b":status", b"+200")]], Bad, STATUS),
    row("status of letters", &[&[(b":status", b"abc")]], Bad, STATUS),
    row("status with a reason", &[&[(b":status", b"200 OK")]], Bad, STATUS),
    row("empty status", &[&[(b":status", b"")]], Bad, STATUS),
    row("no status", &[&[]], Bad, STATUS),
    row("status twice", &[&[OK, OK]], Bad, PSEUDO),
    row("status behind a field", &[&[(b"x-a", b"b"), OK]], Bad, PSEUDO),
    row("`:path`", &[&[OK, (b":path", b"/")]], Bad, PSEUDO),
    row("unknown pseudo-field", &[&[OK, (b":a", b"b")]], Bad, PSEUDO),
    row("interim answers first", &[&[(b":status", b"100")], &[(b":status", b"103"), (b"link", b"<a>")], &[OK]], Passes, "RFC 9113, 8.1"),
    row("interim answer with a length first", &[&[(b":status", b"103"), (b"content-length", b"7")], &[OK]], Passes, "RFC 9110, 8.6"),
    row("interim answer with a bad field first", &[&[(b":status", b"103"), (b"X-A", b"b")], &[OK]], Bad, "RFC 9113, 8.2.1"),
    row("101", &[&[(b":status", b"101")]], Bad, "RFC 9113, 8.6"),
    row("101 first", &[&[(b":status", b"101")], &[OK]], Bad, "RFC 9113, 8.6"),
];

const NAME: &str = "RFC 9113, 8.2.1";
const HOP: &str = "RFC 9113, 8.2.2";

/// Fields of the final head.
#[rustfmt::skip]
pub const FIELDS: [Row<Field>; 30] = [
    row("nothing more", &[], Passes, "RFC 9113, 8.3.2"),
    row("field", &[(b"x-a", b"b")], Passes, "RFC 9110, 5.1"),
    row("empty value", &[(b"x-a", b"")], Passes, "RFC 9110, 5.5"),
    row("value that is not ASCII", &[(b"x-a", b"\xe9")], Passes, "RFC 9110, 5.5"),
    row("tab in a value", &[(b"x-a", b"a\tb")], Passes, "RFC 9110, 5.5"),
    row("set-cookie twice", &[(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")], Passes, "RFC 9110, 5.3"),
    row("content_length", &[(b"content_length", b"3")], Passes, "RFC 9110, 5.1"),
    row("name in capitals", &[(b"X-A", b"b")], Bad, NAME),
    row("capital in a name", &[(b"x-abcdefghijklmnopqR", b"b")], Bad, NAME),
    row("blank in a name", &[(b"x a", b"b")], Bad, NAME),
    row("blank behind a name", &[(b"x-a ", b"b")], Bad, NAME),
    row("colon in a name", &[(b"x:a", b"b")], Bad, NAME),
    row("line end in a name", &[(b"x\r\na", b"b")], Bad, NAME),
    row("name that is no token", &[(b"x(a)", b"b")], Bad, "RFC 9110, 5.1"),
    row("name that is not ASCII", &[(b"x\xe9", b"b")], Bad, NAME),
    row("no name", &[(b"", b"b")], Bad, "RFC 9110, 5.1"),
    row("CR in a value", &[(b"x-a", b"a\rb")], Bad, NAME),
    row("LF in a value", &[(b"x-a", b"a\nb")], Bad, NAME),
    row("NUL in a value", &[(b"x-a", b"a\0b")], Bad, NAME),
    row("another field in a value", &[(b"x-a", b"a\r\nset-cookie: b")], Bad, NAME),
    row("control character in a value", &[(b"x-a", b"a\x01b")], Bad, "RFC 9110, 5.5"),
    row("DEL in a value", &[(b"x-a", b"a\x7fb")], Bad, "RFC 9110, 5.5"),
    row("blank before a value", &[(b"x-a", b" b")], Bad, NAME),
    row("tab behind a value", &[(b"x-a", b"b\t")], Bad, NAME),
    row("connection", &[(b"connection", b"close")], Bad, HOP),
    row("keep-alive", &[(b"keep-alive", b"timeout=5")], Bad, HOP),
    row("proxy-connection", &[(b"proxy-connection", b"close")], Bad, HOP),
    row("transfer-encoding", &[(b"transfer-encoding", b"chunked")], Bad, HOP),
    row("upgrade", &[(b"upgrade", b"h2c")], Bad, HOP),
    row("te", &[(b"te", b"gzip")], Bad, HOP),
];

const CL: &str = "RFC 9110, 8.6";
const LENGTH: &str = "RFC 9113, 8.1.1";
const FIVE: &[Field] = &[(b"content-length", b"5")];
const HELLO: &[Frame] = &[Heads(false), Data("hello", true)];

/// Whole answers, with what they say of their length.
#[rustfmt::skip]
pub const LENGTHS: [Framing; 18] = [
    framing("length", FIVE, HELLO, Passes, CL).plain(),
    framing("no length", &[], HELLO, Passes, "RFC 9113, 8.1").plain(),
    framing("nothing", &[], &[Heads(true)], Passes, "RFC 9113, 8.1").plain().empty(),
    framing("length 0", &[(b"content-length", b"0")], &[Heads(true)], Passes, CL).plain().empty(),
    framing("length 0, and an empty frame", &[(b"content-length", b"0")], &[Heads(false), Data("", true)], Passes, CL).plain().empty(),
    framing("length with zeros in front", &[(b"content-length", b"005")], HELLO, Passes, CL).plain(),
    framing("end in a frame of its own", FIVE, &[Heads(false), Data("hello", false), Data("", true)], Passes, "RFC 9113, 8.1").plain(),
    framing("several frames", FIVE, &[Heads(false), Data("he", false), Data("", false), Data("llo", true)], Passes, "RFC 9113, 8.1").plain(),
    framing("padding", FIVE, &[Heads(false), PaddedData("hel", false), PaddedData("lo", true)], Passes, "RFC 9113, 6.1").plain(),
    framing("head in several frames", FIVE, &[SplitHeads(false), Data("hello", true)], Passes, "RFC 9113, 6.10").plain(),
    framing("same length twice", &[(b"content-length", b"5"), (b"content-length", b"5")], HELLO, Bad, CL).plain().over_a_load(Passes),
    framing("two lengths", &[(b"content-length", b"5"), (b"content-length", b"6")], HELLO, Bad, LENGTH).plain(),
    framing("list of lengths", &[(b"content-length", b"5, 5")], HELLO, Bad, CL).plain(),
    framing("length with a sign", &[(b"content-length", b"+5")], HELLO, Bad, LENGTH).plain(),
    framing("negative length", &[(b"content-length", b"-5")], HELLO, Bad, LENGTH).plain(),
    framing("empty length", &[(b"content-length", b"")], HELLO, Bad, LENGTH).plain(),
    framing("length of letters", &[(b"content-length", b"abc")], HELLO, Bad, LENGTH).plain(),
    framing("length of 2^63 bytes", &[(b"content-length", b"9223372036854775808")], HELLO, Bad, LENGTH).plain(),
];
