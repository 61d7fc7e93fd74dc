//! The addresses of subjects that are given by name.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use net::{AddressSelection, NameError};
use readings::FailureCause;

/// Why a subject has no address.
pub(crate) struct Unresolved {
    pub(crate) reason: String,
    pub(crate) cause: FailureCause,
}

/// The addresses that were chosen where a name has several. They stay for the whole run: its blocks
/// could not be compared if the name led elsewhere meanwhile.
#[derive(Debug, Default)]
pub(crate) struct ChosenAddresses {
    chosen: BTreeMap<(String, AddressSelection), SocketAddr>,
    notes: Vec<String>,
}

impl ChosenAddresses {
    /// The address of `NAME:PORT`.
    pub(crate) fn resolve(
        &mut self,
        name: &str,
        selection: AddressSelection,
    ) -> Result<SocketAddr, Unresolved> {
        let key = (name.to_owned(), selection);
        if let Some(address) = self.chosen.get(&key) {
            return Ok(*address);
        }
        let found = net::resolve(name, selection).map_err(|why| Unresolved {
            reason: format!("{name}: {why}"),
            // As where a single address does not accept a connection.
            cause: match why {
                NameError::NoneAccepts(_) => FailureCause::Subject,
                NameError::Unresolved(_) | NameError::NoAddress => FailureCause::Other,
            },
        })?;
        if let Some(note) = found.note(name) {
            self.notes.push(note);
            self.chosen.insert(key, found.address);
        }
        Ok(found.address)
    }

    /// What is to be said of the choices since the last call.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_and_told_once() {
        let name = "both.test:80".to_owned();
        let address = "127.0.0.1:80".parse().unwrap();
        let mut all = ChosenAddresses {
            chosen: BTreeMap::from([((name.clone(), AddressSelection::FirstAccepting), address)]),
            notes: vec!["told".into()],
        };
        // The name is in no table of hosts.
        let kept = all.resolve(&name, AddressSelection::FirstAccepting);
        assert_eq!(kept.ok(), Some(address));
        assert_eq!(all.take_notes(), ["told"]);
        assert!(all.take_notes().is_empty());
        let single = all.resolve("127.0.0.1:9", AddressSelection::FirstAccepting);
        assert_eq!(single.ok(), "127.0.0.1:9".parse().ok());
        assert!(all.take_notes().is_empty());
    }

    #[test]
    fn a_name_that_is_unknown_is_not_the_subjects_failure() {
        let mut all = ChosenAddresses::default();
        let error = all
            .resolve("no port", AddressSelection::FirstAccepting)
            .err()
            .unwrap();
        assert!(error.reason.starts_with("no port: cannot be resolved"));
        assert_eq!(error.cause, FailureCause::Other);
    }
}
