// SPDX-License-Identifier: Apache-2.0
//! Why a call did not do what it was asked.

use std::ffi::CStr;
use std::fmt;

/// A status of C other than VELO_OK. [`AGAIN`](Status::AGAIN) and [`TIMEOUT`](Status::TIMEOUT) are
/// outcomes, not failures. A library that is newer than this crate may have others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(i32);

macro_rules! statuses {
    ($($name:ident = $c:ident,)*) => {
        impl Status {
            $(
                #[doc = concat!("`", stringify!($c), "`; see velo(7).")]
                pub const $name: Status = Status(velo_sys::$c);
            )*
        }
    };
}

statuses! {
    AGAIN = velo_status_VELO_AGAIN,
    TIMEOUT = velo_status_VELO_TIMEOUT,
    ARG = velo_status_VELO_ERR_ARG,
    STATE = velo_status_VELO_ERR_STATE,
    TOO_BIG = velo_status_VELO_ERR_TOO_BIG,
    NO_PEER = velo_status_VELO_ERR_NO_PEER,
    PEER_CLOSED = velo_status_VELO_ERR_PEER_CLOSED,
    PEER_DEAD = velo_status_VELO_ERR_PEER_DEAD,
    IN_USE = velo_status_VELO_ERR_IN_USE,
    FULL = velo_status_VELO_ERR_FULL,
    ACCESS = velo_status_VELO_ERR_ACCESS,
    NO_SPACE = velo_status_VELO_ERR_NO_SPACE,
    NO_MEMORY = velo_status_VELO_ERR_NO_MEMORY,
    VERSION = velo_status_VELO_ERR_VERSION,
    CORRUPT = velo_status_VELO_ERR_CORRUPT,
    SYSTEM = velo_status_VELO_ERR_SYSTEM,
    INTERRUPTED = velo_status_VELO_ERR_INTERRUPTED,
    CANCELLED = velo_status_VELO_ERR_CANCELLED,
    MISSED = velo_status_VELO_ERR_MISSED,
}

impl Status {
    /// What a call of C returned.
    pub(crate) fn check(status: i32) -> Result<(), Status> {
        match status {
            velo_sys::velo_status_VELO_OK => Ok(()),
            status => Err(Status(status)),
        }
    }

    /// The number that C has for it.
    pub const fn code(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: velo_strerror() returns a constant string for any number.
        let text = unsafe { CStr::from_ptr(velo_sys::velo_strerror(self.0)) };
        formatter.write_str(&text.to_string_lossy())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for Status {}

/// What the last failed cold call of this thread failed for, and what to do; velo_last_error().
pub fn last_error() -> String {
    // SAFETY: The string is valid until this thread's next failing call.
    let text = unsafe { CStr::from_ptr(velo_sys::velo_last_error()) };
    text.to_string_lossy().into_owned()
}
