//! Frames behind and between heads, and moments of closing.

use super::{Fate, Field, Frame, Framing, framing};
use Fate::{Bad, Broken, Passes, Refused};
use Frame::{Close, Data, Elsewhere, Fields, GoAway, Heads, Raw, RawOfConnection, Reset};

const LENGTH: &str = "RFC 9113, 8.1.1";
const FORM: &str = "RFC 9113, 8.1";
const FIVE: &[Field] = &[(b"content-length", b"5")];
const OK: &[Field] = &[(b":status", b"200")];
const SUM: &[Field] = &[(b"x-sum", b"1")];

/// An answer with a trailer section.
macro_rules! trailer {
    ($name:literal, $value:literal) => {
        &[
            Heads(false),
            Data("hello", false),
            Fields(&[(b"x-sum", b"1"), ($name, $value)], true),
        ]
    };
}

/// Frames that say too much, too little, or in the wrong order.
#[rustfmt::skip]
pub const FRAMES: [Framing; 32] = [
    framing("trailer", &[], &[Heads(false), Data("hello", false), Fields(SUM, true)], Passes, FORM),
    framing("trailer alone", &[], &[Heads(false), Fields(SUM, true)], Passes, FORM).empty(),
    framing("trailer that does not end it", &[], &[Heads(false), Data("hello", false), Fields(SUM, false), Data("", true)], Broken, FORM),
    framing("trailer with `:status`", &[], trailer!(b":status", b"200"), Broken, "RFC 9113, 8.1"),
    framing("trailer with a name in capitals", &[], trailer!(b"X-A", b"b"), Broken, "RFC 9113, 8.2.1"),
    framing("trailer with a line end", &[], trailer!(b"x-a", b"b\r\nset-cookie: c"), Broken, "RFC 9113, 8.2.1"),
    framing("trailer with connection", &[], trailer!(b"connection", b"close"), Broken, "RFC 9113, 8.2.2"),
    framing("less content than its length", FIVE, &[Heads(false), Data("hel", true)], Broken, LENGTH),
    framing("length, and no content", FIVE, &[Heads(true)], Bad, LENGTH),
    framing("more content than its length", FIVE, &[Heads(false), Data("hello!", true)], Broken, LENGTH),
    framing("trailer before the length", FIVE, &[Heads(false), Data("hel", false), Fields(SUM, true)], Broken, LENGTH),
    framing("content before the head", &[], &[Data("hello", false), Heads(true)], Bad, FORM),
    framing("content alone", &[], &[Data("hello", true)], Bad, FORM),
    framing("interim answer alone", &[], &[Fields(&[(b":status", b"103")], true)], Bad, FORM),
    framing("second final head", &[], &[Heads(false), Fields(OK, false), Data("hello", true)], Broken, FORM),
    framing("interim answer behind the head", &[], &[Heads(false), Fields(&[(b":status", b"103")], false), Data("hello", true)], Broken, FORM),
    framing("content behind the end", FIVE, &[Heads(false), Data("hello", true), Data("more", true)], Passes, "RFC 9113, 5.1"),
    framing("head behind the end", FIVE, &[Heads(false), Data("hello", true), Fields(OK, true)], Passes, "RFC 9113, 5.1"),
    framing("PING and SETTINGS between", FIVE, &[Heads(false), RawOfConnection(6, 0, b"12345678"), RawOfConnection(4, 0, b""), Data("hello", true)], Passes, "RFC 9113, 5.5"),
    framing("frame of an unknown type between", FIVE, &[Heads(false), Raw(0x42, 0xff, b"abc"), Data("hello", true)], Passes, "RFC 9113, 5.5"),
    framing("PRIORITY between", FIVE, &[Heads(false), Raw(2, 0, &[0, 0, 0, 0, 16]), Data("hello", true)], Passes, "RFC 9113, 5.3.2"),
    framing("window opened by 0", FIVE, &[Heads(false), Raw(8, 0, &[0; 4]), Data("hello", true)], Broken, "RFC 9113, 6.9"),
    framing("window opened beyond 2^31", FIVE, &[Heads(false), Raw(8, 0, &[0x7f, 0xff, 0xff, 0xff]), Raw(8, 0, &[0x7f, 0xff, 0xff, 0xff]), Data("hello", true)], Broken, "RFC 9113, 6.9.1"),
    framing("frame in a head", &[], &[Raw(1, 0, &[0x88]), Data("hello", true)], Bad, "RFC 9113, 6.10"),
    framing("head that cannot be decoded", &[], &[Raw(1, 0x5, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff])], Bad, "RFC 9113, 4.3"),
    framing("head on a stream that nobody opened", &[], &[Elsewhere(OK, true)], Bad, "RFC 9113, 5.1.1"),
    framing("PUSH_PROMISE", &[], &[Raw(5, 0x4, &[0, 0, 0, 2, 0x82])], Bad, "RFC 9113, 8.4"),
    framing("SETTINGS of 5 bytes", &[], &[RawOfConnection(4, 0, b"12345")], Bad, "RFC 9113, 6.5"),
    framing("SETTINGS on a stream", &[], &[Raw(4, 0, b"")], Bad, "RFC 9113, 6.5"),
    framing("content on stream 0", &[], &[RawOfConnection(0, 0, b"hello")], Bad, "RFC 9113, 6.1"),
    framing("padding longer than its frame", FIVE, &[Heads(false), Raw(0, 0x9, &[9, b'a'])], Broken, "RFC 9113, 6.1"),
    framing("frame of 16,385 bytes", &[], &[Raw(0x42, 0, &[0; 16_385])], Bad, "RFC 9113, 4.2"),
];

const RESET: &str = "RFC 9113, 5.4.2";
const GOAWAY: &str = "RFC 9113, 6.8";
const END: &str = "RFC 9113, 5.4";
/// What a server did not process is sent again, at most twice.
const NOT_PROCESSED: Fate = Refused(&[503]);

/// When a stream or a connection ends.
#[rustfmt::skip]
pub const CLOSINGS: [Framing; 26] = [
    framing("reset before the head: NO_ERROR", &[], &[Reset(0)], Bad, RESET),
    framing("reset before the head: PROTOCOL_ERROR", &[], &[Reset(1)], Bad, RESET),
    framing("reset before the head: INTERNAL_ERROR", &[], &[Reset(2)], Bad, RESET),
    framing("reset before the head: REFUSED_STREAM", &[], &[Reset(7)], NOT_PROCESSED, "RFC 9113, 8.7").over_a_load(Bad),
    framing("reset before the head: CANCEL", &[], &[Reset(8)], Bad, RESET),
    framing("reset before the head: ENHANCE_YOUR_CALM", &[], &[Reset(11)], Bad, RESET),
    framing("reset before the head: HTTP_1_1_REQUIRED", &[], &[Reset(13)], Bad, RESET),
    framing("reset before the head: unknown code", &[], &[Reset(0x4242)], Bad, "RFC 9113, 7"),
    framing("reset behind the head", FIVE, &[Heads(false), Reset(2)], Broken, RESET),
    framing("reset behind the head: REFUSED_STREAM", FIVE, &[Heads(false), Reset(7)], Broken, "RFC 9113, 8.7"),
    framing("reset in the content", FIVE, &[Heads(false), Data("hel", false), Reset(2)], Broken, RESET),
    framing("reset in the content: NO_ERROR", FIVE, &[Heads(false), Data("hel", false), Reset(0)], Broken, RESET),
    framing("reset in content without a length", &[], &[Heads(false), Data("hel", false), Reset(8)], Broken, RESET),
    framing("reset before the trailer", &[], &[Heads(false), Data("hello", false), Reset(8)], Broken, RESET),
    framing("reset behind the end: NO_ERROR", FIVE, &[Heads(false), Data("hello", true), Reset(0)], Passes, FORM),
    framing("reset behind the end: CANCEL", FIVE, &[Heads(false), Data("hello", true), Reset(8)], Passes, FORM),
    framing("GOAWAY that serves it, then the answer", FIVE, &[GoAway(0, true), Heads(false), Data("hello", true)], Passes, GOAWAY),
    framing("GOAWAY that does not serve it", &[], &[GoAway(0, false)], NOT_PROCESSED, GOAWAY).over_a_load(Bad),
    framing("GOAWAY that serves it, then the end", &[], &[GoAway(2, true), Close], Bad, GOAWAY),
    framing("GOAWAY in the content that does not serve it", FIVE, &[Heads(false), Data("hel", false), GoAway(0, false), Data("lo", true)], Broken, GOAWAY),
    framing("GOAWAY in the content that serves it", FIVE, &[Heads(false), Data("hel", false), GoAway(0, true), Data("lo", true), Close], Passes, GOAWAY),
    framing("end of the connection before the head", &[], &[Close], Bad, END),
    framing("end of the connection behind the head", FIVE, &[Heads(false), Close], Broken, END),
    framing("end of the connection in the content", &[], &[Heads(false), Data("hel", false), Close], Broken, END),
    framing("end of the connection before the last frame", FIVE, &[Heads(false), Data("hello", false), Close], Passes, END).over_a_load(Broken),
    framing("end of the connection behind the end", FIVE, &[Heads(false), Data("hello", true), Close], Passes, END),
];
