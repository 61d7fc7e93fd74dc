//! How the servers of the subjects were set, in words that mean the same for each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Condition;

/// The settings of all subjects' servers under one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsReading {
    pub condition: Condition,
    /// Each subject, as declared.
    pub subjects: Vec<SubjectSettings>,
}

/// The settings of one subject's servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectSettings {
    pub subject: String,
    /// The servers of its path, the one that is asked first.
    pub servers: Vec<ServerSettings>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSettings {
    pub server: String,
    pub recipe: String,
    /// Its version, where it could be read.
    pub version: Option<String>,
    /// What its recipe tells, by the words of recipes: `workers`, `keepalive_client`,
    /// `keepalive_upstream`, `access_log`, `caching`, `compression`, `tls`.
    pub settings: BTreeMap<String, String>,
}
