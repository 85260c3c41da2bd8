// SPDX-License-Identifier: Apache-2.0
//
// Each hot call from C and from C++, so that cost.py can compare the instructions of the functions
// c_* and cpp_*, with all that they call. A port is connected to itself.

#include <array>

#include <velo/rma.hpp>

namespace
{

constexpr int kCalls = 1000;

void check(bool good)
{
    if (!good)
        std::abort();
}

} // namespace

#define MEASURE extern "C" __attribute__((noinline))

using Buffer = std::array<std::byte, 64>;

MEASURE void c_send(velo_conn *conn, const Buffer &buf)
{
    check(velo_send(conn, buf.data(), 8, 1, VELO_FOREVER) == VELO_OK);
}
MEASURE void cpp_send(velo::Connection &conn, const Buffer &buf)
{
    check(conn.send(std::span(buf).first(8), 1, velo::forever).has_value());
}

MEASURE void c_try_send(velo_conn *conn, const Buffer &buf)
{
    check(velo_try_send(conn, buf.data(), 8, 1) == VELO_OK);
}
MEASURE void cpp_try_send(velo::Connection &conn, const Buffer &buf)
{
    check(conn.try_send(std::span(buf).first(8), 1).has_value());
}

MEASURE void c_reserve(velo_conn *conn)
{
    void *room;
    check(velo_try_reserve(conn, 8, &room) == VELO_OK);
    *static_cast<std::byte *>(room) = std::byte{1};
    check(velo_commit(conn, 8, 1) == VELO_OK);
}
MEASURE void cpp_reserve(velo::Connection &conn)
{
    auto room = conn.try_reserve(8);
    check(room.has_value());
    room->front() = std::byte{1};
    check(conn.commit(8, 1).has_value());
}

MEASURE std::size_t c_recv(velo_port *port, Buffer &buf)
{
    velo_msg msg;
    check(velo_recv(port, buf.data(), buf.size(), &msg, VELO_FOREVER) == VELO_OK);
    return msg.len_bytes;
}
MEASURE std::size_t cpp_recv(velo::Port &port, Buffer &buf)
{
    const auto msg = port.recv(buf, velo::forever);
    check(msg.has_value());
    return msg->len_bytes;
}

MEASURE std::size_t c_try_recv(velo_port *port, Buffer &buf)
{
    velo_msg msg;
    check(velo_try_recv(port, buf.data(), buf.size(), &msg) == VELO_OK);
    return msg.len_bytes;
}
MEASURE std::size_t cpp_try_recv(velo::Port &port, Buffer &buf)
{
    const auto msg = port.try_recv(buf);
    check(msg.has_value());
    return msg->len_bytes;
}

MEASURE uint8_t c_peek(velo_port *port)
{
    velo_msg msg;
    check(velo_try_peek(port, &msg) == VELO_OK);
    uint8_t first = *static_cast<const uint8_t *>(msg.data);
    check(velo_release(port) == VELO_OK);
    return first;
}
MEASURE uint8_t cpp_peek(velo::Port &port)
{
    auto message = port.try_peek();
    check(message.has_value());
    auto first = static_cast<uint8_t>(message->bytes().front());
    check(message->release().has_value());
    return first;
}

MEASURE void c_put(velo_rma_peer *peer, const Buffer &buf, velo_rma_key_t key)
{
    check(velo_rma_put(peer, buf.data(), 8, velo_rma_place(key, 0), 0, 0) == VELO_OK);
}
MEASURE void cpp_put(velo::RmaPeer &peer, const Buffer &buf, velo_rma_key_t key)
{
    check(peer.put(std::span(buf).first(8), velo_rma_place(key, 0)).has_value());
}

MEASURE void c_get(velo_rma_peer *peer, Buffer &buf, velo_rma_key_t key)
{
    check(velo_rma_get(peer, buf.data(), 8, velo_rma_place(key, 0), 0, 0) == VELO_OK);
}
MEASURE void cpp_get(velo::RmaPeer &peer, Buffer &buf, velo_rma_key_t key)
{
    check(peer.get(std::span(buf).first(8), velo_rma_place(key, 0)).has_value());
}

// Each pair of calls meets the same state of the ring: a round is one of C, or one of C++.
int main()
{
    velo::Port port = *velo::Port::open();
    velo::Connection conn = *port.connect(port.id(), velo::forever);
    velo::Rma rma = *velo::Rma::open(port);
    velo::RmaMemory memory = *rma.alloc(64, VELO_RMA_RIGHT_ALL);
    velo::RmaPeer peer = *rma.connect(port.id(), velo::forever);
    Buffer buf{};
    for (int i = 0; i < kCalls; i++) {
        c_send(conn.handle(), buf);
        c_try_recv(port.handle(), buf);
        c_try_send(conn.handle(), buf);
        c_recv(port.handle(), buf);
        c_reserve(conn.handle());
        c_peek(port.handle());
        c_put(peer.handle(), buf, memory.key());
        c_get(peer.handle(), buf, memory.key());
    }
    for (int i = 0; i < kCalls; i++) {
        cpp_send(conn, buf);
        cpp_try_recv(port, buf);
        cpp_try_send(conn, buf);
        cpp_recv(port, buf);
        cpp_reserve(conn);
        cpp_peek(port);
        cpp_put(peer, buf, memory.key());
        cpp_get(peer, buf, memory.key());
    }
    return 0;
}
