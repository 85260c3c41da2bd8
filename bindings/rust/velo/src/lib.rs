// SPDX-License-Identifier: Apache-2.0
//! Messages between processes, over `velo.h`, whose promises hold here too. Each call names the one
//! of C whose man page says how it fails.
//!
//! Lifetimes are checked by the compiler: a [`Connection`] and a [`Message`] borrow their [`Port`],
//! so the port is closed after them.
//!
//! ```compile_fail,E0505
//! let port = velo::Port::open(&velo::PortOptions::new()).unwrap();
//! let connection = port.connect(port.id(), None).unwrap();
//! drop(port); // It is borrowed.
//! connection.send(b"late", 0, None).unwrap();
//! ```
//!
//! One thread at a time receives from a port, and one sends on a connection: neither is `Sync`.
//! Both are `Send`; scoped threads take connections along.
//!
//! ```compile_fail,E0277
//! let port = velo::Port::open(&velo::PortOptions::new()).unwrap();
//! std::thread::scope(|scope| {
//!     scope.spawn(|| port.try_peek().is_ok()); // Receives beside the thread that has the port.
//! });
//! ```
//!
//! Timeouts are `Option<Duration>`; `None` waits without a limit. After fork() the child must not
//! use its parent's ports.

mod port;
mod status;

pub use port::{
    Connection, Info, Interrupter, Message, NotReceived, Port, PortOptions, SendInterrupter,
};
pub use status::{last_error, Status};

/// The id of context `vpid` on node `node`; VELO_ID() of C.
pub const fn id(node: u8, vpid: u8) -> u32 {
    (node as u32) << velo_sys::VELO_ADDRESS_VPID_BITS | vpid as u32
}
