//! Changes of header fields that the configuration asks for.

use super::Direction;
use super::fields::{Field, Fields, is_control, is_token};
use super::head_info::{FieldKind, field_kind};
use super::target::is_authority;

/// How a header field is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditKind {
    /// A further field is put beside those of the same name.
    Add,
    /// The value is put to the end of the last field of that name, behind a comma; where there is
    /// none, it is added.
    Append,
    /// It replaces all fields of that name.
    Set,
}

/// One change of a header field, its value filled in. Those of a message are made in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'e> {
    how: EditKind,
    name: &'e str,
    value: &'e [u8],
}

/// Why a header field cannot be changed in that way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The name is no token.
    #[error("expected a field's name: letters, digits and !#$%&'*+-.^_`|~")]
    Name,
    /// The value has a line end or another control character, or blanks around it.
    #[error("expected a value without control characters, and without blanks around it")]
    Value,
    /// The field says where a message ends or belongs to one connection.
    #[error(
        "the field says where a message ends or belongs to one connection; it cannot be edited"
    )]
    Fixed,
    /// Host can only be set, to a host with or without a port.
    #[error("Host can only be set, and to a host with or without a port")]
    Host,
}

impl<'e> Edit<'e> {
    /// A change. It costs a look at each byte and can be made for every message.
    ///
    /// # Errors
    /// When the change could make a message ambiguous.
    pub fn new(how: EditKind, name: &'e str, value: &'e [u8]) -> Result<Edit<'e>, EditError> {
        if !is_token(name.as_bytes()) {
            return Err(EditError::Name);
        }
        if value.iter().any(|byte| is_control(*byte)) || value.trim_ascii() != value {
            return Err(EditError::Value);
        }
        let how = match field_kind(Direction::Request, name.as_bytes()) {
            FieldKind::Other if name.eq_ignore_ascii_case("trailer") => {
                return Err(EditError::Fixed);
            }
            // Cookies contain commas: two fields cannot be made one (RFC 9110 5.3).
            FieldKind::Other
                if name.eq_ignore_ascii_case("set-cookie") && how == EditKind::Append =>
            {
                EditKind::Add
            }
            FieldKind::Other => how,
            FieldKind::Host if how == EditKind::Set && is_authority(value) => how,
            FieldKind::Host => return Err(EditError::Host),
            _ => return Err(EditError::Fixed),
        };
        Ok(Edit { how, name, value })
    }

    pub(super) fn is(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name.as_bytes())
    }

    fn separator(&self) -> &'static [u8] {
        // RFC 6265 5.4; every other list is divided by commas (RFC 9110 5.6.1).
        match self.is(b"cookie") {
            true => b"; ",
            false => b", ",
        }
    }
}

/// Whether all fields of that name are replaced.
fn replaced(edits: &[Edit<'_>], name: &[u8]) -> bool {
    edits
        .iter()
        .any(|edit| edit.how == EditKind::Set && edit.is(name))
}

/// What is appended to the last field of that name which was there before: the edits of that name
/// up to the first that puts a field behind it.
fn appended<'e>(edits: &'e [Edit<'e>], name: &'e [u8]) -> impl Iterator<Item = &'e Edit<'e>> {
    edits
        .iter()
        .filter(move |edit| edit.is(name))
        .take_while(|edit| edit.how == EditKind::Append)
}

/// What becomes of a field on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep<'a> {
    No,
    /// As it came.
    Line,
    /// With another value.
    Value(&'a [u8]),
}

/// Appends the fields that are kept, and those that the edits make.
pub(super) fn write_fields<'a>(
    fields: Fields<'a>,
    edits: &[Edit<'_>],
    keep: impl Fn(&Field<'a>) -> Keep<'a>,
    out: &mut Vec<u8>,
) {
    let mut rest = fields;
    while let Some(field) = rest.next() {
        let kept = keep(&field);
        if kept == Keep::No || replaced(edits, field.name) {
            continue;
        }
        let mut appends = appended(edits, field.name).peekable();
        // Fields of a name that can be edited are kept all or none.
        let joins = appends.peek().is_some() && !rest.has(field.name);
        let value = match kept {
            Keep::Value(value) => value,
            _ if joins => field.value,
            _ => {
                out.extend_from_slice(field.line);
                continue;
            }
        };
        begin_field(field.name, value, out);
        if joins {
            appends.for_each(|edit| join(edit, out));
        }
        out.extend_from_slice(b"\r\n");
    }
    let was_there = |name: &[u8]| {
        !replaced(edits, name)
            && fields
                .into_iter()
                .any(|field| field.is(name) && keep(&field) != Keep::No)
    };
    write_new(edits, was_there, out);
}

/// Appends the fields that are new. `was_there` tells whether a field of that name was kept.
fn write_new(edits: &[Edit<'_>], was_there: impl Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
    for (at, edit) in edits.iter().enumerate() {
        let name = edit.name.as_bytes();
        let (before, behind) = (&edits[..at], &edits[at + 1..]);
        if replaced(behind, name) {
            continue;
        }
        // An appended value stands behind the one before it, wherever that is.
        let joined = before.iter().any(|other| other.is(name)) || was_there(name);
        if edit.how == EditKind::Append && joined {
            continue;
        }
        begin_field(name, edit.value, out);
        appended(behind, name).for_each(|edit| join(edit, out));
        out.extend_from_slice(b"\r\n");
    }
}

fn begin_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
}

fn join(edit: &Edit<'_>, out: &mut Vec<u8>) {
    // Nothing is put behind an empty value.
    if !out.ends_with(b": ") {
        out.extend_from_slice(edit.separator());
    }
    out.extend_from_slice(edit.value);
}
