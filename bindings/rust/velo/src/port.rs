// SPDX-License-Identifier: Apache-2.0
//! Ports, connections and messages.

use std::ffi::CString;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::os::raw::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::time::Duration;

use velo_sys as sys;

use crate::Status;

/// How C has a time; one that it cannot count is as good as for ever.
fn nanoseconds(timeout: Option<Duration>) -> i64 {
    match timeout {
        None => i64::from(sys::VELO_FOREVER),
        Some(time) => i64::try_from(time.as_nanos()).unwrap_or(i64::MAX),
    }
}

fn no_message() -> sys::velo_msg {
    sys::velo_msg {
        data: ptr::null(),
        len_bytes: 0,
        source: 0,
        generation: 0,
        user: ptr::null_mut(),
        tag: 0,
        reserved: 0,
    }
}

/// How a port is to be opened; struct velo_port_attr, with its defaults to begin with.
#[derive(Clone, Debug)]
pub struct PortOptions {
    domain: Option<String>,
    group: Option<String>,
    node: c_int,
    vpid: c_int,
    depth_slots: u32,
    data_bytes: usize,
    conns_max: u32,
    flags: u32,
    linger_ns: i64,
}

impl Default for PortOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl PortOptions {
    /// The defaults: any free context of node 0 in the domain of this user.
    pub fn new() -> Self {
        PortOptions {
            domain: None,
            group: None,
            node: 0,
            vpid: sys::VELO_VPID_ANY,
            depth_slots: 0,
            data_bytes: 0,
            conns_max: 0,
            flags: 0,
            linger_ns: 0,
        }
    }
    /// Name of the domain.
    pub fn domain(mut self, name: &str) -> Self {
        self.domain = Some(name.into());
        self
    }
    /// Name of the group whose members may connect too.
    pub fn group(mut self, name: &str) -> Self {
        self.group = Some(name.into());
        self
    }
    /// Node id.
    pub fn node(mut self, node: u8) -> Self {
        self.node = node.into();
        self
    }
    /// Context id.
    pub fn vpid(mut self, vpid: u8) -> Self {
        self.vpid = vpid.into();
        self
    }
    /// Slots in each sender's ring.
    pub fn depth_slots(mut self, slots: u32) -> Self {
        self.depth_slots = slots;
        self
    }
    /// Bytes for long messages in each sender's ring.
    pub fn data_bytes(mut self, bytes: usize) -> Self {
        self.data_bytes = bytes;
        self
    }
    /// Senders that may be connected at once.
    pub fn conns_max(mut self, conns: u32) -> Self {
        self.conns_max = conns;
        self
    }
    /// Longest wait of closing for messages to leave over a network; by itself half a second.
    pub fn linger(mut self, timeout: Duration) -> Self {
        self.linger_ns = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        self
    }
    /// Receiving tells of senders that are gone; VELO_PORT_DEPARTURES.
    pub fn departures(mut self) -> Self {
        self.flags |= sys::velo_port_flag_VELO_PORT_DEPARTURES;
        self
    }
}

/// A communication context with its receive queue; closed when it is dropped.
pub struct Port {
    raw: NonNull<sys::velo_port>,
}

// SAFETY: The library wants one thread at a time, not always the same. (Not Sync: receiving is for
// one thread.)
unsafe impl Send for Port {}

impl Port {
    /// Open a port; velo_port_open().
    pub fn open(options: &PortOptions) -> Result<Port, Status> {
        let text = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => CString::new(text.as_str()).map(Some).map_err(|_| Status::ARG),
        };
        let (domain, group) = (text(&options.domain)?, text(&options.group)?);
        let pointer =
            |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let attr = sys::velo_port_attr {
            size_bytes: mem::size_of::<sys::velo_port_attr>() as _,
            domain: pointer(&domain),
            node: options.node,
            vpid: options.vpid,
            depth_slots: options.depth_slots,
            data_bytes: options.data_bytes as _,
            conns_max: options.conns_max,
            group: pointer(&group),
            flags: options.flags,
            linger_ns: options.linger_ns,
        };
        let mut raw = ptr::null_mut();
        // SAFETY: The strings live until the call returns, which does not keep them.
        Status::check(unsafe { sys::velo_port_open(&attr, &mut raw) })?;
        Ok(Port { raw: NonNull::new(raw).expect("an open port is not NULL") })
    }

    /// The id under which it can be reached; velo_port_id().
    pub fn id(&self) -> u32 {
        // SAFETY: Here and below: `raw` is open as long as self.
        unsafe { sys::velo_port_id(self.raw.as_ptr()) }
    }

    /// Which opening of its id it is; velo_port_generation().
    pub fn generation(&self) -> u32 {
        unsafe { sys::velo_port_generation(self.raw.as_ptr()) }
    }

    /// What ends a wait on the port from another thread.
    pub fn interrupter(&self) -> Interrupter<'_> {
        Interrupter { raw: self.raw, port: PhantomData }
    }

    /// A descriptor for event loops, the port's own; velo_port_fd().
    pub fn fd(&self) -> Result<c_int, Status> {
        let mut fd = -1;
        Status::check(unsafe { sys::velo_port_fd(self.raw.as_ptr(), &mut fd) })?;
        Ok(fd)
    }

    /// Have the descriptor tell of what comes from now on; velo_port_arm().
    pub fn arm(&self) -> Result<(), Status> {
        Status::check(unsafe { sys::velo_port_arm(self.raw.as_ptr()) })
    }

    /// Connect to a port of the same domain, waiting for it to be opened; velo_connect().
    pub fn connect(&self, peer: u32, timeout: Option<Duration>) -> Result<Connection<'_>, Status> {
        let mut raw = ptr::null_mut();
        let time = nanoseconds(timeout);
        Status::check(unsafe { sys::velo_connect(self.raw.as_ptr(), peer, &mut raw, time) })?;
        let raw = NonNull::new(raw).expect("an open connection is not NULL");
        Ok(Connection { raw, port: PhantomData })
    }

    /// Connect without a wait. [`Status::AGAIN`]: the peer has not answered yet;
    /// velo_try_connect().
    pub fn try_connect(&self, peer: u32) -> Result<Connection<'_>, Status> {
        let mut raw = ptr::null_mut();
        Status::check(unsafe { sys::velo_try_connect(self.raw.as_ptr(), peer, &mut raw) })?;
        let raw = NonNull::new(raw).expect("an open connection is not NULL");
        Ok(Connection { raw, port: PhantomData })
    }

    /// Receive into a buffer if a message is there; velo_try_recv().
    pub fn try_recv(&self, buf: &mut [u8]) -> Result<Info, NotReceived> {
        let mut msg = no_message();
        let (at, len) = (buf.as_mut_ptr().cast::<c_void>(), buf.len() as _);
        // SAFETY: The buffer is ours until the call returns.
        let status = unsafe { sys::velo_try_recv(self.raw.as_ptr(), at, len, &mut msg) };
        received(status, &msg)
    }

    /// Receive into a buffer, waiting for a message; velo_recv().
    pub fn recv(&self, buf: &mut [u8], timeout: Option<Duration>) -> Result<Info, NotReceived> {
        let mut msg = no_message();
        let (at, len) = (buf.as_mut_ptr().cast::<c_void>(), buf.len() as _);
        let time = nanoseconds(timeout);
        // SAFETY: The buffer is ours until the call returns.
        let status = unsafe { sys::velo_recv(self.raw.as_ptr(), at, len, &mut msg, time) };
        received(status, &msg)
    }

    /// Receive several messages, waiting for the first; velo_recv_many(). `received` is called with
    /// each, in order: its payload, in `buf`, and what is known of it. At most `most` are taken, and
    /// as many as fit into `buf`. Returns their number.
    pub fn recv_many(
        &self,
        most: usize,
        buf: &mut [u8],
        timeout: Option<Duration>,
        mut received: impl FnMut(&[u8], Info),
    ) -> Result<usize, NotReceived> {
        let mut msgs = vec![no_message(); most.max(1)];
        let most = c_int::try_from(most).unwrap_or(c_int::MAX);
        let (at, len) = (buf.as_mut_ptr().cast::<c_void>(), buf.len() as _);
        let (to, time) = (msgs.as_mut_ptr(), nanoseconds(timeout));
        // SAFETY: The buffer and `msgs` are ours until the call returns.
        let count = unsafe { sys::velo_recv_many(self.raw.as_ptr(), to, most, at, len, time) };
        if count < 0 {
            return self::received(count, &msgs[0]).map(|_| 0);
        }
        for msg in &msgs[..count as usize] {
            let info = info_of(msg);
            let from = if info.len_bytes > 0 { msg.data as usize - at as usize } else { 0 };
            received(&buf[from..from + info.len_bytes], info);
        }
        Ok(count as usize)
    }

    /// The next message in place if one is there; velo_try_peek(). While it lives, the port
    /// receives nothing else: that is [`Status::STATE`].
    pub fn try_peek(&self) -> Result<Message<'_>, NotReceived> {
        let mut msg = no_message();
        let status = unsafe { sys::velo_try_peek(self.raw.as_ptr(), &mut msg) };
        self.peeked(status, &msg)
    }

    /// The next message in place, waiting for one; velo_peek().
    pub fn peek(&self, timeout: Option<Duration>) -> Result<Message<'_>, NotReceived> {
        let mut msg = no_message();
        let time = nanoseconds(timeout);
        let status = unsafe { sys::velo_peek(self.raw.as_ptr(), &mut msg, time) };
        self.peeked(status, &msg)
    }

    /// Take from deferred connections again; velo_resume().
    pub fn resume(&self) -> Result<(), Status> {
        Status::check(unsafe { sys::velo_resume(self.raw.as_ptr()) })
    }

    /// What calls of C take; still owned here.
    pub fn as_ptr(&self) -> *mut sys::velo_port {
        self.raw.as_ptr()
    }

    /// Keep a word, such as an index or an address, for the source of a message or a departure;
    /// velo_source_set_user().
    pub fn set_user(&self, about: &Info, user: usize) -> Result<(), Status> {
        let mut msg = no_message();
        (msg.source, msg.generation) = (about.source, about.generation);
        // SAFETY: The port is open; the library does not look at the word.
        Status::check(unsafe {
            sys::velo_source_set_user(self.raw.as_ptr(), &msg, user as *mut c_void)
        })
    }

    fn peeked(&self, status: c_int, msg: &sys::velo_msg) -> Result<Message<'_>, NotReceived> {
        let info = received(status, msg)?;
        Ok(Message { port: self, data: msg.data.cast(), info })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: Connections and messages borrow the port, so there are none now.
        unsafe { sys::velo_port_close(self.raw.as_ptr()) };
    }
}

/// Ends a wait on a port: the one that is under way, or else the next; velo_port_interrupt().
#[derive(Clone, Copy)]
pub struct Interrupter<'port> {
    raw: NonNull<sys::velo_port>,
    port: PhantomData<&'port ()>,
}

// SAFETY: The call is for any thread.
unsafe impl Send for Interrupter<'_> {}
unsafe impl Sync for Interrupter<'_> {}

impl Interrupter<'_> {
    /// The wait returns [`Status::INTERRUPTED`].
    pub fn interrupt(self) {
        // SAFETY: The port is borrowed, so it is open.
        unsafe { sys::velo_port_interrupt(self.raw.as_ptr()) }
    }
}

/// Ends a wait for room on a connection, as [`Interrupter`] does on a port; velo_conn_interrupt().
#[derive(Clone, Copy)]
pub struct SendInterrupter<'conn> {
    raw: NonNull<sys::velo_conn>,
    conn: PhantomData<&'conn ()>,
}

// SAFETY: The call is for any thread.
unsafe impl Send for SendInterrupter<'_> {}
unsafe impl Sync for SendInterrupter<'_> {}

impl SendInterrupter<'_> {
    /// The wait returns [`Status::INTERRUPTED`].
    pub fn interrupt(self) {
        // SAFETY: The connection is borrowed, so it is open.
        unsafe { sys::velo_conn_interrupt(self.raw.as_ptr()) }
    }
}

/// The right to send to one port; ended when it is dropped.
pub struct Connection<'port> {
    raw: NonNull<sys::velo_conn>,
    port: PhantomData<&'port ()>,
}

// SAFETY: Connections are independent of each other and of the thread that receives from the port.
// (Not Sync: sending is for one thread.)
unsafe impl Send for Connection<'_> {}

impl Connection<'_> {
    /// Send if there is room now; velo_try_send().
    pub fn try_send(&self, bytes: &[u8], tag: u8) -> Result<(), Status> {
        let (at, len) = (bytes.as_ptr().cast(), bytes.len() as _);
        // SAFETY: Here and below: `raw` is open as long as self, and the bytes are copied.
        Status::check(unsafe { sys::velo_try_send(self.raw.as_ptr(), at, len, tag) })
    }

    /// Send, waiting while the ring is full; velo_send().
    pub fn send(&self, bytes: &[u8], tag: u8, timeout: Option<Duration>) -> Result<(), Status> {
        let (at, len) = (bytes.as_ptr().cast(), bytes.len() as _);
        let time = nanoseconds(timeout);
        Status::check(unsafe { sys::velo_send(self.raw.as_ptr(), at, len, tag, time) })
    }

    /// Send several messages, each with its tag, waiting while the ring is full; velo_send_many().
    /// Returns how many were sent, at least one unless there are none: that is the index of the
    /// first that was not.
    pub fn send_many(
        &self,
        messages: &[(&[u8], u8)],
        timeout: Option<Duration>,
    ) -> Result<usize, Status> {
        let mut msgs = vec![no_message(); messages.len()];
        for (msg, (bytes, tag)) in msgs.iter_mut().zip(messages) {
            (msg.data, msg.len_bytes, msg.tag) = (bytes.as_ptr().cast(), bytes.len() as _, *tag);
        }
        let len = c_int::try_from(msgs.len()).map_err(|_| Status::ARG)?;
        let (at, time) = (msgs.as_ptr(), nanoseconds(timeout));
        let sent = unsafe { sys::velo_send_many(self.raw.as_ptr(), at, len, time) };
        usize::try_from(sent).or_else(|_| Status::check(sent).map(|()| 0))
    }

    /// What ends a wait for room on this connection, from another thread.
    pub fn interrupter(&self) -> SendInterrupter<'_> {
        SendInterrupter { raw: self.raw, conn: PhantomData }
    }

    /// Does the peer still take messages? A system call; velo_conn_status().
    pub fn status(&self) -> Result<(), Status> {
        Status::check(unsafe { sys::velo_conn_status(self.raw.as_ptr()) })
    }

    /// The longest message that it takes; velo_conn_max_bytes().
    pub fn max_bytes(&self) -> usize {
        unsafe { sys::velo_conn_max_bytes(self.raw.as_ptr()) as usize }
    }

    /// [`Port::generation`] of the peer; velo_conn_generation().
    pub fn generation(&self) -> u32 {
        unsafe { sys::velo_conn_generation(self.raw.as_ptr()) }
    }

    /// What calls of C take; still owned here.
    pub fn as_ptr(&self) -> *mut sys::velo_conn {
        self.raw.as_ptr()
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: The port is borrowed, so it is open and has not ended the connection.
        unsafe { sys::velo_disconnect(self.raw.as_ptr()) };
    }
}

/// What is known of a message beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Length of the payload.
    pub len_bytes: usize,
    /// The sender's tag.
    pub tag: u8,
    /// Port that sent it.
    pub source: u32,
    /// Generation of that port.
    pub generation: u32,
    /// What [`Port::set_user`] keeps for that port; 0: nothing yet.
    pub user: usize,
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReceived {
    /// The status.
    pub status: Status,
    /// [`Status::TOO_BIG`]: length, source and tag of the message that waits. A departure: source
    /// and generation of the sender that has gone. Else zeros.
    pub about: Info,
}

impl fmt::Display for NotReceived {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(formatter)
    }
}

impl std::error::Error for NotReceived {}

impl From<NotReceived> for Status {
    fn from(not: NotReceived) -> Status {
        not.status
    }
}

fn info_of(msg: &sys::velo_msg) -> Info {
    Info {
        len_bytes: msg.len_bytes as usize,
        tag: msg.tag,
        source: msg.source,
        generation: msg.generation,
        user: msg.user as usize,
    }
}

fn received(status: c_int, msg: &sys::velo_msg) -> Result<Info, NotReceived> {
    let info = info_of(msg);
    Status::check(status).map(|()| info).map_err(|status| NotReceived { status, about: info })
}

/// A message in place, in the ring of its port. It is given back to the ring when it is dropped.
pub struct Message<'port> {
    port: &'port Port,
    data: *const u8,
    info: Info,
}

impl Message<'_> {
    /// Length, tag and sender.
    pub fn info(&self) -> Info {
        self.info
    }

    /// A copy of the payload.
    pub fn to_vec(&self) -> Vec<u8> {
        let len = self.info.len_bytes;
        let mut copy = vec![0; len];
        if len > 0 {
            // SAFETY: The ring has that many bytes there. They are copied before anybody looks.
            unsafe { ptr::copy_nonoverlapping(self.data, copy.as_mut_ptr(), len) };
        }
        copy
    }

    /// The payload where it lies.
    ///
    /// # Safety
    ///
    /// The memory is shared with the sender. The caller answers for it that the sender does not
    /// write to a message that it has sent. No sender does that through velo's calls; a hostile one
    /// can. Copy where the sender is not trusted.
    pub unsafe fn bytes(&self) -> &[u8] {
        let len = self.info.len_bytes;
        match len {
            0 => &[],
            _ => std::slice::from_raw_parts(self.data, len),
        }
    }

    /// Leave it in its ring until [`Port::resume`]; velo_defer().
    pub fn defer(self) -> Result<(), Status> {
        let message = mem::ManuallyDrop::new(self);
        Status::check(unsafe { sys::velo_defer(message.port.raw.as_ptr()) })
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        // SAFETY: The port is borrowed, so it is open; it holds this message and no other.
        unsafe { sys::velo_release(self.port.raw.as_ptr()) };
    }
}
