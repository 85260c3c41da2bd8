// SPDX-License-Identifier: Apache-2.0
//
// Every call of rma.hpp, on memory of the port itself.

#include <array>
#include <cstring>
#include <vector>

#include <poll.h>

#include <velo/rma.hpp>

#include "check.hpp"

namespace
{

// A port, its unit, and itself as its peer.
struct Unit {
    velo::Port port = open_port(1);
    velo::Rma rma = *velo::Rma::open(port);
    velo::RmaPeer peer = *rma.connect(port.id(), patience);
};

template <class T> T word(const velo::RmaMemory &memory, size_t index = 0)
{
    T value;
    std::memcpy(&value, memory.bytes().data() + index * sizeof value, sizeof value);
    return value;
}

TEST(cpp_what_is_put_can_be_got)
{
    Unit unit;
    velo::RmaMemory memory = *unit.rma.alloc(4096, VELO_RMA_RIGHT_ALL);
    CHECK_EQ(memory.bytes().size(), 4096);
    const velo::RmaPlace start = velo_rma_place(memory.key(), 0);
    const std::array<uint64_t, 2> sent{11, 22};
    CHECK_GOOD(unit.peer.put(std::as_bytes(std::span(sent)), start));
    CHECK_GOOD(unit.peer.fence());
    CHECK_GOOD(unit.peer.put_immediate(33, 8, velo_rma_place(memory.key(), 16)));
    CHECK_GOOD(unit.peer.flush(patience));
    std::array<uint64_t, 3> got{};
    CHECK_GOOD(unit.peer.get(std::as_writable_bytes(std::span(got)), start));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK(got == (std::array<uint64_t, 3>{11, 22, 33}));
    const auto counters = unit.rma.counters();
    CHECK_EQ(counters->puts, 2);
    CHECK_EQ(counters->gets, 1);
    CHECK_GOOD(unit.peer.status());
}

TEST(cpp_memory_of_the_caller_is_registered)
{
    Unit unit;
    std::vector<uint32_t> mine(4, 5);
    auto bytes = std::as_writable_bytes(std::span(mine));
    velo::RmaMemory memory = *unit.rma.register_memory(bytes, VELO_RMA_RIGHT_READ);
    CHECK(memory.bytes().data() == bytes.data() && memory.bytes().size() == bytes.size());
    uint32_t got = 0;
    CHECK_GOOD(unit.peer.get(velo::writable_bytes_of(got), velo_rma_place(memory.key(), 12)));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK_EQ(got, 5);
    CHECK_IS(unit.peer.put(velo::bytes_of(got), velo_rma_place(memory.key(), 0)), Status::access);
    CHECK_GOOD(memory.deregister(patience));
    CHECK(memory.bytes().empty());
    CHECK_IS(unit.rma.register_memory({}, VELO_RMA_RIGHT_READ), Status::arg);
    CHECK_IS(unit.rma.alloc(0, VELO_RMA_RIGHT_READ), Status::arg);
}

TEST(cpp_blocks_and_lists_are_one_operation)
{
    Unit unit;
    velo::RmaMemory memory = *unit.rma.alloc(4096, VELO_RMA_RIGHT_ALL);
    const velo::RmaPlace start = velo_rma_place(memory.key(), 0);
    std::array<uint32_t, 4> sent{1, 2, 3, 4}, got{};
    const velo_rma_stride spread{4, 4, 4, 8};
    CHECK_GOOD(unit.peer.put_strided(sent.data(), spread, start));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK_EQ(word<uint32_t>(memory, 6), 4);
    CHECK_GOOD(unit.peer.get_strided(got.data(), spread, start));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK(got == sent);
    const std::array to{velo_rma_piece{&sent[0], 100, 4}, velo_rma_piece{&sent[3], 104, 4}};
    CHECK_GOOD(unit.peer.put_list(to, start));
    CHECK_GOOD(unit.peer.flush(patience));
    const std::array from{velo_rma_piece{&got[2], 100, 4}, velo_rma_piece{&got[1], 104, 4}};
    CHECK_GOOD(unit.peer.get_list(from, start));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK(got == (std::array<uint32_t, 4>{1, 4, 1, 4}));
}

TEST(cpp_words_are_updated_by_their_type)
{
    Unit unit;
    velo::RmaMemory memory = *unit.rma.alloc(64, VELO_RMA_RIGHT_ALL);
    const auto place = [&](uint64_t offset) { return velo_rma_place(memory.key(), offset); };
    uint64_t old = 1;
    CHECK_GOOD(unit.peer.fetch_compare_add(&old, place(0), 0, 5));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK(old == 0 && word<uint64_t>(memory) == 5);
    CHECK_GOOD(unit.peer.compare_swap<uint64_t>(&old, place(0), 5, 6));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK(old == 5 && word<uint64_t>(memory) == 6);

    double before = 1;
    CHECK_GOOD(unit.peer.fetch_op(&before, place(8), VELO_RMA_ATOMIC_ADD, 1.5));
    CHECK_GOOD(unit.peer.fetch_op<double>(nullptr, place(8), VELO_RMA_ATOMIC_MAX, 9));
    CHECK_GOOD(unit.peer.fetch_op<float>(nullptr, place(16), VELO_RMA_ATOMIC_SWAP, 2.5F));
    CHECK_GOOD(unit.peer.fetch_op<int32_t>(nullptr, place(20), VELO_RMA_ATOMIC_MIN, -3));
    CHECK_GOOD(unit.peer.fetch_op<uint32_t>(nullptr, place(24), VELO_RMA_ATOMIC_MIN, ~0U));
    CHECK_GOOD(unit.peer.fetch_op<int64_t>(nullptr, place(32), VELO_RMA_ATOMIC_MAX, -1));
    CHECK_GOOD(unit.peer.fetch_op<uint64_t>(nullptr, place(40), VELO_RMA_ATOMIC_MAX, ~0UL));
    CHECK_GOOD(unit.peer.flush(patience));
    CHECK(before == 0 && word<double>(memory, 1) == 9);
    CHECK(word<float>(memory, 4) == 2.5F);
    CHECK_EQ(word<int32_t>(memory, 5), -3);
    CHECK_EQ(word<uint32_t>(memory, 6), 0);
    CHECK_EQ(word<int64_t>(memory, 4), 0);
    CHECK_EQ(word<uint64_t>(memory, 5), ~0UL);
    CHECK_IS(unit.peer.fetch_op(&before, place(8), VELO_RMA_ATOMIC_AND, 1.0), Status::arg);
}

TEST(cpp_notifications_are_taken_as_far_as_there_is_room)
{
    Unit unit;
    std::array<velo::RmaNotification, 2> room{};
    CHECK_EQ(unit.rma.try_poll(room)->size(), 0);
    CHECK_IS(unit.rma.poll(room, 1ms), Status::timeout);
    CHECK_IS(unit.rma.poll({}, 1ms), Status::arg);
    for (uint64_t cookie = 1; cookie <= 3; cookie++)
        CHECK_GOOD(unit.peer.notify(VELO_RMA_NOTIFY_COMPLETER, cookie));
    const auto taken = unit.rma.poll(room, patience);
    CHECK_GOOD(taken);
    CHECK_EQ(taken->size(), 2);
    CHECK_EQ(taken->front().cookie, 1);
    CHECK_EQ(taken->front().class_, VELO_RMA_CLASS_COMPLETER);
    const auto rest = unit.rma.try_poll(room);
    CHECK_EQ(rest->size(), 1);
    CHECK_EQ(rest->front().cookie, 3);
    CHECK_EQ(unit.rma.progress(), 0);
}

TEST(cpp_an_event_loop_waits_for_the_descriptor_of_a_unit)
{
    Unit unit;
    CHECK_IS(unit.rma.arm(), Status::state);
    const auto fd = unit.rma.fd();
    CHECK_GOOD(fd);
    CHECK_GOOD(unit.rma.arm());
    pollfd ready{*fd, POLLIN, 0};
    CHECK_EQ(poll(&ready, 1, 0), 0);
    CHECK_GOOD(unit.peer.notify(VELO_RMA_NOTIFY_COMPLETER, 1));
    CHECK_EQ(poll(&ready, 1, 10000), 1);
    CHECK_IS(unit.rma.arm(), Status::again);
}

TEST(cpp_registrations_are_found_by_address_and_number)
{
    Unit unit;
    velo::RmaMemory memory = *unit.rma.alloc(64, VELO_RMA_RIGHT_READ);
    CHECK_GOOD(memory.publish(9));
    const auto by_number = unit.peer.lookup(9, VELO_RMA_RIGHT_READ);
    CHECK_GOOD(by_number);
    CHECK_EQ(by_number->key, memory.key());
    const auto address = reinterpret_cast<uint64_t>(memory.bytes().data());
    const auto by_address = unit.peer.find(address + 8, 8, VELO_RMA_RIGHT_READ);
    CHECK_GOOD(by_address);
    CHECK_EQ(by_address->offset, 8);
    CHECK_IS(unit.peer.lookup(9, VELO_RMA_RIGHT_WRITE), Status::access);
    CHECK_IS(unit.peer.find(address + 64, 1, VELO_RMA_RIGHT_READ), Status::access);
    CHECK_IS(memory.publish(VELO_RMA_NUMBER_MAX + 1), Status::arg);
}

TEST(cpp_a_port_has_one_unit)
{
    Unit unit;
    CHECK_IS(velo::Rma::open(unit.port), Status::state);
    CHECK_IS(unit.rma.connect(VELO_ID(0, 9), 0ns), Status::no_peer);
    velo::RmaAttr attr;
    attr.flags = ~0U;
    velo::Port other = open_port(2);
    CHECK_IS(velo::Rma::open(other, attr), Status::arg);
    attr.flags = VELO_RMA_OPEN_NO_ATTACH;
    CHECK_GOOD(velo::Rma::open(other, attr));
}

} // namespace
