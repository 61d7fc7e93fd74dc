//! Bytes that break a rule.

use super::*;

fn error_of(role: Role, input: &[u8]) -> WsError {
    match read(role, input).pop() {
        Some(Seen::Error(error)) => error,
        other => panic!("{other:?} of {input:x?}"),
    }
}

#[test]
fn each_broken_rule_has_its_name() {
    let client: [(&[u8], WsError); 23] = [
        (b"\xc1\x00", WsError::Reserved),
        (b"\xa1\x00", WsError::Reserved),
        (b"\x91\x00", WsError::Reserved),
        (b"\x83\x00", WsError::Opcode),
        (b"\x8b\x00", WsError::Opcode),
        (b"\x81\x80", WsError::Masked),
        (b"\x89\x80", WsError::Masked),
        (b"\x82\x7e\x00\x7d", WsError::LengthForm),
        (b"\x82\x7f\0\0\0\0\0\0\xff\xff", WsError::LengthForm),
        (b"\x82\x7f\x80\0\0\0\0\0\0\0", WsError::Length),
        (
            b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
            WsError::TooLong,
        ),
        (b"\x82\x7e\x03\xe9", WsError::TooLong),
        (b"\x89\x7e", WsError::LongControl),
        (b"\x88\x7f", WsError::LongControl),
        (b"\x09\x00", WsError::FragmentedControl),
        (b"\x80\x00", WsError::Continuation),
        (b"\x01\x01a\x01\x01b", WsError::Interleaved),
        (b"\x81\x02\xc3\x28", WsError::Utf8),
        (b"\x81\x01\xc3", WsError::Utf8),
        (b"\x88\x01\x03", WsError::CloseLength),
        (b"\x88\x02\x03\xed", WsError::CloseCode),
        (b"\x88\x02\x07\xd0", WsError::CloseCode),
        (b"\x88\x03\x03\xe8\xff", WsError::CloseUtf8),
    ];
    for (input, expected) in client {
        assert_eq!(error_of(Role::Client, input), expected, "{input:x?}");
    }
    assert_eq!(error_of(Role::Server, b"\x81\x00"), WsError::NotMasked);
}

#[test]
fn wrong_text_is_told_before_its_message_ends() {
    // A surrogate, in the first of two fragments.
    assert_eq!(
        error_of(Role::Client, b"\x01\x03\xed\xa0\x80"),
        WsError::Utf8
    );
    assert_eq!(error_of(Role::Client, b"\x01\x05ab\xf5"), WsError::Utf8);
}

#[test]
fn codes_are_those_of_the_registry() {
    for code in [999, 1004, 1005, 1006, 1015, 1016, 2999, 5000] {
        assert!(!CloseCode(code).may_be_sent(), "{code}");
    }
    for code in [1000, 1003, 1007, 1014, 3000, 4999] {
        assert!(CloseCode(code).may_be_sent(), "{code}");
    }
}

#[test]
fn fragments_without_an_end_are_bounded() {
    let mut input = b"\x02\x64".to_vec();
    input.extend_from_slice(&[0; 100]);
    let fragment = [b"\x00\x64".to_vec(), vec![0; 100]].concat();
    for _ in 0..20 {
        input.extend_from_slice(&fragment);
    }
    assert_eq!(error_of(Role::Client, &input), WsError::TooLong);
    // Empty ones take no memory.
    let mut reader = Reader::new(Role::Client, 1000, None);
    let input = [b"\x02\x00".to_vec(), b"\x00\x00".repeat(1 << 20)].concat();
    assert_eq!(reader.next(&mut &input[..]), Ok(None));
}

#[test]
fn a_length_alone_takes_no_memory() {
    let mut reader = Reader::new(Role::Client, usize::MAX, None);
    let input = b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff0123456789";
    assert_eq!(reader.next(&mut &input[..]), Ok(None));
    assert!(!reader.is_at_start());
}
