//! Chooses back ends by the server name of a client's TLS session, which is not terminated here.

use net::{Buf, ConnId, Io};

use super::Worker;
use super::connection::Role;
use crate::sni::{HELLO_BYTES_MAX, Hello, matches, read_hello};

impl<I: Io> Worker<I> {
    /// Takes data of a client whose ClientHello is not complete. At most [`HELLO_BYTES_MAX`] bytes and
    /// a receive buffer are kept.
    pub(in crate::engine) fn peek_data(&mut self, conn: ConnId, buf: Buf) {
        let connection = &mut self.connections[conn.slot()];
        let service = connection.service as usize;
        let Some(client) = connection.client.as_deref_mut() else {
            return self.io.recycle(buf);
        };
        connection.bytes += buf.len() as u64;
        client.header.extend_from_slice(self.io.bytes(&buf));
        self.io.recycle(buf);
        let name = match read_hello(&client.header) {
            Hello::More if client.header.len() <= HELLO_BYTES_MAX => return,
            Hello::More | Hello::Malformed => {
                self.state(service).bad_requests.add(1);
                return self.end_client(conn);
            }
            Hello::Complete(name) => name,
        };
        let fits = |names: &[String]| names.iter().any(|one| matches(one, name.as_deref()));
        let rule = self.services[service]
            .sni
            .iter()
            .find(|(names, _)| fits(names));
        let Some((_, others)) = rule else {
            self.state(service).refused.add(1);
            return self.end_client(conn);
        };
        client.tried.clone_from(others);
        connection.role = Role::Waiting;
        self.seek_backend(conn);
    }
}
