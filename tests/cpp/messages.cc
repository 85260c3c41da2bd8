// SPDX-License-Identifier: Apache-2.0
//
// Every call of velo.hpp that concerns messages, and every status that one process can provoke.

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "check.hpp"

namespace
{

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view text(std::span<const std::byte> bytes)
{
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

iovec piece(std::string_view text) { return {const_cast<char *>(text.data()), text.size()}; }

// With -Wall -Werror: each status of C has a name here, and each its own.
constexpr Status named(velo_status status)
{
    switch (status) {
    case VELO_OK:
        return Status::ok;
    case VELO_AGAIN:
        return Status::again;
    case VELO_TIMEOUT:
        return Status::timeout;
    case VELO_ERR_ARG:
        return Status::arg;
    case VELO_ERR_STATE:
        return Status::state;
    case VELO_ERR_TOO_BIG:
        return Status::too_big;
    case VELO_ERR_NO_PEER:
        return Status::no_peer;
    case VELO_ERR_PEER_CLOSED:
        return Status::peer_closed;
    case VELO_ERR_PEER_DEAD:
        return Status::peer_dead;
    case VELO_ERR_IN_USE:
        return Status::in_use;
    case VELO_ERR_FULL:
        return Status::full;
    case VELO_ERR_ACCESS:
        return Status::access;
    case VELO_ERR_NO_SPACE:
        return Status::no_space;
    case VELO_ERR_NO_MEMORY:
        return Status::no_memory;
    case VELO_ERR_VERSION:
        return Status::version;
    case VELO_ERR_CORRUPT:
        return Status::corrupt;
    case VELO_ERR_SYSTEM:
        return Status::system;
    case VELO_ERR_INTERRUPTED:
        return Status::interrupted;
    case VELO_ERR_MISSED:
        return Status::missed;
    case VELO_ERR_CANCELLED:
        return Status::cancelled;
    }
    return Status::ok;
}

TEST(cpp_each_status_is_that_of_c)
{
    for (int status = VELO_ERR_MISSED; status <= VELO_OK; status++)
        CHECK_EQ(static_cast<int>(named(static_cast<velo_status>(status))), status);
    CHECK(std::string_view(velo::to_string(Status::again)).starts_with("VELO_AGAIN"));
}

TEST(cpp_each_way_to_send_arrives_at_each_way_to_receive)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_EQ(conn.generation(), port.generation());
    CHECK(conn.max_bytes() >= 4096);
    const std::array pieces{piece("in "), piece("pieces")};
    CHECK_GOOD(conn.send(bytes("waits"), 1, patience));
    CHECK_GOOD(conn.try_send(bytes("tries"), 2));
    CHECK_GOOD(conn.sendv(pieces, 3, patience));
    CHECK_GOOD(conn.try_sendv(pieces, 4));

    std::array<std::byte, 64> buf;
    const auto waited = port.recv(buf, patience);
    CHECK_GOOD(waited);
    CHECK(text(std::span(buf).first(waited->len_bytes)) == "waits");
    CHECK_EQ(waited->tag, 1);
    CHECK_EQ(waited->source, port.id());
    CHECK_EQ(waited->generation, port.generation());
    const auto tried = port.try_recv(buf);
    CHECK_GOOD(tried);
    CHECK(text(std::span(buf).first(tried->len_bytes)) == "tries");
    CHECK_EQ(tried->tag, 2);
    {
        const auto peeked = port.peek(patience);
        CHECK_GOOD(peeked);
        CHECK(text(peeked->bytes()) == "in pieces");
        CHECK_EQ(peeked->tag(), 3);
        CHECK_EQ(peeked->source(), port.id());
        CHECK_EQ(peeked->generation(), port.generation());
    }
    const auto peeked = port.try_peek();
    CHECK_GOOD(peeked);
    CHECK(text(peeked->bytes()) == "in pieces");
    CHECK_EQ(peeked->tag(), 4);
}

TEST(cpp_a_burst_is_one_call_on_each_side)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    std::array<velo_msg, 3> msgs{};
    for (std::size_t i = 0; i < msgs.size(); i++) {
        msgs[i].data = "abc";
        msgs[i].len_bytes = i;
        msgs[i].tag = static_cast<std::uint8_t>(i);
    }
    const auto sent = conn.send_many(msgs, patience);
    CHECK_GOOD(sent);
    CHECK_EQ(*sent, 3);
    CHECK_EQ(*conn.send_many({}, patience), 0);
    msgs[1].data = nullptr; // Of one byte.
    CHECK_EQ(*conn.send_many(msgs, patience), 1);
    CHECK_IS(conn.send_many(std::span(msgs).subspan(1), patience), Status::arg);

    std::array<velo_msg, 8> got;
    std::array<std::byte, 64> buf;
    const auto received = port.recv_many(got, buf, patience);
    CHECK_GOOD(received);
    CHECK_EQ(received->size(), 4);
    for (std::size_t i = 0; i < 4; i++) {
        CHECK_EQ((*received)[i].len_bytes, i % 3);
        CHECK_EQ((*received)[i].tag, i % 3);
    }
    CHECK(std::memcmp((*received)[2].data, "ab", 2) == 0);
    CHECK_IS(port.recv_many(got, buf, 0ns), Status::timeout);
    CHECK_IS(port.recv_many({}, buf, 0ns), Status::arg);
    CHECK_GOOD(conn.send(bytes("too long"), 7, patience));
    const auto not_received = port.recv_many(got, std::span(buf).first(4), patience);
    CHECK_IS(not_received, Status::too_big);
    CHECK_EQ(not_received.error().about.len_bytes, 8);
}

TEST(cpp_a_burst_into_a_full_ring_tells_how_far_it_came)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    const std::vector<velo_msg> msgs(100000);
    const auto sent = conn.send_many(msgs, 0ns);
    CHECK_GOOD(sent);
    CHECK(*sent > 0 && *sent < 100000);
    CHECK_IS(conn.send_many(msgs, 0ns), Status::timeout);
    std::array<velo_msg, 8> got;
    std::array<std::byte, 64> buf;
    int received = 0;
    while (received < *sent) {
        const auto some = port.recv_many(got, buf, patience);
        CHECK_GOOD(some);
        received += static_cast<int>(some->size());
    }
    CHECK_EQ(received, *sent);
    CHECK_IS(port.recv_many(got, buf, 0ns), Status::timeout);
}

TEST(cpp_objects_travel_as_their_bytes)
{
    struct Point {
        double x, y;
    };
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_GOOD(conn.try_send(velo::bytes_of(Point{1.5, -2})));
    Point point{};
    CHECK_GOOD(port.try_recv(velo::writable_bytes_of(point)));
    CHECK(point.x == 1.5 && point.y == -2);
}

TEST(cpp_a_message_is_built_in_the_receivers_memory)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    auto room = conn.try_reserve(100);
    CHECK_GOOD(room);
    CHECK_EQ(room->size(), 100);
    std::memcpy(room->data(), "built", 5);
    CHECK_IS(conn.reserve(1, 0ns), Status::state);
    CHECK_IS(conn.try_send({}), Status::state);
    CHECK_IS(conn.commit(101), Status::too_big);
    CHECK_GOOD(conn.commit(5, 9));
    CHECK_IS(conn.commit(5), Status::state);
    CHECK_GOOD(conn.reserve(0, patience));
    CHECK_GOOD(conn.commit(0));
    const auto message = port.try_peek();
    CHECK_GOOD(message);
    CHECK(text(message->bytes()) == "built");
    CHECK_EQ(message->tag(), 9);
}

TEST(cpp_a_held_message_keeps_the_next_ones_back)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    std::array<std::byte, 8> buf;
    CHECK_GOOD(conn.try_send(bytes("first")));
    CHECK_GOOD(conn.try_send(bytes("second")));
    auto first = port.try_peek();
    CHECK_GOOD(first);
    CHECK_IS(port.try_peek(), Status::state);
    CHECK_IS(port.peek(0ns), Status::state);
    CHECK_IS(port.try_recv(buf), Status::state);
    velo::Message moved = *std::move(first);
    CHECK(text(moved.bytes()) == "first");
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): this is what is tested
    CHECK_IS(first->release(), Status::arg);
    CHECK_GOOD(moved.release());
    CHECK(moved.bytes().empty());
    CHECK_IS(moved.release(), Status::arg);
    CHECK(text(port.try_peek()->bytes()) == "second");
}

TEST(cpp_a_deferred_message_comes_when_the_port_resumes)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_GOOD(conn.try_send(bytes("later")));
    CHECK_GOOD(port.try_peek()->defer());
    CHECK_IS(port.try_peek(), Status::again);
    CHECK_GOOD(port.resume());
    CHECK(text(port.try_peek()->bytes()) == "later");
}

TEST(cpp_a_wait_ends_with_its_time)
{
    velo::Port port = open_port(1, 0, 8);
    velo::Connection conn = connect_to(port, port.id());
    std::array<std::byte, 8> buf;
    CHECK_IS(port.try_recv(buf), Status::again);
    CHECK_IS(port.recv(buf, 1ms), Status::timeout);
    CHECK_IS(port.try_peek(), Status::again);
    CHECK_IS(port.peek(1ms), Status::timeout);
    const std::array<std::byte, 57> line{};
    while (conn.try_send(line))
        ;
    CHECK_IS(conn.try_send(line), Status::again);
    CHECK_IS(conn.send(line, 0, 1ms), Status::timeout);
    const std::array pieces{iovec{}};
    CHECK_IS(conn.try_sendv(pieces), Status::again);
    CHECK_IS(conn.sendv(pieces, 0, 1ms), Status::timeout);
    CHECK_IS(conn.try_reserve(57), Status::again);
    CHECK_IS(conn.reserve(57, 1ms), Status::timeout);
    CHECK_IS(port.recv(buf, -2ns), Status::arg);
}

TEST(cpp_a_message_that_does_not_fit_tells_its_length)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_GOOD(conn.try_send(bytes("long"), 5));
    std::array<std::byte, 3> small;
    for (const auto &refused : {port.try_recv(small), port.recv(small, patience)}) {
        CHECK_IS(refused, Status::too_big);
        CHECK(refused.error() == Status::too_big);
        CHECK_EQ(refused.error().about.len_bytes, 4);
        CHECK_EQ(refused.error().about.tag, 5);
        CHECK_EQ(refused.error().about.source, port.id());
    }
    const auto too_long = std::make_unique<std::byte[]>(conn.max_bytes() + 1);
    CHECK_IS(conn.try_send({too_long.get(), conn.max_bytes() + 1}), Status::too_big);
    CHECK_IS(conn.try_reserve(conn.max_bytes() + 1), Status::too_big);
}

TEST(cpp_connecting_fails_with_the_reason)
{
    velo::Port port = open_port(1), crowded = open_port(2, 0, 0, 1);
    CHECK_IS(port.connect(VELO_ID(0, 9), 0ns), Status::no_peer);
    const velo::Connection only = connect_to(port, crowded.id());
    CHECK_IS(port.connect(crowded.id(), 0ns), Status::full);
    CHECK(*velo::last_error() != '\0');
    velo::PortAttr attr;
    attr.vpid = 1;
    CHECK_IS(velo::Port::open(attr), Status::in_use);
    attr.vpid = 256;
    CHECK_IS(velo::Port::open(attr), Status::arg);
}

TEST(cpp_a_message_carries_what_is_kept_for_its_source)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    int state = 0;

    CHECK_GOOD(conn.try_send({}));
    {
        auto message = port.peek(patience);
        CHECK_GOOD(message);
        CHECK(message->user() == nullptr);
        CHECK_GOOD(port.set_user(*message, &state));
    }
    CHECK_GOOD(conn.try_send({}));
    CHECK(port.recv({}, patience)->user == &state);
    CHECK_IS(port.set_user(velo_msg{}, &state), Status::no_peer);
}

TEST(cpp_a_departure_names_the_sender_that_has_gone)
{
    velo::Port port = open_port(1, VELO_PORT_DEPARTURES), sender = open_port(2);
    const uint32_t generation = sender.generation();
    {
        velo::Connection conn = connect_to(sender, port.id());
        CHECK_GOOD(conn.try_send(bytes("last")));
    }
    CHECK(text(port.try_peek()->bytes()) == "last");
    const auto gone = port.peek(patience);
    CHECK_IS(gone, Status::peer_closed);
    CHECK_EQ(gone.error().about.source, sender.id());
    CHECK_EQ(gone.error().about.generation, generation);
}

TEST(cpp_a_sender_hears_that_its_peer_closed)
{
    velo::Port port = open_port(1), peer = open_port(2);
    velo::Connection conn = connect_to(port, peer.id());
    CHECK_GOOD(conn.status());
    CHECK_GOOD(peer.close());
    CHECK_IS(conn.status(), Status::peer_closed);
    CHECK_IS(conn.try_send({}), Status::peer_closed);
    CHECK_IS(conn.try_reserve(1), Status::peer_closed);
}

TEST(cpp_a_sender_hears_that_its_peer_died)
{
    velo::Port port = open_port(1);
    const pid_t child = child_start(
        [](void *) {
            velo::Port mine = open_port(2);
            velo::Connection back = connect_to(mine, VELO_ID(0, 1));
            CHECK_GOOD(back.try_send({}));
            pause();
        },
        nullptr);
    CHECK_GOOD(port.peek(patience));
    velo::Connection conn = connect_to(port, VELO_ID(0, 2));
    child_kill(child);
    CHECK_IS(conn.status(), Status::peer_dead);
    CHECK_IS(conn.send({}, 0, patience), Status::peer_dead);
    conn.disconnect();
    const velo::Port after = open_port(2); // Takes away what the child left.
}

TEST(cpp_an_event_loop_waits_for_a_descriptor)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_IS(port.arm(), Status::state);
    const auto fd = port.fd();
    CHECK_GOOD(fd);
    pollfd ready{*fd, POLLIN, 0};
    CHECK_GOOD(port.arm());
    CHECK_EQ(poll(&ready, 1, 0), 0);
    CHECK_GOOD(conn.try_send({}));
    CHECK_EQ(poll(&ready, 1, 10000), 1);
    CHECK_GOOD(port.try_peek());
}

TEST(cpp_an_interrupted_wait_for_room_says_so)
{
    velo::Port port = open_port(1);
    CHECK_IS(port.try_connect(VELO_ID(0, 99)), Status::no_peer);
    auto conn = port.try_connect(port.id());
    CHECK_GOOD(conn);
    while (conn->try_send({}))
        ;
    conn->interrupt();
    CHECK_IS(conn->send({}, 0, patience), Status::interrupted);
}

TEST(cpp_an_interrupted_wait_says_so)
{
    velo::Port port = open_port(1);
    port.interrupt();
    CHECK_IS(port.peek(patience), Status::interrupted);
}

TEST(cpp_a_port_counts_its_messages)
{
    velo::Port port = open_port(1);
    velo::Connection conn = connect_to(port, port.id());
    CHECK_GOOD(conn.try_send(bytes("counted")));
    CHECK_GOOD(port.try_peek());
    const auto counters = port.counters();
    CHECK_GOOD(counters);
    CHECK_EQ(counters->rx_msgs, 1);
    CHECK_EQ(counters->tx_bytes, 7);
}

} // namespace
