//! The PROXY protocol header of clients.

use net::proxy_protocol::{self, Header, Parsed};
use net::{Buf, ConnId, Io};

use super::Worker;
use super::connection::Role;

impl<I: Io> Worker<I> {
    /// Takes data of a client whose header is not complete. At most
    /// [`proxy_protocol::HEADER_BYTES_MAX`] bytes are kept.
    pub(in crate::engine) fn proxy_header_data(&mut self, conn: ConnId, mut buf: Buf) {
        let Some(client) = &mut self.connections[conn.slot()].client else {
            return self.io.recycle(buf);
        };
        let before = client.header.len();
        let bytes = self.io.bytes(&buf);
        // A longer header is an error, and need not be seen whole.
        let more = &bytes[..bytes.len().min(proxy_protocol::HEADER_BYTES_MAX)];
        client.header.extend_from_slice(more);
        match proxy_protocol::parse(&client.header) {
            Ok(Parsed::More) => self.io.recycle(buf),
            Ok(Parsed::Done { taken, header }) => {
                client.header = Vec::new();
                if let Header::Proxied { src, dst } = header {
                    (client.address, client.local) = (src, dst);
                }
                let address = client.address;
                let service = self.connections[conn.slot()].service as usize;
                let trusted = self.services[service].trusts(address.ip());
                if let Some(client) = &mut self.connection(conn).client {
                    client.trusted = trusted;
                }
                if !self.services[service].rules.permit(address.ip()) {
                    self.io.recycle(buf);
                    self.state(service).denied.add(1);
                    return self.end_client(conn);
                }
                let len = buf.len();
                // All earlier buffers were header.
                buf.keep(taken - before..len);
                self.connection(conn).role = Role::Waiting;
                self.begin(conn);
                self.data_after_header(conn, buf);
            }
            Err(_) => {
                self.io.recycle(buf);
                let service = self.connections[conn.slot()].service as usize;
                self.state(service).bad_requests.add(1);
                self.end_client(conn);
            }
        }
    }

    fn data_after_header(&mut self, conn: ConnId, buf: Buf) {
        // `begin` may have closed it.
        if buf.is_empty() || self.connection(conn).conn != Some(conn) {
            return self.io.recycle(buf);
        }
        self.data(conn, buf);
    }
}
