/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file share.hpp
 * @brief Who keeps a port or a unit open. For velo.hpp and rma.hpp only.
 */
#ifndef VELO_SHARE_HPP
#define VELO_SHARE_HPP

#include <atomic>
#include <cstdint>
#include <utility>

#include <velo/velo.h>

namespace velo::detail
{

/** Counts those that need an object of C open. The object is closed with the last of them. */
struct Shared {
    std::atomic<std::uint32_t> shares{1};
};

/**
 * One share of a Shared. Unlike std::shared_ptr it needs no exceptions, and can be given away.
 *
 * @tparam Core  Derives from Shared; its destructor closes the object.
 */
template <class Core> class Share
{
  public:
    Share() = default;
    /** Take over a share that is counted already. */
    explicit Share(Core *core) noexcept : core_(core) {}
    Share(const Share &other) noexcept : core_(other.core_)
    {
        // Relaxed: the share that is copied keeps the object open.
        if (core_)
            core_->shares.fetch_add(1, std::memory_order_relaxed);
    }
    Share(Share &&other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    Share &operator=(Share other) noexcept
    {
        std::swap(core_, other.core_);
        return *this;
    }
    ~Share()
    {
        // Acquire and release: all that the others did comes before the close.
        if (core_ && core_->shares.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete core_;
    }

    Core *get() const noexcept { return core_; }
    Core *operator->() const noexcept { return core_; }
    explicit operator bool() const noexcept { return core_; }
    /** Give the share away; it stays counted. */
    Core *give() noexcept { return std::exchange(core_, nullptr); }
    /** Is this the only share? */
    bool is_only() const noexcept { return core_->shares.load(std::memory_order_acquire) == 1; }

  private:
    Core *core_ = nullptr;
};

/** An open port. */
struct PortCore : Shared {
    velo_port *port = nullptr;
    bool message_is_held = false;  // Written by the thread that receives, as is the next.
    bool is_the_message_s = false; // The Port has gone, and has left its share to the message.

    PortCore() = default;
    PortCore(const PortCore &) = delete;
    PortCore &operator=(const PortCore &) = delete;
    ~PortCore() { (void)velo_port_close(port); }
};

} // namespace velo::detail

#endif
