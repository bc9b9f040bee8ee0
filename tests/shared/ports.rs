//! Ports for servers that cannot choose their own.

use std::net::{Ipv4Addr, TcpListener};

/// Distinct loopback ports that are currently free.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
