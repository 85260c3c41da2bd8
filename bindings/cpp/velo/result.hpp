/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file result.hpp
 * @brief What calls in C++ return: a value, or the status that says why there is none.
 *
 * Nothing here throws. Whoever takes the value of a result that has none ends the process.
 */
#ifndef VELO_RESULT_HPP
#define VELO_RESULT_HPP

#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

#include <velo/velo.h>

namespace velo
{

/** enum velo_status, which says what each means. A name is that of C without VELO_ and ERR_. */
enum class [[nodiscard]] Status : int {
    ok = VELO_OK,
    again = VELO_AGAIN,
    timeout = VELO_TIMEOUT,
    arg = VELO_ERR_ARG,
    state = VELO_ERR_STATE,
    too_big = VELO_ERR_TOO_BIG,
    no_peer = VELO_ERR_NO_PEER,
    peer_closed = VELO_ERR_PEER_CLOSED,
    peer_dead = VELO_ERR_PEER_DEAD,
    in_use = VELO_ERR_IN_USE,
    full = VELO_ERR_FULL,
    access = VELO_ERR_ACCESS,
    no_space = VELO_ERR_NO_SPACE,
    no_memory = VELO_ERR_NO_MEMORY,
    version = VELO_ERR_VERSION,
    corrupt = VELO_ERR_CORRUPT,
    system = VELO_ERR_SYSTEM,
    interrupted = VELO_ERR_INTERRUPTED,
    cancelled = VELO_ERR_CANCELLED,
    missed = VELO_ERR_MISSED,
};

/** The name and meaning of a status; see velo_strerror(). */
inline const char *to_string(Status status) noexcept
{
    return velo_strerror(static_cast<int>(status));
}

/** What the last failed cold call of this thread failed for; see velo_last_error(). */
inline const char *last_error() noexcept { return velo_last_error(); }

/**
 * A value, or the error that says why there is none; as std::expected of C++23.
 *
 * @tparam T  The value. It may be move-only.
 * @tparam E  The error: a Status, or what converts to one.
 */
template <class T, class E = Status> class [[nodiscard]] Result
{
  public:
    using value_type = T;
    using error_type = E;

    /** A value that is made in place of `args`. */
    template <class... Args>
    constexpr explicit Result(std::in_place_t in_place, Args &&...args)
        : value_(in_place, std::forward<Args>(args)...)
    {
    }
    /** No value, for this error. */
    constexpr Result(E error) : error_(error) {}

    /** Is there a value? */
    constexpr bool has_value() const noexcept { return value_.has_value(); }
    constexpr explicit operator bool() const noexcept { return has_value(); }

    /** The value. Without one the process ends. */
    constexpr T &operator*() & { return held(*this); }
    constexpr const T &operator*() const & { return held(*this); }
    constexpr T &&operator*() && { return std::move(held(*this)); }
    constexpr T *operator->() { return &held(*this); }
    constexpr const T *operator->() const { return &held(*this); }

    /** The error; Status::ok if there is a value. */
    constexpr const E &error() const noexcept { return error_; }
    /** Status::ok if there is a value, else the status of the error. */
    constexpr Status status() const noexcept { return static_cast<Status>(error_); }

  private:
    template <class Self> static constexpr auto &held(Self &self)
    {
        if (!self.value_)
            std::abort();
        return *self.value_;
    }

    std::optional<T> value_;
    E error_{};
};

/** The result of a call that returns nothing but success or a status. */
template <> class [[nodiscard]] Result<void, Status>
{
  public:
    using value_type = void;
    using error_type = Status;

    constexpr Result(Status status) noexcept : status_(status) {}
    /** The result of a call of C, whose values are those of Status. */
    constexpr explicit Result(int status) noexcept : status_(static_cast<Status>(status)) {}

    /** Did the call succeed? */
    constexpr bool has_value() const noexcept { return status_ == Status::ok; }
    constexpr explicit operator bool() const noexcept { return has_value(); }
    /** The status; Status::ok if the call succeeded. */
    constexpr Status error() const noexcept { return status_; }
    constexpr Status status() const noexcept { return status_; }

  private:
    Status status_;
};

} // namespace velo

#endif
