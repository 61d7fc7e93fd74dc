//! What becomes of the servers of a run, and of what they do.

mod closed_folder;
mod hostile;
mod instructions;
mod odd;
mod ordinary_user;
mod refusing;
mod versions;
mod worker_settings;
mod wrong_answers;
