//! The encoding of Protocol Buffers: fields with their numbers
//! (<https://protobuf.dev/programming-guides/encoding/>).

pub(super) enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// Hands out the fields of a message in order; `None` if it is not one.
pub(super) fn fields<'a>(mut bytes: &'a [u8], mut each: impl FnMut(u64, Field<'a>)) -> Option<()> {
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Varint(take_varint(&mut bytes)?),
            1 => take(8, &mut bytes).map(|_| Field::Fixed)?,
            2 => {
                let length = take_varint(&mut bytes)?;
                Field::Bytes(take(length, &mut bytes)?)
            }
            5 => take(4, &mut bytes).map(|_| Field::Fixed)?,
            _ => return None,
        };
        each(tag >> 3, field);
    }
    Some(())
}

fn take<'a>(length: u64, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Appends a field with a number; 0 is left out, as the default.
pub(super) fn number(field: u8, value: u64, out: &mut Vec<u8>) {
    if value > 0 {
        out.push(field << 3);
        varint(value, out);
    }
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field with bytes, also without any: a member of a `oneof` is there when it is empty.
pub(super) fn bytes(field: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}
