//! Header edits of the configuration, with values filled in.

use std::net::{IpAddr, Ipv4Addr};

use crate::config::Placeholders;
use crate::config::model::{HeaderEdit, Recipient, Service};
use crate::engine::error::BalancerError;
use crate::http::{Edit, EditError};

/// The most edits of a back end per direction. A message may have one more, for a cookie.
const EDITS_MAX: usize = 16;

fn made<'e>(edit: &'e HeaderEdit, value: &'e [u8]) -> Result<Edit<'e>, EditError> {
    Edit::new(edit.how, &edit.name, value)
}

/// Checks all edits of a service at the start, with a sample address, so that errors do not hit
/// clients.
pub(in crate::engine) fn check(service: &Service) -> Result<(), BalancerError> {
    for backend in &service.backends {
        let placeholders = Placeholders {
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            backend: &backend.name,
            service: &service.name,
        };
        let edits = &backend.header_edits;
        for recipient in [Recipient::Client, Recipient::Server] {
            let same = edits.iter().filter(|edit| edit.recipient == recipient);
            if same.count() > EDITS_MAX {
                return Err(BalancerError::Unsupported {
                    service: service.name.clone(),
                    what: "expected at most 16 header edits per back end and direction",
                });
            }
        }
        for edit in edits {
            let mut value = Vec::new();
            edit.value.fill(&placeholders, &mut value);
            if let Err(source) = made(edit, &value) {
                return Err(BalancerError::Header {
                    service: service.name.clone(),
                    backend: backend.name.clone(),
                    field: edit.name.clone(),
                    source,
                });
            }
        }
    }
    Ok(())
}

/// Fills in the edits and passes them to `run`. Values are written to `values`; nothing else is
/// allocated.
pub(super) fn filled<'f, R>(
    edits: impl Iterator<Item = &'f HeaderEdit> + Clone,
    placeholders: &Placeholders<'_>,
    values: &mut Vec<u8>,
    run: impl FnOnce(&[Edit<'_>]) -> R,
) -> R {
    values.clear();
    let mut ends = [0; EDITS_MAX + 1];
    for (edit, end) in edits.clone().zip(&mut ends) {
        edit.value.fill(placeholders, values);
        *end = values.len();
    }
    let mut from = 0;
    let mut all = edits.zip(ends).filter_map(|(edit, end)| {
        let value = &values[from..end];
        from = end;
        // Invalid edits were rejected at the start.
        made(edit, value).ok()
    });
    let Some(first) = all.next() else {
        return run(&[]);
    };
    let mut list = [first; EDITS_MAX + 1];
    let mut count = 1;
    for (edit, entry) in all.zip(&mut list[1..]) {
        *entry = edit;
        count += 1;
    }
    run(&list[..count])
}
