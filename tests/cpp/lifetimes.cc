// SPDX-License-Identifier: Apache-2.0
//
// Who owns what: what must not compile, and what stays open as long as anybody needs it.

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <velo/rma.hpp>

#include "check.hpp"

namespace
{

template <class T>
constexpr bool is_move_only =
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    !std::is_default_constructible_v<T>;
static_assert(is_move_only<velo::Port>);
static_assert(is_move_only<velo::Connection>);
static_assert(is_move_only<velo::Message>);
static_assert(is_move_only<velo::Rma>);
static_assert(is_move_only<velo::RmaPeer>);
static_assert(is_move_only<velo::RmaMemory>);
static_assert(!std::is_copy_constructible_v<velo::Result<velo::Port>>);
static_assert(!std::is_constructible_v<velo::Message, velo::detail::PortCore *, velo_msg>);

// Times have a unit; bytes are bytes of something that can be copied so; a result is looked at.
template <class Time>
concept SendsFor = requires(velo::Connection conn, Time time) { conn.send({}, 0, time); };
static_assert(SendsFor<std::chrono::seconds> && !SendsFor<int> && !SendsFor<double>);
template <class T>
concept HasBytes = requires(const T &object) { velo::bytes_of(object); };
static_assert(HasBytes<double> && !HasBytes<std::string>);
template <class T>
concept FetchesOp = requires(velo::RmaPeer peer, T word) {
    peer.fetch_op(&word, velo::RmaPlace{}, VELO_RMA_ATOMIC_ADD, word);
};
static_assert(FetchesOp<float> && FetchesOp<uint64_t> && !FetchesOp<short> && !FetchesOp<char>);
static_assert(!std::is_convertible_v<velo::Result<void>, bool>);

bool is_open(velo::Port &observer, velo_id_t id)
{
    return observer.connect(id, 0ns).status() == Status::ok;
}

TEST(cpp_a_port_closes_at_its_end)
{
    velo::Port observer = open_port(1);
    {
        const velo::Port port = open_port(2);
        CHECK(is_open(observer, VELO_ID(0, 2)));
    }
    CHECK(!is_open(observer, VELO_ID(0, 2)));
}

TEST(cpp_a_connection_keeps_its_port_open)
{
    velo::Port observer = open_port(1);
    {
        velo::Connection conn = [&] {
            velo::Port port = open_port(2);
            return connect_to(port, observer.id());
        }();
        CHECK(is_open(observer, VELO_ID(0, 2)));
        CHECK_GOOD(conn.try_send({}, 3));
        CHECK_EQ(observer.try_peek()->tag(), 3);
    }
    CHECK(!is_open(observer, VELO_ID(0, 2)));
}

TEST(cpp_a_message_keeps_its_port_open)
{
    velo::Port observer = open_port(1);
    {
        velo::Message message = [&] {
            velo::Port port = open_port(2);
            velo::Connection conn = connect_to(observer, port.id());
            CHECK_GOOD(conn.try_send(velo::bytes_of(42)));
            return *port.try_peek();
        }();
        CHECK(is_open(observer, VELO_ID(0, 2)));
        int value = 0;
        CHECK_EQ(message.bytes().size(), sizeof value);
        std::memcpy(&value, message.bytes().data(), sizeof value);
        CHECK_EQ(value, 42);
    }
    CHECK(!is_open(observer, VELO_ID(0, 2)));
}

TEST(cpp_a_message_and_a_connection_keep_a_port_open_in_either_order)
{
    velo::Port observer = open_port(1);
    for (const bool message_first : {true, false}) {
        auto [message, conn] = [&] {
            velo::Port port = open_port(2);
            velo::Connection to_itself = connect_to(port, port.id());
            CHECK_GOOD(to_itself.try_send({}));
            return std::pair(*port.try_peek(), std::move(to_itself));
        }();
        if (message_first)
            CHECK_GOOD(message.release());
        else
            conn.disconnect();
        CHECK(is_open(observer, VELO_ID(0, 2)));
        if (message_first)
            conn.disconnect();
        else
            CHECK_GOOD(message.defer());
        CHECK(!is_open(observer, VELO_ID(0, 2)));
    }
}

TEST(cpp_the_last_of_many_threads_closes_their_port)
{
    velo::Port observer = open_port(1);
    for (int round = 0; round < 20; round++) {
        std::vector<std::thread> threads;
        {
            velo::Port port = open_port(2);
            for (uint8_t tag = 0; tag < 4; tag++)
                threads.emplace_back([conn = connect_to(port, observer.id()), tag]() mutable {
                    CHECK_GOOD(conn.send({}, tag, patience));
                    conn.disconnect();
                });
        }
        for (int message = 0; message < 4; message++)
            CHECK_GOOD(observer.peek(patience));
        for (std::thread &thread : threads)
            thread.join();
        CHECK(!is_open(observer, VELO_ID(0, 2)));
    }
}

TEST(cpp_a_port_that_is_needed_is_not_closed)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_IS(port.close(), Status::state);
    CHECK_GOOD(conn.try_send({}));
    auto message = port.try_peek();
    conn.disconnect();
    CHECK_IS(port.close(), Status::state);
    CHECK_GOOD(message->release());
    auto rma = velo::Rma::open(port);
    CHECK_IS(port.close(), Status::state);
    auto memory = rma->alloc(8, VELO_RMA_RIGHT_ALL);
    CHECK_IS(rma->close(), Status::state);
    CHECK_GOOD(memory->deregister(patience));
    CHECK_GOOD(rma->close());
    CHECK_GOOD(port.close());
    CHECK_IS(port.close(), Status::arg);
}

TEST(cpp_a_unit_is_open_as_long_as_its_memory)
{
    velo::Port observer = open_port(1);
    velo::Rma observing = *velo::Rma::open(observer);
    {
        velo::RmaMemory memory = [&] {
            velo::Port port = open_port(2);
            return *velo::Rma::open(port)->alloc(8, VELO_RMA_RIGHT_ALL);
        }();
        auto peer = observing.connect(VELO_ID(0, 2), 0ns);
        CHECK_GOOD(peer);
        CHECK_GOOD(peer->put(velo::bytes_of(uint64_t{7}), velo_rma_place(memory.key(), 0)));
        CHECK_GOOD(peer->flush(patience));
        CHECK_EQ(memory.bytes()[0], std::byte{7});
    }
    CHECK_IS(observing.connect(VELO_ID(0, 2), 0ns), Status::no_peer);
}

TEST(cpp_what_is_assigned_to_ends_what_it_had)
{
    velo::Port observer = open_port(1), port = open_port(2);
    port = open_port(3);
    CHECK(!is_open(observer, VELO_ID(0, 2)) && is_open(observer, VELO_ID(0, 3)));
    velo::Connection conn = connect_to(observer, port.id());
    conn = connect_to(observer, observer.id());
    CHECK_EQ(observer.counters()->tx_conns, 1);
    velo::Rma rma = *velo::Rma::open(observer);
    velo::RmaMemory memory = *rma.alloc(8, VELO_RMA_RIGHT_ALL);
    memory = *rma.alloc(16, VELO_RMA_RIGHT_ALL);
    CHECK_EQ(rma.counters()->registered, 1);
    CHECK_EQ(memory.bytes().size(), 16);
    velo::Connection &itself = conn;
    conn = std::move(itself);
    CHECK_GOOD(conn.try_send({}));
}

TEST(cpp_what_was_moved_from_says_so)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    velo::Rma rma = *velo::Rma::open(port);
    velo::RmaPeer peer = *rma.connect(port.id(), patience);
    velo::Port port_now = std::move(port);
    velo::Connection conn_now = std::move(conn);
    velo::Rma rma_now = std::move(rma);
    velo::RmaPeer peer_now = std::move(peer);
    // NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move): this is what is tested
    CHECK_IS(conn.try_send({}), Status::arg);
    CHECK_IS(conn.status(), Status::arg);
    CHECK_IS(port.try_peek(), Status::arg);
    CHECK_IS(port.try_recv({}), Status::arg);
    CHECK_IS(port.connect(VELO_ID(0, 1), 0ns), Status::arg);
    CHECK_IS(port.counters(), Status::arg);
    CHECK_IS(velo::Rma::open(port), Status::arg);
    CHECK_IS(rma.alloc(8, VELO_RMA_RIGHT_ALL), Status::arg);
    CHECK_IS(rma.counters(), Status::arg);
    CHECK_EQ(rma.progress(), int{VELO_ERR_ARG});
    CHECK_IS(peer.flush(0ns), Status::arg);
    // NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    CHECK_GOOD(conn_now.try_send({}));
    CHECK_GOOD(port_now.try_peek());
    CHECK_GOOD(peer_now.flush(0ns));
}

TEST(cpp_the_value_of_a_failure_ends_the_process)
{
    const pid_t child = child_start(
        [](void *) {
            const rlimit none{0, 0};
            setrlimit(RLIMIT_CORE, &none);
            velo::Port port = open_port(1);
            velo::Message message = *port.try_peek();
            CHECK_GOOD(message.release());
        },
        nullptr);
    const int status = child_wait(child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
    const velo::Port after = open_port(1); // Takes away what the child left.
}

TEST(cpp_a_child_that_destroys_what_its_parent_opened_closes_nothing)
{
    velo::Port port = open_port(1);
    velo::Connection conn = *port.connect(port.id(), 0ns);
    velo::Rma rma = *velo::Rma::open(port);
    const pid_t child = fork();
    if (child == 0) {
        {
            const velo::Rma rma_now = std::move(rma);
            const velo::Connection conn_now = std::move(conn);
            const velo::Port port_now = std::move(port);
        }
        _exit(0);
    }
    CHECK_EQ(child_wait(child), 0);
    CHECK_GOOD(conn.try_send({}));
    CHECK_GOOD(conn.status());
    CHECK_GOOD(port.try_peek());
    CHECK_GOOD(rma.alloc(8, VELO_RMA_RIGHT_ALL));
}

} // namespace
