/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rma.hpp
 * @brief Remote memory in C++20: register, put, get, atomic updates, notifications.
 * @example tutorial/remote_memory.cc
 *
 * A thin layer over rma.h, as velo.hpp is over velo.h. One thread at a time uses an Rma, its peers
 * and its memories.
 *
 * Lifetimes: a unit is closed when the Rma has gone and the last of its peers and memories has
 * gone, too; it keeps its port open. Local memory that an operation reads or fills stays the
 * caller's: it must live, and a source must not change, until the requester is notified or
 * RmaPeer::flush() has succeeded.
 *
 * Flags and rights are those of C, or-ed.
 */
#ifndef VELO_RMA_HPP
#define VELO_RMA_HPP

#include <climits>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <velo/rma.h>
#include <velo/velo.hpp>

namespace velo
{

namespace detail
{

/** An open unit, which keeps its port open. */
struct RmaCore : Shared {
    Share<PortCore> port;
    velo_rma *rma = nullptr;

    explicit RmaCore(Share<PortCore> of) noexcept : port(std::move(of)) {}
    RmaCore(const RmaCore &) = delete;
    RmaCore &operator=(const RmaCore &) = delete;
    ~RmaCore() { (void)velo_rma_close(rma); }
};

} // namespace detail

/** A place in a peer's memory; ::velo_rma_place() makes one. (Here C's name is a function's, too.)
 */
using RmaPlace = struct ::velo_rma_place;
/** The counters of a unit. */
using RmaCounters = struct ::velo_rma_counters;
using RmaNotification = velo_rma_notification;

/** A type of words that velo_rma_fetch_op() knows. */
template <class T>
concept RmaWord = std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
                  std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> ||
                  std::same_as<T, float> || std::same_as<T, double>;

/** What C calls that type. */
template <RmaWord T>
inline constexpr velo_rma_type rma_type = std::same_as<T, std::int32_t>    ? VELO_RMA_TYPE_INT32
                                          : std::same_as<T, std::uint32_t> ? VELO_RMA_TYPE_UINT32
                                          : std::same_as<T, std::int64_t>  ? VELO_RMA_TYPE_INT64
                                          : std::same_as<T, std::uint64_t> ? VELO_RMA_TYPE_UINT64
                                          : std::same_as<T, float>         ? VELO_RMA_TYPE_FLOAT
                                                                           : VELO_RMA_TYPE_DOUBLE;

/** A word that velo_rma_compare_swap() takes. */
template <class T>
concept RmaComparable = std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

/** struct velo_rma_attr, with the defaults to begin with. */
struct RmaAttr : velo_rma_attr {
    RmaAttr() noexcept : velo_rma_attr VELO_RMA_ATTR_INIT {}
};

/** Memory that peers may reach. Its end ends the registration, and frees what Rma::alloc() made. */
class RmaMemory
{
  public:
    RmaMemory(RmaMemory &&other) noexcept
        : core_(std::move(other.core_)), mem_(std::exchange(other.mem_, nullptr)),
          len_bytes_(std::exchange(other.len_bytes_, 0))
    {
    }
    RmaMemory &operator=(RmaMemory &&other) noexcept
    {
        if (this != &other) {
            (void)deregister(forever);
            core_ = std::move(other.core_);
            mem_ = std::exchange(other.mem_, nullptr);
            len_bytes_ = std::exchange(other.len_bytes_, 0);
        }
        return *this;
    }
    /** Waits for operations that are touching the memory now. */
    ~RmaMemory() { (void)deregister(forever); }

    /** The memory; of an ended registration, none. */
    std::span<std::byte> bytes() const noexcept
    {
        return mem_ ? std::span(static_cast<std::byte *>(velo_rma_mem_addr(mem_)), len_bytes_)
                    : std::span<std::byte>();
    }
    /** The key that peers need; see velo_rma_mem_key(). */
    velo_rma_key_t key() const noexcept { return velo_rma_mem_key(mem_); }
    /** Let peers find it by a number; see velo_rma_mem_publish(). */
    Result<void> publish(std::uint32_t number) noexcept
    {
        return Result<void>(velo_rma_mem_publish(mem_, number));
    }
    /** End the registration, waiting for those that touch the memory now. After Status::timeout it
     *  is still held, to be ended by another call; see velo_rma_mem_deregister(). */
    Result<void> deregister(Timeout timeout) noexcept
    {
        int status = velo_rma_mem_deregister(mem_, timeout.count());
        if (status == VELO_OK) {
            mem_ = nullptr;
            core_ = {};
        }
        return Result<void>(status);
    }
    /** What calls of C take; still owned here. */
    velo_rma_mem *handle() const noexcept { return mem_; }

  private:
    friend class Rma;

    RmaMemory(detail::Share<detail::RmaCore> core, velo_rma_mem *mem,
              std::size_t len_bytes) noexcept
        : core_(std::move(core)), mem_(mem), len_bytes_(len_bytes)
    {
    }

    detail::Share<detail::RmaCore> core_;
    velo_rma_mem *mem_;
    std::size_t len_bytes_;
};

/** The right to reach one peer's registered memory. */
class RmaPeer
{
  public:
    RmaPeer(RmaPeer &&other) noexcept
        : core_(std::move(other.core_)), peer_(std::exchange(other.peer_, nullptr))
    {
    }
    RmaPeer &operator=(RmaPeer &&other) noexcept
    {
        if (this != &other) {
            disconnect();
            core_ = std::move(other.core_);
            peer_ = std::exchange(other.peer_, nullptr);
        }
        return *this;
    }
    ~RmaPeer() { disconnect(); }

    /** Write; see velo_rma_put(). */
    Result<void> put(std::span<const std::byte> local, RmaPlace remote, std::uint32_t flags = 0,
                     std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_put(peer_, local.data(), local.size(), remote, flags, cookie));
    }
    /** Read; see velo_rma_get(). */
    Result<void> get(std::span<std::byte> local, RmaPlace remote, std::uint32_t flags = 0,
                     std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_get(peer_, local.data(), local.size(), remote, flags, cookie));
    }
    /** Write a value of up to 8 bytes; see velo_rma_put_immediate(). */
    Result<void> put_immediate(std::uint64_t value, std::size_t len_bytes, RmaPlace remote,
                               std::uint32_t flags = 0, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_put_immediate(peer_, value, len_bytes, remote, flags, cookie));
    }
    /** Write blocks; see velo_rma_put_strided(). */
    Result<void> put_strided(const void *local, const velo_rma_stride &stride, RmaPlace remote,
                             std::uint32_t flags = 0, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_put_strided(peer_, local, &stride, remote, flags, cookie));
    }
    /** Read blocks; see velo_rma_get_strided(). */
    Result<void> get_strided(void *local, const velo_rma_stride &stride, RmaPlace remote,
                             std::uint32_t flags = 0, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_get_strided(peer_, local, &stride, remote, flags, cookie));
    }
    /** Write a list of pieces, which lives as long as the memory; see velo_rma_put_list(). */
    Result<void> put_list(std::span<const velo_rma_piece> pieces, RmaPlace remote,
                          std::uint32_t flags = 0, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(
            velo_rma_put_list(peer_, pieces.data(), pieces.size(), remote, flags, cookie));
    }
    /** Read a list of pieces, which lives as long as the memory; see velo_rma_get_list(). */
    Result<void> get_list(std::span<const velo_rma_piece> pieces, RmaPlace remote,
                          std::uint32_t flags = 0, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(
            velo_rma_get_list(peer_, pieces.data(), pieces.size(), remote, flags, cookie));
    }
    /** Notify the peer and write nothing; see velo_rma_notify(). */
    Result<void> notify(std::uint32_t flags, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_notify(peer_, flags, cookie));
    }

    /** Add to a word if it equals another; see velo_rma_fetch_compare_add(). */
    Result<void> fetch_compare_add(std::uint64_t *old, RmaPlace remote, std::uint64_t compare,
                                   std::uint64_t add, std::uint32_t flags = 0,
                                   std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(
            velo_rma_fetch_compare_add(peer_, old, remote, compare, add, flags, cookie));
    }
    /** Replace a word by what an operation makes of it; see velo_rma_fetch_op(). */
    template <RmaWord T>
    Result<void> fetch_op(std::type_identity_t<T> *old, RmaPlace remote, velo_rma_atomic atomic,
                          T operand, std::uint32_t flags = 0, std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(
            velo_rma_fetch_op(peer_, old, remote, atomic, rma_type<T>, &operand, flags, cookie));
    }
    /** Replace a word if it equals another; see velo_rma_compare_swap(). */
    template <RmaComparable T>
    Result<void> compare_swap(std::type_identity_t<T> *old, RmaPlace remote, const T &compare,
                              const std::type_identity_t<T> &desired, std::uint32_t flags = 0,
                              std::uint64_t cookie = 0) noexcept
    {
        return Result<void>(velo_rma_compare_swap(peer_, old, sizeof(T), remote, &compare, &desired,
                                                  flags, cookie));
    }

    /** Order what comes after what was posted before; see velo_rma_fence(). */
    Result<void> fence() noexcept { return Result<void>(velo_rma_fence(peer_)); }
    /** Wait until all that was posted is done; see velo_rma_flush(). */
    Result<void> flush(Timeout timeout) noexcept
    {
        return Result<void>(velo_rma_flush(peer_, timeout.count()));
    }
    /** Does the peer still serve its memory? A system call; see velo_rma_peer_status(). */
    Result<void> status() noexcept { return Result<void>(velo_rma_peer_status(peer_)); }

    /** A registration at an address of the peer's own; see velo_rma_mem_find(). */
    Result<RmaPlace> find(std::uint64_t address, std::size_t len_bytes,
                          std::uint32_t rights) noexcept
    {
        RmaPlace place{};
        int status = velo_rma_mem_find(peer_, address, len_bytes, rights, &place);
        return found(status, place);
    }
    /** A registration by its number; see velo_rma_mem_lookup(). */
    Result<RmaPlace> lookup(std::uint32_t number, std::uint32_t rights) noexcept
    {
        RmaPlace place{};
        int status = velo_rma_mem_lookup(peer_, number, rights, &place);
        return found(status, place);
    }

    /** Give the peer up, which the destructor does too; see velo_rma_disconnect(). */
    void disconnect() noexcept
    {
        (void)velo_rma_disconnect(std::exchange(peer_, nullptr));
        core_ = {};
    }
    /** What calls of C take; still owned here. */
    velo_rma_peer *handle() const noexcept { return peer_; }

  private:
    friend class Rma;

    RmaPeer(detail::Share<detail::RmaCore> core, velo_rma_peer *peer) noexcept
        : core_(std::move(core)), peer_(peer)
    {
    }
    static Result<RmaPlace> found(int status, const RmaPlace &place) noexcept
    {
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<RmaPlace>(std::in_place, place);
    }

    detail::Share<detail::RmaCore> core_;
    velo_rma_peer *peer_;
};

/** The RMA unit of a port. */
class Rma
{
  public:
    /** Open the unit of a port, at most one a port; see velo_rma_open(). Status::no_memory also
     *  where its few bytes are not to be had. */
    static Result<Rma> open(Port &port, const RmaAttr &attr = {}) noexcept
    {
        detail::Share<detail::RmaCore> core(new (std::nothrow) detail::RmaCore(port.core_));
        if (!core)
            return Status::no_memory;
        int status = velo_rma_open(port.handle(), &attr, &core->rma);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<Rma>(std::in_place, Rma(std::move(core)));
    }
    Rma(Rma &&other) noexcept = default;
    Rma &operator=(Rma &&other) noexcept = default;
    ~Rma() = default;

    /**
     * Close the unit now; see velo_rma_close(). Not while it has peers or memories: that is
     * Status::state, and nothing has happened.
     */
    Result<void> close() noexcept
    {
        if (!core_)
            return Status::arg;
        if (!core_.is_only())
            return Status::state;
        core_ = {};
        return Status::ok;
    }

    /** Allocate memory that peers reach with loads and stores; see velo_rma_mem_alloc(). */
    Result<RmaMemory> alloc(std::size_t len_bytes, std::uint32_t rights,
                            velo_id_t peer = VELO_RMA_PEER_ANY) noexcept
    {
        velo_rma_mem *mem = nullptr;
        int status = velo_rma_mem_alloc(handle(), len_bytes, rights, peer, &mem);
        return memory(status, mem, len_bytes);
    }
    /** Register memory, which must stay mapped as long; see velo_rma_mem_register(). */
    Result<RmaMemory> register_memory(std::span<std::byte> bytes, std::uint32_t rights,
                                      velo_id_t peer = VELO_RMA_PEER_ANY) noexcept
    {
        velo_rma_mem *mem = nullptr;
        int status =
            velo_rma_mem_register(handle(), bytes.data(), bytes.size(), rights, peer, &mem);
        return memory(status, mem, bytes.size());
    }
    /** Gain reach of a peer's memory, waiting for its unit; see velo_rma_connect(). */
    Result<RmaPeer> connect(velo_id_t id, Timeout timeout) noexcept
    {
        velo_rma_peer *peer = nullptr;
        int status = velo_rma_connect(handle(), id, &peer, timeout.count());
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<RmaPeer>(std::in_place, RmaPeer(core_, peer));
    }

    /** Carry out what peers asked for; returns how much was. See velo_rma_progress(). */
    int progress() noexcept { return velo_rma_progress(handle()); }
    /** Take notifications that are there: the part of `room` that was filled, which may be empty.
     *  See velo_rma_try_poll(). */
    Result<std::span<RmaNotification>> try_poll(std::span<RmaNotification> room) noexcept
    {
        return taken(velo_rma_try_poll(handle(), room.data(), length(room)), room);
    }
    /** The same, waiting for the first; see velo_rma_poll(). */
    Result<std::span<RmaNotification>> poll(std::span<RmaNotification> room,
                                            Timeout timeout) noexcept
    {
        return taken(velo_rma_poll(handle(), room.data(), length(room), timeout.count()), room);
    }
    /** A descriptor for event loops, the unit's own; see velo_rma_fd(). */
    Result<int> fd() noexcept
    {
        int fd = -1;
        int status = velo_rma_fd(handle(), &fd);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<int>(std::in_place, fd);
    }
    /** Have the descriptor tell of what comes from now on; see velo_rma_arm(). */
    Result<void> arm() noexcept { return Result<void>(velo_rma_arm(handle())); }
    /** See velo_rma_counters(). */
    Result<RmaCounters> counters() const noexcept
    {
        RmaCounters counters{};
        int status = velo_rma_counters(handle(), &counters, sizeof counters);
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<RmaCounters>(std::in_place, counters);
    }
    /** What calls of C take; still owned here. */
    velo_rma *handle() const noexcept { return core_ ? core_->rma : nullptr; }

  private:
    explicit Rma(detail::Share<detail::RmaCore> core) noexcept : core_(std::move(core)) {}
    Result<RmaMemory> memory(int status, velo_rma_mem *mem, std::size_t len_bytes) noexcept
    {
        if (status != VELO_OK)
            return static_cast<Status>(status);
        return Result<RmaMemory>(std::in_place, RmaMemory(core_, mem, len_bytes));
    }
    static int length(std::span<RmaNotification> room) noexcept
    {
        return room.size() <= INT_MAX ? static_cast<int>(room.size()) : INT_MAX;
    }
    static Result<std::span<RmaNotification>> taken(int count,
                                                    std::span<RmaNotification> room) noexcept
    {
        if (count < 0)
            return static_cast<Status>(count);
        return Result<std::span<RmaNotification>>(std::in_place,
                                                  room.first(static_cast<std::size_t>(count)));
    }

    detail::Share<detail::RmaCore> core_;
};

} // namespace velo

#endif
