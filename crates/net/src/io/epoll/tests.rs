use super::Epoll;
use crate::io::accepting::faults::FailAccepts;

impl FailAccepts for Epoll {
    fn fail_accepts(&mut self, errnos: &[i32]) {
        self.accept_errors.extend(errnos);
    }
}
