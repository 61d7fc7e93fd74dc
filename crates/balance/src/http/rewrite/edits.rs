//! Header edits of the configuration.

use crate::http::Direction;
use crate::http::guarded::same_folded;
use net::http::{is_control, is_token};

use crate::http::head::fields::{Field, Fields};
use crate::http::head::head_info::{FieldKind, field_kind};
use crate::http::head::target::is_authority;

/// How a header field is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditKind {
    /// Adds a field, beside any of the same name.
    Add,
    /// Appends to the last field of that name, after a comma; adds one if there is none.
    Append,
    /// Replaces all fields of that name.
    Set,
}

/// A header edit with its value. The edits of a message apply in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'e> {
    how: EditKind,
    name: &'e str,
    value: &'e [u8],
}

/// Why an edit is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("expected a field's name: letters, digits and !#$%&'*+-.^_`|~")]
    Name,
    #[error("expected a value without control characters, and without blanks around it")]
    Value,
    #[error(
        "the field says where a message ends or belongs to one connection; it cannot be edited"
    )]
    Fixed,
    #[error("Host can only be set, and to a host with or without a port")]
    Host,
}

impl<'e> Edit<'e> {
    /// A validated edit; cheap enough to build per message.
    ///
    /// # Errors
    /// When the edit could make a message ambiguous.
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
            // Cookies contain commas: two fields cannot be joined (RFC 9110 5.3).
            FieldKind::Other
                if name.eq_ignore_ascii_case("set-cookie") && how == EditKind::Append =>
            {
                EditKind::Add
            }
            FieldKind::Other | FieldKind::MaxForwards => how,
            FieldKind::Host if how == EditKind::Set && is_authority(value) => how,
            FieldKind::Host => return Err(EditError::Host),
            _ => return Err(EditError::Fixed),
        };
        Ok(Edit { how, name, value })
    }

    pub(in crate::http) fn is(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name.as_bytes())
    }

    /// Whether a name is another spelling of this edit's field. Some servers treat both as one
    /// name.
    pub(in crate::http) fn is_spelt_as(&self, name: &[u8]) -> bool {
        same_folded(name, self.name.as_bytes()) && !self.is(name)
    }

    fn separator(&self) -> &'static [u8] {
        // RFC 6265 5.4; other lists are separated by commas (RFC 9110 5.6.1).
        match self.is(b"cookie") {
            true => b"; ",
            false => b", ",
        }
    }
}

fn replaced(edits: &[Edit<'_>], name: &[u8]) -> bool {
    edits
        .iter()
        .any(|edit| edit.how == EditKind::Set && edit.is(name))
}

/// The edits that append to the last existing field of that name: those before the first that adds
/// a field.
fn appended<'e>(edits: &'e [Edit<'e>], name: &'e [u8]) -> impl Iterator<Item = &'e Edit<'e>> {
    edits
        .iter()
        .filter(move |edit| edit.is(name))
        .take_while(|edit| edit.how == EditKind::Append)
}

/// What happens to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Keep<'a> {
    No,
    /// Unchanged.
    Line,
    /// With another value.
    Value(&'a [u8]),
}

/// Writes the kept fields and the edits.
pub(in crate::http) fn write_fields<'a: 'k, 'k>(
    fields: Fields<'a>,
    edits: &[Edit<'_>],
    keep: impl Fn(&Field<'a>) -> Keep<'k>,
    out: &mut Vec<u8>,
) {
    let mut rest = fields;
    while let Some(field) = rest.next() {
        let kept = keep(&field);
        if kept == Keep::No || replaced(edits, field.name) {
            continue;
        }
        let mut appends = appended(edits, field.name).peekable();
        // Editable fields of one name are kept all or none.
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

/// Writes new fields. `was_there`: whether a field of that name was kept.
fn write_new(edits: &[Edit<'_>], was_there: impl Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
    for (at, edit) in edits.iter().enumerate() {
        let name = edit.name.as_bytes();
        let (before, behind) = (&edits[..at], &edits[at + 1..]);
        if replaced(behind, name) {
            continue;
        }
        // An appended value follows the previous one, wherever that is.
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
    // No separator after an empty value.
    if !out.ends_with(b": ") {
        out.extend_from_slice(edit.separator());
    }
    out.extend_from_slice(edit.value);
}
