/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file velo.hpp
 * @brief Messages in C++20: ports, connections, send and receive.
 * @example ping_pong.cc
 *
 * A thin layer over velo.h, whose promises and rules for threads, processes and signals hold here
 * too; each call names the one of C that says what it does and how it fails. Nothing is copied
 * or allocated that C does not, but for a few bytes when a port is opened. Nothing throws.
 *
 * Lifetimes: ports, connections and messages can be moved, not copied, and end what they hold with
 * themselves. A port is closed when it has gone and the last of its connections, its message and
 * its RMA unit has gone, too: none of them is ever without its port. Bytes in place
 * (Message::bytes(), Connection::reserve()) are valid as long as velo.h says; take no span of them
 * further.
 *
 * An object that was moved from is closed: a call on it returns Status::arg. A call that returns no
 * status (id(), max_bytes() and the like) must not be made on it.
 *
 * Timeouts are durations, such as `5s`; `velo::forever` waits without a limit.
 */
#ifndef VELO_VELO_HPP
#define VELO_VELO_HPP

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <velo/result.hpp>
#include <velo/share.hpp>
#include <velo/velo.h>

namespace velo
{

/** How long a call may wait; negative only as `forever`. */
using Timeout = std::chrono::nanoseconds;
/** Wait without a limit. */
inline constexpr Timeout forever{VELO_FOREVER};

/** The bytes of an object, to be sent. */
template <class T>
    requires std::is_trivially_copyable_v<T>
std::span<const std::byte> bytes_of(const T &object) noexcept
{
    return std::as_bytes(std::span<const T, 1>(std::addressof(object), 1));
}

/** The bytes of an object, to be received into. */
template <class T>
    requires std::is_trivially_copyable_v<T>
std::span<std::byte> writable_bytes_of(T &object) noexcept
{
    return std::as_writable_bytes(std::span<T, 1>(std::addressof(object), 1));
}

/** The counters of a port. (A function of C has the same name.) */
using PortCounters = struct ::velo_port_counters;

/** struct velo_port_attr, with the defaults to begin with. */
struct PortAttr : velo_port_attr {
    PortAttr() noexcept : velo_port_attr VELO_PORT_ATTR_INIT {}
};

/** Why nothing was received. */
struct NotReceived {
    Status status = Status::ok;
    /** Status::too_big: length, source and tag of the message that waits. A departure
     *  (VELO_PORT_DEPARTURES): source and generation of the sender that has gone. Else zeros. */
    velo_msg about{};

    constexpr operator Status() const noexcept { return status; }
};

/** What a receiving call returns. */
template <class T> using Received = Result<T, NotReceived>;

/** A message in place, in the ring of its port. It is given back to the ring at its end. */
class Message
{
  public:
    Message(Message &&other) noexcept
        : core_(std::exchange(other.core_, nullptr)), msg_(std::exchange(other.msg_, {}))
    {
    }
    Message &operator=(Message &&other) noexcept
    {
        if (this != &other) {
            (void)release();
            core_ = std::exchange(other.core_, nullptr);
            msg_ = std::exchange(other.msg_, {});
        }
        return *this;
    }
    ~Message() { (void)release(); }

    /** The payload, in memory that the sender can still write; see velo_try_peek(). */
    std::span<const std::byte> bytes() const noexcept
    {
        return {static_cast<const std::byte *>(msg_.data), msg_.len_bytes};
    }
    std::uint8_t tag() const noexcept { return msg_.tag; }
    velo_id_t source() const noexcept { return msg_.source; }
    std::uint32_t generation() const noexcept { return msg_.generation; }
    /** What Port::set_user() keeps for its source; nullptr: nothing yet. */
    void *user() const noexcept { return msg_.user; }

    /** Give it back now; see velo_release(). Its bytes are none then. */
    Result<void> release() noexcept { return end(velo_release); }
    /** Leave it in its ring until Port::resume(); see velo_defer(). Its bytes are none then. */
    Result<void> defer() noexcept { return end(velo_defer); }

  private:
    friend class Port;

    Message(detail::PortCore *core, const velo_msg &msg) noexcept : core_(core), msg_(msg) {}
    Result<void> end(int (*call)(velo_port *)) noexcept
    {
        if (!core_)
            return Status::arg;
        msg_ = {};
        core_->message_is_held = false;
        Result<void> result(call(core_->port));
        if (core_->is_the_message_s) [[unlikely]] {
            detail::Share<detail::PortCore> last(core_);
        }
        core_ = nullptr;
        return result;
    }

    detail::PortCore *core_;
    velo_msg msg_;
};

/** The right to send to one port. One thread at a time uses it. */
class Connection
{
  public:
    Connection(Connection &&other) noexcept
        : core_(std::move(other.core_)), conn_(std::exchange(other.conn_, nullptr))
    {
    }
    Connection &operator=(Connection &&other) noexcept
    {
        if (this != &other) {
            disconnect();
            core_ = std::move(other.core_);
            conn_ = std::exchange(other.conn_, nullptr);
        }
        return *this;
    }
    ~Connection() { disconnect(); }

    /** Send if there is room now; see velo_try_send(). */
    Result<void> try_send(std::span<const std::byte> bytes, std::uint8_t tag = 0) noexcept
    {
        return Result<void>(velo_try_send(conn_, bytes.data(), bytes.size(), tag));
    }
    /** Send, waiting while the ring is full; see velo_send(). */
    Result<void> send(std::span<const std::byte> bytes, std::uint8_t tag, Timeout timeout) noexcept
    {
        return Result<void>(velo_send(conn_, bytes.data(), bytes.size(), tag, timeout.count()));
    }

    /** Send one message made of several pieces, if there is room now; see velo_try_sendv(). */
    Result<void> try_sendv(std::span<const iovec> pieces, std::uint8_t tag = 0) noexcept
    {
        return Result<void>(velo_try_sendv(conn_, pieces.data(), length(pieces), tag));
    }
    /** The same, waiting while the ring is full; see velo_sendv(). */
    Result<void> sendv(std::span<const iovec> pieces, std::uint8_t tag, Timeout timeout) noexcept
    {
        return Result<void>(velo_sendv(conn_, pieces.data(), length(pieces), tag, timeout.count()));
    }

    /** Send several messages, whose data, len_bytes and tag count; see velo_send_many(). Returns
     * how many were sent, at least 1 unless there are none: that is the index of the first that was
     *  not. */
    Result<int> send_many(std::span<const velo_msg> msgs, Timeout timeout) noexcept
    {
        int sent = velo_send_many(conn_, msgs.data(), length(msgs), timeout.count());
        if (sent < 0)
            return static_cast<Status>(sent);
        return Result<int>(std::in_place, sent);
    }

    /**
     * Room for a message in the receiver's memory, if there is some now; see velo_try_reserve().
     * Until commit() nothing else can be sent: a reservation cannot be given back.
     */
    Result<std::span<std::byte>> try_reserve(std::size_t len_bytes) noexcept
    {
        void *buf = nullptr;
        int status = velo_try_reserve(conn_, len_bytes, &buf);
        return room(status, buf, len_bytes);
    }
    /** The same, waiting while the ring is full; see velo_reserve(). */
    Result<std::span<std::byte>> reserve(std::size_t len_bytes, Timeout timeout) noexcept
    {
        void *buf = nullptr;
        int status = velo_reserve(conn_, len_bytes, &buf, timeout.count());
        return room(status, buf, len_bytes);
    }
    /** Send what was built in the reservation, or the beginning of it; see velo_commit(). */
    Result<void> commit(std::size_t len_bytes, std::uint8_t tag = 0) noexcept
    {
        return Result<void>(velo_commit(conn_, len_bytes, tag));
    }

    /** Does the peer still take messages? A system call; see velo_conn_status(). */
    Result<void> status() noexcept { return Result<void>(velo_conn_status(conn_)); }
    /** The longest message that it takes; see velo_conn_max_bytes(). */
    std::size_t max_bytes() const noexcept { return velo_conn_max_bytes(conn_); }
    /** Port::generation() of the peer; see velo_conn_generation(). */
    std::uint32_t generation() const noexcept { return velo_conn_generation(conn_); }

    /** End a wait for room. Any thread, and signal handlers; see velo_conn_interrupt(). */
    void interrupt() noexcept { velo_conn_interrupt(conn_); }
    /** End the connection, which the destructor does too; see velo_disconnect(). */
    void disconnect() noexcept
    {
        (void)velo_disconnect(std::exchange(conn_, nullptr));
        core_ = {};
    }
    /** What calls of C take; still owned here. */
    velo_conn *handle() const noexcept { return conn_; }

  private:
    friend class Port;

    Connection(detail::Share<detail::PortCore> core, velo_conn *conn) noexcept
        : core_(std::move(core)), conn_(conn)
    {
    }
    // A number that C cannot count is out of its range.
    template <class T> static int length(std::span<const T> items) noexcept
    {
        return items.size() <= INT_MAX ? static_cast<int>(items.size()) : -1;
    }
    static Result<std::span<std::byte>> room(int status, void *buf, std::size_t len_bytes) noexcept
    {
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<std::span<std::byte>>(std::in_place, static_cast<std::byte *>(buf),
                                            len_bytes);
    }

    detail::Share<detail::PortCore> core_;
    velo_conn *conn_;
};

/** A communication context. One thread at a time receives from it. */
class Port
{
  public:
    /** Open a port; see velo_port_open(). Status::no_memory also where its few bytes are not to be
     *  had. */
    static Result<Port> open(const PortAttr &attr = {}) noexcept
    {
        detail::Share<detail::PortCore> core(new (std::nothrow) detail::PortCore);
        if (!core)
            return Status::no_memory;
        int status = velo_port_open(&attr, &core->port);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<Port>(std::in_place, Port(std::move(core)));
    }
    Port(Port &&other) noexcept
        : core_(std::move(other.core_)), port_(std::exchange(other.port_, nullptr))
    {
    }
    Port &operator=(Port &&other) noexcept
    {
        if (this != &other) {
            leave();
            core_ = std::move(other.core_);
            port_ = std::exchange(other.port_, nullptr);
        }
        return *this;
    }
    ~Port() { leave(); }

    /**
     * Close the port now; see velo_port_close(). Not while a message is held, or a connection or an
     * RMA unit is open: that is Status::state, and nothing has happened.
     */
    Result<void> close() noexcept
    {
        if (!port_)
            return Status::arg;
        if (core_->message_is_held || !core_.is_only())
            return Status::state;
        leave();
        return Status::ok;
    }

    /** The id under which it can be reached; see velo_port_id(). */
    velo_id_t id() const noexcept { return velo_port_id(port_); }
    /** Which opening of its id it is; see velo_port_generation(). */
    std::uint32_t generation() const noexcept { return velo_port_generation(port_); }
    /** End a wait on the port. Any thread, and signal handlers; see velo_port_interrupt(). */
    void interrupt() noexcept { velo_port_interrupt(port_); }
    /** A descriptor for event loops, the port's own; see velo_port_fd(). */
    Result<int> fd() noexcept
    {
        int fd = -1;
        int status = velo_port_fd(port_, &fd);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<int>(std::in_place, fd);
    }
    /** Have the descriptor tell of what comes from now on; see velo_port_arm(). */
    Result<void> arm() noexcept { return Result<void>(velo_port_arm(port_)); }
    /** See velo_port_counters(). */
    Result<PortCounters> counters() const noexcept
    {
        PortCounters counters{};
        int status = velo_port_counters(port_, &counters, sizeof counters);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<PortCounters>(std::in_place, counters);
    }

    /** Connect to a port of the same domain, waiting for it to be opened. Any thread; see
     *  velo_connect(). */
    Result<Connection> connect(velo_id_t peer, Timeout timeout) noexcept
    {
        velo_conn *conn = nullptr;
        int status = velo_connect(port_, peer, &conn, timeout.count());
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<Connection>(std::in_place, Connection(core_, conn));
    }

    /** Connect without a wait. Status::again: the peer has not answered yet; see
     *  velo_try_connect(). */
    Result<Connection> try_connect(velo_id_t peer) noexcept
    {
        velo_conn *conn = nullptr;
        int status = velo_try_connect(port_, peer, &conn);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<Connection>(std::in_place, Connection(core_, conn));
    }

    /** Receive into a buffer if a message is there; see velo_try_recv(). */
    Received<velo_msg> try_recv(std::span<std::byte> buf) noexcept
    {
        velo_msg msg{};
        int status = velo_try_recv(port_, buf.data(), buf.size(), &msg);
        return received(status, msg);
    }
    /** Receive into a buffer, waiting for a message; see velo_recv(). */
    Received<velo_msg> recv(std::span<std::byte> buf, Timeout timeout) noexcept
    {
        velo_msg msg{};
        int status = velo_recv(port_, buf.data(), buf.size(), &msg, timeout.count());
        return received(status, msg);
    }

    /** Receive several messages, waiting for the first; see velo_recv_many(). Returns the beginning
     *  of `msgs`, at least one; the data of each is in `buf`. */
    Received<std::span<const velo_msg>>
    recv_many(std::span<velo_msg> msgs, std::span<std::byte> buf, Timeout timeout) noexcept
    {
        int msgs_max = msgs.size() <= INT_MAX ? static_cast<int>(msgs.size()) : INT_MAX;
        int count =
            velo_recv_many(port_, msgs.data(), msgs_max, buf.data(), buf.size(), timeout.count());
        if (count < 0)
            return NotReceived{static_cast<Status>(count), msgs.empty() ? velo_msg{} : msgs[0]};
        return Received<std::span<const velo_msg>>(std::in_place,
                                                   msgs.first(static_cast<std::size_t>(count)));
    }

    /** The next message in place if one is there; see velo_try_peek(). While it lives, the port
     *  receives nothing else: that is Status::state. */
    Received<Message> try_peek() noexcept
    {
        velo_msg msg{};
        int status = velo_try_peek(port_, &msg);
        return peeked(status, msg);
    }
    /** The next message in place, waiting for one; see velo_peek(). */
    Received<Message> peek(Timeout timeout) noexcept
    {
        velo_msg msg{};
        int status = velo_peek(port_, &msg, timeout.count());
        return peeked(status, msg);
    }
    /** Keep a pointer for the source of a message; see velo_source_set_user(). */
    Result<void> set_user(const Message &message, void *user) noexcept
    {
        return set_user(message.msg_, user);
    }
    Result<void> set_user(const velo_msg &about, void *user) noexcept
    {
        return Result<void>(velo_source_set_user(port_, &about, user));
    }
    /** Take from deferred connections again; see velo_resume(). */
    Result<void> resume() noexcept { return Result<void>(velo_resume(port_)); }

    /** What calls of C take; still owned here. */
    velo_port *handle() const noexcept { return port_; }

  private:
    friend class Rma;

    explicit Port(detail::Share<detail::PortCore> core) noexcept
        : core_(std::move(core)), port_(core_->port)
    {
    }
    void leave() noexcept
    {
        port_ = nullptr;
        if (core_ && core_->message_is_held)
            core_.give()->is_the_message_s = true;
        core_ = {};
    }
    static Received<velo_msg> received(int status, const velo_msg &msg) noexcept
    {
        if (status != VELO_OK)
            return NotReceived{static_cast<Status>(status), msg};
        return Received<velo_msg>(std::in_place, msg);
    }
    Received<Message> peeked(int status, const velo_msg &msg) noexcept
    {
        if (status != VELO_OK)
            return NotReceived{static_cast<Status>(status), msg};
        core_->message_is_held = true;
        return Received<Message>(std::in_place, Message(core_.get(), msg));
    }

    detail::Share<detail::PortCore> core_;
    velo_port *port_; // As in the core, one load nearer.
};

} // namespace velo

#endif
