// SPDX-License-Identifier: Apache-2.0
//
// The tests run this under velo-sim: `clients CASE ...`. Each case forks the processes that it
// needs.

#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "velo/spec.h"

namespace
{

using client::Channel;
using client::fail;

std::string barrier_file, survivor_file;

// Each rank in a process of its own; fails if one of them does.
int in_processes(unsigned ranks, const std::function<void(unsigned)> &body)
{
    std::vector<pid_t> children;
    for (unsigned rank = 0; rank < ranks; rank++) {
        pid_t pid = fork();
        if (pid == 0) {
            body(rank);
            std::fflush(nullptr);
            _exit(0);
        }
        children.push_back(pid);
    }
    int worst = 0;
    for (pid_t pid : children) {
        int status = 0;
        waitpid(pid, &status, 0);
        if (status != 0)
            worst = 1;
    }
    return worst;
}

// Attached, with a port each, and all at the same time.
unsigned begin(Channel &channel, unsigned rank, unsigned ranks, unsigned node)
{
    unsigned context = channel.open(node, 1 + rank);
    channel.barrier(barrier_file, ranks);
    channel.sleep_until(0);
    return context;
}

// A port that is left open is closed when the simulator finds its process dead, which is at no time
// of the cluster's: closing takes the node's host port, and what others do meanwhile would not
// repeat itself.
void leave(Channel &channel, unsigned node, unsigned context) { channel.close(node, context); }

// Messages there and back; prints half of a round.
int ping_pong(unsigned rounds, unsigned words)
{
    return in_processes(2, [&](unsigned rank) {
        Channel channel(rank);
        unsigned context = begin(channel, rank, 2, rank);
        uint64_t begin_ps = channel.now_ps();
        for (unsigned i = 0; i < rounds; i++) {
            if (rank == 0)
                channel.send(0, context, 1, 2, words, i);
            uint64_t value = channel.receive(rank, context);
            if (words > 1 && value != i)
                fail("a message is not what was sent");
            if (rank == 1)
                channel.send(1, context, 0, 1, words, i);
        }
        if (rank == 0)
            std::printf("half_round_trip_ps %" PRIu64 "\n",
                        (channel.now_ps() - begin_ps) / (2 * rounds));
        leave(channel, rank, context);
    });
}

// One message, from the store to the first picosecond in which it is seen.
int latency()
{
    constexpr uint64_t kAtPs = 100000000;
    return in_processes(2, [&](unsigned rank) {
        Channel channel(rank);
        unsigned context = begin(channel, rank, 2, rank);
        if (rank == 0) {
            channel.sleep_until(kAtPs);
            if (channel.try_send(0, context, 1, 2, 2, 7) != SIM_OK || channel.now_ps() != kAtPs)
                fail("the store was not taken");
        } else {
            uint64_t arrivals = 0;
            if (sim_poll(channel.get(), &arrivals, SIM_NEVER, 1) != SIM_OK)
                fail("no arrival");
            if (!channel.header(1, context))
                fail("an arrival, and no message");
            std::printf("latency_ps %" PRIu64 "\n", channel.now_ps() - kAtPs);
        }
    });
}

// Every rank, two of them on a node, sends to every other as fast as it goes; all in order. Each
// stands still for `rest_us` of real time before its last message: others have ended by then.
int all_to_all(unsigned ranks, unsigned messages, unsigned rest_us)
{
    return in_processes(ranks, [&](unsigned rank) {
        Channel channel(rank);
        unsigned node = rank / 2;
        unsigned context = begin(channel, rank, ranks, node);
        std::vector<uint64_t> expected(ranks);
        unsigned sent = 0, received = 0, all = messages * (ranks - 1);
        while (sent < all || received < all) {
            if (sent < all) {
                unsigned to = (rank + 1 + sent % (ranks - 1)) % ranks;
                if (channel.try_send(node, context, to / 2, 1 + to, 2 + sent % 7,
                                     uint64_t{rank} << 32 | sent / (ranks - 1) << 8) == SIM_OK)
                    sent++;
                channel.charge_ps(channel.area().copy_ps);
            } else if (!channel.header(node, context)) {
                channel.poll();
            }
            if (sent == all && received == all - 1)
                usleep(rest_us);
            if (sent == all || sent % 4 == 0) {
                channel.look();
                for (; channel.header(node, context); received++) {
                    uint64_t value = channel.receive(node, context);
                    uint64_t from = value >> 32;
                    if (from >= ranks || (value & 0xFFFFFFFF) >> 8 != expected[from]++)
                        fail("a message is lost or out of order");
                }
            }
        }
        leave(channel, node, context);
    });
}

// More lines than a ring, the network and the ways to both nodes hold, before the first is taken
// out; one sender beside the receiver, one on another node.
int overfull()
{
    constexpr unsigned kMessages = SIM_RING_SLOTS / 2 + 200;
    constexpr uint64_t kReceivedFromPs = 600000000, kRetryPs = 1000000;
    return in_processes(3, [](unsigned rank) {
        Channel channel(rank);
        unsigned node = rank / 2;
        unsigned context = begin(channel, rank, 3, node);
        if (rank == 0) {
            channel.sleep_until(kReceivedFromPs);
            std::vector<uint64_t> expected(3);
            for (unsigned i = 0; i < 2 * kMessages; i++) {
                uint64_t value = channel.receive(node, context), from = value >> 32;
                if (from < 1 || from > 2 || (value & 0xFFFFFFFF) >> 8 != expected[from]++)
                    fail("a message is lost or out of order");
            }
            std::printf("received_ps %" PRIu64 "\n", channel.now_ps());
            leave(channel, node, context);
            return;
        }
        unsigned held = 0; // lines that the hardware held when nothing more went
        for (unsigned i = 0; i < kMessages;) {
            if (channel.try_send(node, context, 0, 1, 2 + i % 7, uint64_t{rank} << 32 | i << 8) ==
                SIM_OK) {
                i++;
                channel.charge_ps(channel.area().copy_ps);
            } else {
                if (channel.now_ps() < kReceivedFromPs)
                    held = i;
                channel.charge_ps(kRetryPs);
            }
        }
        if (held == 0 || channel.now_ps() < kReceivedFromPs)
            fail("a full ring held nobody back");
        std::printf("held %u %u\n", rank, held);
        leave(channel, node, context);
    });
}

void expect(int is, int should, const char *what)
{
    if (is != should)
        fail(std::string(what) + ": " + std::to_string(is) + ", not " + std::to_string(should));
}

// What each call answers, and when.
int calls()
{
    return in_processes(1, [](unsigned) {
        Channel channel(0);
        sim_channel *raw = channel.get();
        uint64_t context = 1, opened = 0;
        expect(sim_port_open(raw, 2, &context, &opened), SIM_ERR_NODE, "a node that is not there");
        expect(static_cast<int>(channel.open(1, 9)), 9, "the context wanted");
        expect(static_cast<int>(channel.open(1, 9)), 0, "the first free context");
        for (unsigned c = 2; c < SIM_CONTEXTS; c++)
            channel.open(1, SIM_CONTEXTS);
        expect(sim_port_open(raw, 1, &context, &opened), SIM_ERR_FULL, "a full node");
        expect(sim_port_close(raw, 1, 9), SIM_OK, "closing");
        expect(sim_port_close(raw, 1, 9), SIM_ERR_CALL, "closing twice");
        expect(sim_port_close(raw, 1, SIM_CONTEXTS), SIM_ERR_CALL, "closing no context");
        expect(sim_port_close(raw, 2, 1), SIM_ERR_NODE, "closing at no node");
        context = 9;
        expect(sim_port_open(raw, 1, &context, &opened), SIM_OK, "opening again");
        expect(opened == 2 && context == 9, true, "how often it was opened");

        const uint64_t line[8] = {};
        expect(sim_store(raw, 5, 0, line, 1), SIM_ERR_NODE, "a store to no node");
        expect(sim_store(raw, 1, 0, line, 0), SIM_ERR_CALL, "a store of nothing");
        raw->call.store = {
            .node = 1, .address = 0, .len_words = 9, .period_ps = 0, .arrivals = 0, .line = {}};
        expect(sim_submit(raw, SIM_STORE), SIM_ERR_CALL, "a store of nine words");
        raw->call.store.len_words = UINT64_MAX;
        expect(sim_submit(raw, SIM_STORE), SIM_ERR_CALL, "a store without end");
        expect(sim_submit(raw, static_cast<sim_op>(0)), SIM_ERR_CALL, "no call");
        expect(sim_submit(raw, static_cast<sim_op>(15)), SIM_ERR_CALL, "no such call");
        expect(sim_submit(raw, static_cast<sim_op>(UINT32_MAX)), SIM_ERR_CALL, "the last call");

        uint64_t value = 0;
        expect(sim_register_read(raw, 1, 0x8, &value), SIM_OK, "a register read");
        expect(static_cast<int>(value), 1, "the node's number");
        expect(sim_register_read(raw, 2, 0x8, &value), SIM_ERR_NODE, "no node's register");
        expect(sim_register_write(raw, 2, 0x30, 0), SIM_ERR_NODE, "a write to no node");
        expect(sim_register_write(raw, 0, 0x30, 0x123456789ABCDEF0), SIM_OK, "a write");
        expect(sim_register_read(raw, 0, 0x30, &value), SIM_OK, "a second read");
        expect(value == 0x123456789ABCDEF0, true, "what was written");

        uint64_t at_ps = channel.now_ps() + 12345678;
        expect(sim_sleep(raw, at_ps), SIM_OK, "sleep");
        expect(channel.now_ps() == at_ps, true, "the end of a sleep");
        uint64_t arrivals = 0;
        expect(sim_poll(raw, &arrivals, at_ps + 777, 100), SIM_TIMEOUT, "a deadline");
        expect(channel.now_ps() == at_ps + 777, true, "the time of a deadline");
        expect(sim_look(raw, &arrivals), SIM_AGAIN, "one look");
        expect(channel.now_ps() == at_ps + 777, true, "the time of a look");
        expect(sim_poll(raw, &arrivals, SIM_NEVER, 100), SIM_AGAIN, "nobody can send");
        expect(channel.now_ps() > at_ps + 777, true, "time goes on");
        arrivals = 7;
        expect(sim_poll(raw, &arrivals, SIM_NEVER, 100), SIM_OK, "a wrong count of arrivals");
        expect(static_cast<int>(arrivals), 0, "the right count of arrivals");
    });
}

// A process changes a call while the simulator has it: the answer is the one to the original call.
int meddling()
{
    return in_processes(1, [](unsigned) {
        constexpr uint64_t kLaterPs = 1000000000;
        std::atomic<sim_channel *> victim = nullptr;
        std::thread caller;
        {
            Channel channel(0);
            caller = std::thread([&] {
                Channel other(1);
                uint64_t value = 0;
                other.charge_ps(kLaterPs);
                victim = other.get();
                expect(sim_register_read(other.get(), 1, 0x8, &value), SIM_OK, "a register read");
                expect(static_cast<int>(value), 1, "the node's number");
            });
            uint64_t end_ps = channel.now_ps() + kLaterPs / 2;
            auto is_called = [&] {
                return victim && std::atomic_ref(victim.load()->turn).load() == SIM_TURN_CALL;
            };
            while (!is_called() && channel.now_ps() < end_ps)
                channel.sleep_until(channel.now_ps() + 1000);
            expect(is_called(), true, "the other thread has called");
            channel.sleep_until(channel.now_ps() + 1000); // The simulator has taken that call.
            victim.load()->call.register_read = {.node = 7, .offset = 1, .value = 0};
            victim.load()->call.op = SIM_PORT_CLOSE;
        }
        caller.join();
    });
}

// These threads wake again and again, as threads do that wait for their turn, but more often.
void wake_for_ever(unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        std::thread([] {
            for (;;)
                usleep(20000);
        }).detach();
}

// A thread that waits for another one in real time delays no others, if the run is not repeatable.
int aside(bool repeatable, unsigned restless)
{
    return in_processes(1, [&](unsigned) {
        int ends[2];
        if (pipe(ends) != 0)
            fail("pipe");
        wake_for_ever(restless);
        std::thread waiting([&] {
            Channel channel(1, repeatable);
            uint64_t before_ps = channel.now_ps();
            char byte;
            if (read(ends[0], &byte, 1) != 1)
                fail("read");
            channel.sleep_until(0);
            if (channel.now_ps() < before_ps + 3000000)
                fail("back in the past");
        });
        {
            Channel channel(0, repeatable);
            usleep(20000);
            channel.sleep_until(channel.now_ps() + 3000000);
            if (write(ends[1], "x", 1) != 1)
                fail("write");
        }
        waiting.join();
    });
}

// A thread that has the turn waits for another one in real time, and wakes again and again to see
// whether that has come, at shorter intervals than those of the simulator's looks.
int napping()
{
    return in_processes(1, [](unsigned) {
        constexpr useconds_t kNapUs = 300;
        std::atomic<bool> waits = false, done = false;
        std::thread waiting([&] {
            Channel channel(1, false);
            waits = true;
            while (!done)
                usleep(kNapUs);
            channel.sleep_until(0);
        });
        {
            Channel channel(0, false);
            while (!waits)
                channel.sleep_until(channel.now_ps() + 1000);
            channel.sleep_until(channel.now_ps() + 3000000);
            done = true;
        }
        waiting.join();
    });
}

// Computes without a call, for so much processor time.
int busy(unsigned seconds)
{
    return in_processes(1, [&](unsigned rank) {
        Channel channel(rank);
        timespec ran;
        do
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
        while (ran.tv_sec < static_cast<time_t>(seconds));
        channel.sleep_until(channel.now_ps() + 1);
    });
}

// One of two dies without a word; the other one goes on.
int death()
{
    int worst = in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        unsigned context = begin(channel, rank, 2, rank);
        if (rank == 1)
            raise(SIGKILL);
        channel.send(0, context, 1, 2, 2, 0);
        uint64_t deadline_ps = channel.now_ps() + 5000000;
        uint64_t arrivals = 0;
        if (sim_poll(channel.get(), &arrivals, deadline_ps, 30000) != SIM_TIMEOUT)
            fail("a message of the dead");
        FILE *file = std::fopen(survivor_file.c_str(), "w");
        if (!file || std::fclose(file) != 0)
            fail("no file");
    });
    return worst == 1 && unlink(survivor_file.c_str()) == 0 ? 0 : 1;
}

// Messages of which the second comes to a context that is closed, the third to its next owner.
int dropped()
{
    return in_processes(3, [](unsigned rank) {
        constexpr uint64_t kOnItsWayPs = 10000000;
        Channel channel(rank);
        if (rank < 2)
            channel.open(rank, 1 + rank);
        for (unsigned step = 1; step <= 3; step++) {
            channel.barrier(barrier_file, 3);
            if (rank == 2 && step == 3)
                channel.open(1, 2);
            channel.barrier(barrier_file, 3);
            if (rank == 0) {
                channel.send(0, 1, 1, 2, 2, step);
                channel.sleep_until(channel.now_ps() + kOnItsWayPs);
            }
            if ((rank == 1 && step == 1) || (rank == 2 && step == 3)) {
                if (channel.receive(1, 2) != step)
                    fail("not the message that was expected");
            }
            if (rank == 1 && step == 1)
                channel.close(1, 2);
        }
    });
}

// Two fences with no call between them on one side, a call on the other.
int fences()
{
    return in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        channel.open(rank, 1);
        for (unsigned i = 0; i < 5; i++) {
            channel.barrier(barrier_file, 2);
            if (rank == 0) {
                channel.sleep_until(0);
                channel.charge_ps(1000000);
            }
        }
        channel.sleep_until(0);
        std::printf("rank %u at %" PRIu64 "\n", rank, channel.now_ps());
    });
}

// ----- remote memory

constexpr unsigned kAllRights = 7;
constexpr uint64_t kApartPs = 100000000; // between two operations: all of the first is over

alignas(SIM_PAGE_BYTES) uint64_t page[SIM_PAGE_BYTES / sizeof(uint64_t)];

// An update adds in any case.
uint64_t descriptor(unsigned op, unsigned notify, unsigned node, unsigned context, unsigned len)
{
    return velo_rma_descriptor_word0_pack(
        static_cast<uint8_t>(op), static_cast<uint8_t>(notify), op == VELO_RMA_OP_FETCH_COMPARE_ADD,
        static_cast<uint8_t>(node), static_cast<uint8_t>(context), 0, len);
}

// Each operation on one word, there and here; the second time, when the translations are known.
// Rank 0 asks, rank 1 has the memory. Each prints when it was notified.
int remote()
{
    static const struct {
        const char *name;
        unsigned op, there;
    } all[] = {{"put", VELO_RMA_OP_PUT, VELO_RMA_PLACE_COMPLETER},
               {"put_immediate", VELO_RMA_OP_PUT_IMMEDIATE, VELO_RMA_PLACE_COMPLETER},
               {"get", VELO_RMA_OP_GET, VELO_RMA_PLACE_RESPONDER},
               {"update", VELO_RMA_OP_FETCH_COMPARE_ADD, VELO_RMA_PLACE_RESPONDER},
               {"notify", VELO_RMA_OP_NOTIFY, VELO_RMA_PLACE_COMPLETER}};
    return in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        unsigned context = channel.open(rank, 1 + rank);
        channel.open_queue(rank, context);
        if (channel.enter(rank, context, page, sizeof page, kAllRights) != 0)
            fail("not the first page");
        channel.barrier(barrier_file, 2);
        uint64_t at_ps = kApartPs, expected = 0;
        for (const auto &one : all)
            for (unsigned time = 0; time < 2; time++, at_ps += kApartPs) {
                channel.sleep_until(at_ps);
                uint64_t value = 1000 * one.op + time;
                if (rank == 0) {
                    bool by_value = one.op == VELO_RMA_OP_PUT_IMMEDIATE;
                    page[0] = one.op == VELO_RMA_OP_PUT ? value : 0;
                    unsigned len = one.op == VELO_RMA_OP_NOTIFY ? 0 : 8;
                    channel.post(
                        0, context,
                        descriptor(one.op, VELO_RMA_PLACE_REQUESTER | one.there, 1, 2, len),
                        by_value ? value : 0, 0, 0, 5);
                }
                uint64_t word = channel.notification(rank, context);
                if (velo_rma_notification_error(word) != VELO_ERROR_NONE ||
                    velo_rma_notification_op(word) != one.op)
                    fail("not the notification of " + std::string(one.name));
                if (time == 1)
                    std::printf("%s_%s_ps %" PRIu64 "\n", one.name,
                                rank == 0 ? "requester" : "owner", channel.now_ps() - at_ps);
                if (one.op == VELO_RMA_OP_PUT || one.op == VELO_RMA_OP_PUT_IMMEDIATE)
                    expected = value;
                bool is_read = one.op == VELO_RMA_OP_GET || one.op == VELO_RMA_OP_FETCH_COMPARE_ADD;
                if ((rank == 0 && is_read && page[0] != expected) ||
                    (rank == 1 && !is_read && page[0] != expected))
                    fail("the notification of " + std::string(one.name) + " is before its data");
                if (one.op == VELO_RMA_OP_FETCH_COMPARE_ADD)
                    expected += 5;
            }
        // Find the time at which a put's data are there: look every half cycle of 100 MHz.
        channel.sleep_until(at_ps);
        if (rank == 0) {
            page[0] = 1;
            channel.post(0, context, descriptor(VELO_RMA_OP_PUT, 0, 1, 2, 8), 0, 0);
            channel.sleep_until(at_ps + kApartPs); // The node still reads this process's memory.
        } else {
            while (page[0] != 1 && channel.now_ps() < at_ps + kApartPs)
                channel.sleep_until(channel.now_ps() + 5000);
            std::printf("put_data_ps %" PRIu64 "\n", channel.now_ps() - at_ps);
        }
    });
}

// A rank on the first node, on both sides of the border of eight bits, and on the last node of a
// cluster of more than 256. Each sends to each and puts a word into the memory of each; who gets it
// looks at where it says that it comes from.
int many_nodes(unsigned nodes)
{
    constexpr unsigned kRanks = 4, kContext = 5;
    const unsigned at[kRanks] = {0, 255, 256, nodes - 1};
    return in_processes(kRanks, [&at](unsigned rank) {
        Channel channel(rank);
        auto name_of = [](unsigned node) {
            return node << Channel::area().context_bits | (kContext + node % 3);
        };
        unsigned node = at[rank], name = name_of(node);
        unsigned context = channel.open(node, kContext + node % 3);
        channel.open_queue(node, context);
        expect(static_cast<int>(channel.enter(node, context, page, sizeof page, kAllRights)), 0,
               "the first page");
        channel.barrier(barrier_file, kRanks);
        channel.sleep_until(kApartPs);
        for (unsigned to : at) {
            if (to == node)
                continue;
            unsigned theirs = name_of(to);
            channel.send(node, context, theirs >> 8, theirs & 0xFF, 2, name);
            channel.post(node, context,
                         descriptor(VELO_RMA_OP_PUT_IMMEDIATE, VELO_RMA_PLACE_COMPLETER,
                                    theirs >> 8, theirs & 0xFF, 8),
                         name, uint64_t{8} * rank);
        }
        unsigned messages = 0, puts = 0;
        for (unsigned i = 1; i < kRanks; i++) {
            while (!channel.header(node, context))
                channel.poll();
            unsigned source = velo_header_source(channel.header(node, context));
            if (channel.receive(node, context) != source)
                fail("a message is not from where it says");
            for (unsigned r = 0; r < kRanks; r++)
                if (source == name_of(at[r]))
                    messages |= 1U << r;
            uint64_t word = channel.notification(node, context);
            expect(velo_rma_notification_error(word), VELO_ERROR_NONE, "an error");
            unsigned from =
                unsigned{velo_rma_notification_node(word)} << 8 | velo_rma_notification_ctx(word);
            for (unsigned r = 0; r < kRanks; r++)
                if (from == name_of(at[r]) && page[r] == from)
                    puts |= 1U << r;
        }
        expect(static_cast<int>(messages), 15 & ~(1 << rank), "those who sent");
        expect(static_cast<int>(puts), 15 & ~(1 << rank), "those who put");
        channel.sleep_until(channel.now_ps() + kApartPs);
        leave(channel, node, context);
    });
}

// Puts and gets of several packets, at places that are cut into packets in different ways; two at a
// time, one each way, too. Rank 0 asks, or both do. Each prints when it was notified.
int remote_long()
{
    constexpr unsigned kPages = 12, kWords = SIM_PAGE_BYTES / sizeof(uint64_t);
    alignas(SIM_PAGE_BYTES) static uint64_t there[kPages * kWords], here[kPages * kWords];
    static const struct {
        unsigned bytes, from, to; // the places: bytes of the other side's memory and of one's own
    } all[] = {{448, 0, 0},     {3584, 0, 0},      {4096, 0, 0},       {8192, 0, 0},
               {8192, 24, 720}, {5000, 4000, 136}, {40000, 1000, 2000}};
    return in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        unsigned context = channel.open(rank, 1 + rank);
        channel.open_queue(rank, context);
        channel.enter(rank, context, there, sizeof there, kAllRights);
        channel.enter(rank, context, here, sizeof here, kAllRights);
        channel.barrier(barrier_file, 2);
        uint64_t at_ps = kApartPs;
        for (const auto &one : all)
            for (unsigned op : {VELO_RMA_OP_PUT, VELO_RMA_OP_GET})
                for (bool both : {false, true}) {
                    bool asks = rank == 0 || both;
                    auto *from = reinterpret_cast<uint8_t *>(op == VELO_RMA_OP_PUT ? here : there);
                    auto *to = reinterpret_cast<uint8_t *>(op == VELO_RMA_OP_PUT ? there : here);
                    from += op == VELO_RMA_OP_PUT ? one.to : one.from;
                    to += op == VELO_RMA_OP_PUT ? one.from : one.to;
                    for (unsigned i = 0; i < one.bytes; i++) {
                        from[i] = static_cast<uint8_t>(3 * i + op + rank);
                        to[i] = 0;
                    }
                    channel.sleep_until(at_ps);
                    if (asks)
                        channel.post(
                            rank, context,
                            descriptor(op, VELO_RMA_PLACE_REQUESTER, !rank, 2 - rank, one.bytes),
                            sizeof there + one.to, one.from, 0, 5);
                    if (asks && velo_rma_notification_error(channel.notification(rank, context)) !=
                                    VELO_ERROR_NONE)
                        fail("a long operation failed");
                    if (asks)
                        std::printf("rank %u: %s of %u bytes, from %u to %u, %s: %" PRIu64 " ps\n",
                                    rank, op == VELO_RMA_OP_PUT ? "put" : "get", one.bytes,
                                    one.from, one.to, both ? "both" : "alone",
                                    channel.now_ps() - at_ps);
                    at_ps += kApartPs * 5;
                    channel.sleep_until(at_ps);
                    bool written = both || (op == VELO_RMA_OP_PUT) == (rank == 1);
                    for (unsigned i = 0; written && i < one.bytes; i++)
                        if (to[i] != static_cast<uint8_t>(3 * i + op + !rank))
                            fail("a long operation brought other bytes");
                    channel.sleep_until(at_ps + kApartPs);
                    at_ps += 2 * kApartPs;
                }
    });
}

// Many gets or updates at once, of one rank or of all, so that they wait at both ends; behind them
// a put and a message, which pass those that wait at rank 1. Each prints when it was notified.
int remote_many(unsigned ranks)
{
    static const struct {
        const char *name;
        unsigned op, bytes, count;
        bool of_all; // else of rank 1
    } all[] = {{"get", VELO_RMA_OP_GET, 8, 12, false},
               {"get", VELO_RMA_OP_GET, 448, 12, false},
               {"get", VELO_RMA_OP_GET, 1500, 12, false},
               {"update", VELO_RMA_OP_FETCH_COMPARE_ADD, 8, 12, false},
               {"get", VELO_RMA_OP_GET, 8, 24, true},
               {"get", VELO_RMA_OP_GET, 1500, 24, true}};
    alignas(SIM_PAGE_BYTES) static uint64_t here[SIM_PAGE_BYTES / sizeof(uint64_t)];
    return in_processes(ranks, [ranks](unsigned rank) {
        Channel channel(rank);
        unsigned context = channel.open(rank, 1 + rank);
        channel.open_queue(rank, context);
        channel.enter(rank, context, page, sizeof page, kAllRights);
        channel.enter(rank, context, here, sizeof here, kAllRights);
        channel.barrier(barrier_file, ranks);
        uint64_t at_ps = kApartPs;
        auto print = [&](const std::string &what) {
            std::printf("rank %u: %s: %" PRIu64 " ps\n", rank, what.c_str(),
                        channel.now_ps() - at_ps);
        };
        auto await_notification = [&] {
            if (velo_rma_notification_error(channel.notification(rank, context)) != VELO_ERROR_NONE)
                fail("one of many operations failed");
        };
        for (const auto &one : all) {
            channel.sleep_until(at_ps);
            if (rank == 0) {
                for (unsigned i = 0; i < one.count; i++) {
                    unsigned node = one.of_all ? 1 + i % (ranks - 1) : 1;
                    channel.post(
                        0, context,
                        descriptor(one.op, VELO_RMA_PLACE_REQUESTER, node, node + 1, one.bytes),
                        SIM_PAGE_BYTES, 0, 0, 5);
                }
                channel.post(
                    0, context,
                    descriptor(VELO_RMA_OP_PUT_IMMEDIATE, VELO_RMA_PLACE_COMPLETER, 1, 2, 8), 1,
                    SIM_PAGE_BYTES);
                channel.send(0, context, 1, 2, 2, one.count);
                for (unsigned i = 0; i < one.count; i++) {
                    await_notification();
                    print(std::string(one.name) + " " + std::to_string(i) + " of " +
                          std::to_string(one.bytes) + " bytes" + (one.of_all ? ", of all" : ""));
                }
            } else if (rank == 1) {
                if (channel.receive(1, context) != one.count)
                    fail("not the message that was sent");
                print("message");
                await_notification();
                print("put");
            }
            at_ps += 10 * kApartPs;
        }
        if (rank == 1 && page[0] != 12 * 5)
            fail("an update was lost");
        channel.sleep_until(at_ps);
    });
}

// All wait until something comes, but the put notifies no one: they go on when it can be seen.
int remote_untold()
{
    return in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        unsigned context = channel.open(rank, 1 + rank);
        channel.open_queue(rank, context);
        channel.enter(rank, context, page, sizeof page, kAllRights);
        channel.barrier(barrier_file, 2);
        channel.sleep_until(kApartPs);
        if (rank == 0) {
            page[0] = 1;
            channel.post(0, context, descriptor(VELO_RMA_OP_PUT, 0, 1, 2, 8), 0, 0);
        }
        for (unsigned polls = 0; rank == 1 ? page[0] != 1 : polls < 4; polls++)
            expect(channel.poll(), SIM_AGAIN, "nothing came");
        if (rank == 1 && channel.now_ps() > 2 * kApartPs)
            fail("seen too late");
        channel.sleep_until(3 * kApartPs); // The node still reads this process's memory.
    });
}

// The node refuses operations, and they touch nothing.
int remote_refused()
{
    return in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        unsigned context = channel.open(rank, 1 + rank);
        channel.open_queue(rank, context);
        auto *gone = static_cast<uint64_t *>(mmap(nullptr, SIM_PAGE_BYTES, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        channel.enter(rank, context, page, sizeof page, kAllRights);    // page 0
        channel.enter(rank, context, page, sizeof page, 1);             // page 1: only to be read
        channel.enter(rank, context, gone, SIM_PAGE_BYTES, kAllRights); // page 2
        auto enter = [&](uint64_t node, unsigned owner, uint64_t address, uint64_t bytes) {
            uint64_t first_page = 0;
            return sim_memory_enter(channel.get(), node, owner, address, bytes, 0, &first_page);
        };
        expect(enter(2, context, 0, SIM_PAGE_BYTES), SIM_ERR_CALL, "pages of no node");
        expect(enter(rank, 9, 0, SIM_PAGE_BYTES), SIM_ERR_CALL, "no context");
        expect(enter(rank, SIM_CONTEXTS, 0, SIM_PAGE_BYTES), SIM_ERR_CALL, "no such context");
        expect(enter(rank, context, 1, SIM_PAGE_BYTES), SIM_ERR_CALL, "half a page");
        expect(enter(rank, context, 0, 0), SIM_ERR_CALL, "no memory");
        expect(enter(rank, context, UINT64_MAX - SIM_PAGE_BYTES + 1, 2 * SIM_PAGE_BYTES),
               SIM_ERR_CALL, "beyond all memory");
        expect(enter(rank, context, 0, uint64_t{1} << 40), SIM_ERR_FULL, "more than there is");
        expect(sim_memory_withdraw(channel.get(), rank, 7), SIM_ERR_CALL, "no such pages");
        expect(sim_memory_withdraw(channel.get(), rank, UINT64_MAX), SIM_ERR_CALL, "no such page");
        expect(sim_memory_withdraw(channel.get(), 2, 0), SIM_ERR_NODE, "no node's pages");
        expect(sim_queue_open(channel.get(), rank, 9), SIM_ERR_CALL, "a queue of no context");
        expect(sim_queue_open(channel.get(), 2, context), SIM_ERR_CALL, "a queue of no node");
        munmap(gone, SIM_PAGE_BYTES);
        page[0] = 100 + rank;
        channel.barrier(barrier_file, 2);
        channel.sleep_until(kApartPs);
        if (rank == 0) {
            auto error_of = [&](unsigned op, uint64_t local_page, uint64_t remote_page) {
                channel.post(0, context, descriptor(op, VELO_RMA_PLACE_REQUESTER, 1, 2, 8),
                             local_page * SIM_PAGE_BYTES, remote_page * SIM_PAGE_BYTES);
                return static_cast<int>(
                    velo_rma_notification_error(channel.notification(0, context)));
            };
            expect(error_of(VELO_RMA_OP_PUT, 0, 3), VELO_ERROR_UNREGISTERED, "no page there");
            expect(error_of(VELO_RMA_OP_PUT, 3, 0), VELO_ERROR_UNREGISTERED, "no page here");
            expect(error_of(VELO_RMA_OP_PUT, 0, 1), VELO_ERROR_RIGHT, "no right to write");
            expect(error_of(VELO_RMA_OP_GET, 1, 0), VELO_ERROR_RIGHT, "no right to write here");
            expect(error_of(VELO_RMA_OP_GET, 0, 2), VELO_ERROR_HOST, "no memory there");
            expect(error_of(VELO_RMA_OP_PUT, 2, 0), VELO_ERROR_HOST, "no memory here");
            expect(page[0] == 100, true, "nothing was written here");
            expect(error_of(VELO_RMA_OP_PUT, 0, 2), VELO_ERROR_NONE, "lost, and counted");
            expect(error_of(VELO_RMA_OP_GET, 0, 0), VELO_ERROR_NONE, "a get");
            expect(page[0] == 101, true, "nothing was written there");
            // Once pages are taken back, the node does not use its earlier look-ups any more.
            expect(sim_memory_withdraw(channel.get(), 0, 0), SIM_OK, "taking pages back");
            expect(sim_memory_withdraw(channel.get(), 0, 0), SIM_ERR_CALL,
                   "taking them back twice");
            page[0] = 0;
            expect(error_of(VELO_RMA_OP_GET, 0, 0), VELO_ERROR_UNREGISTERED, "pages taken back");
            expect(page[0] == 0, true, "nothing was written after that");
        } else {
            channel.sleep_until(20 * kApartPs);
        }
    });
}

// The owner dies while its memory is read and written: all operations of the others end.
int remote_death()
{
    constexpr unsigned kOperations = 40;
    int worst = in_processes(2, [](unsigned rank) {
        Channel channel(rank, false);
        unsigned context = channel.open(rank, 1 + rank);
        channel.open_queue(rank, context);
        channel.enter(rank, context, page, sizeof page, kAllRights);
        channel.barrier(barrier_file, 2);
        channel.sleep_until(kApartPs);
        if (rank == 1)
            raise(SIGKILL);
        unsigned refused = 0;
        for (unsigned i = 0; i < kOperations; i++) {
            unsigned op = i % 2 ? VELO_RMA_OP_GET : VELO_RMA_OP_PUT;
            channel.post(0, context, descriptor(op, VELO_RMA_PLACE_REQUESTER, 1, 2, SIM_PAGE_BYTES),
                         0, 0);
            refused += velo_rma_notification_error(channel.notification(0, context)) != 0;
        }
        std::printf("refused %u\n", refused);
        FILE *file = std::fopen(survivor_file.c_str(), "w");
        if (!file || std::fclose(file) != 0)
            fail("no file");
    });
    return worst == 1 && unlink(survivor_file.c_str()) == 0 ? 0 : 1;
}

// Never ends by itself; prints a line when it runs.
int forever()
{
    return in_processes(2, [](unsigned rank) {
        Channel channel(rank);
        begin(channel, rank, 2, rank);
        std::printf("there\n");
        std::fflush(stdout);
        for (;;)
            channel.sleep_until(channel.now_ps() + 1000000);
    });
}

// Waits for a message that nobody sends, so that its time leaps, and then does nothing more. Never
// ends by itself; prints a line after the leap.
int in_vain()
{
    return in_processes(1, [](unsigned rank) {
        constexpr uint64_t kPatiencePs = 1000000000;
        Channel channel(rank, false);
        if (channel.poll(channel.now_ps() + kPatiencePs) != SIM_TIMEOUT)
            fail("an arrival");
        std::printf("there\n");
        std::fflush(stdout);
        for (;;)
            pause();
    });
}

// What the fast model refuses while a program runs; the RTL has it.
int lacking(const std::string &part)
{
    return in_processes(1, [&part](unsigned) {
        Channel channel(0);
        sim_channel *raw = channel.get();
        channel.open(0, 1);
        const uint64_t line[8] = {velo_header_pack(0, 0, 8, 0, 0)};
        auto store = [&](uint64_t address, unsigned unit) {
            return sim_store(
                raw, 0,
                velo_window_pack(static_cast<uint32_t>(address), 1, static_cast<uint8_t>(unit)),
                line, 1);
        };
        if (part == "congestion")
            sim_register_write(raw, 0, 0x1B8, 0);
        else if (part == "barrier")
            sim_register_write(raw, 0, 0x8600000, 0);
        else if (part == "multicast")
            channel.send(0, 1, VELO_GROUP_NODE_MIN, 1, 2, 0);
        else if (part == "custom")
            store(0, VELO_UNIT_CUSTOM);
        else if (part == "split")
            store(velo_address_pack(0, 1, 1, 1), VELO_UNIT_VELO);
        else
            fail("no part " + part);
        channel.sleep_until(channel.now_ps() + 1000000);
    });
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("clients CASE ...");
    (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // No line of one rank within another's.
    std::string which = argv[1];
    auto number = [&](int index, unsigned otherwise) {
        return argc > index ? static_cast<unsigned>(std::strtoul(argv[index], nullptr, 10))
                            : otherwise;
    };
    std::string own = "/tmp/velo-sim-test." + std::to_string(getpid());
    barrier_file = own + ".barrier";
    survivor_file = own + ".survivor";
    int result = 2;
    if (which == "ping_pong")
        result = ping_pong(number(2, 100), number(3, 2));
    else if (which == "latency")
        result = latency();
    else if (which == "all_to_all")
        result = all_to_all(number(2, 4), number(3, 100), number(4, 0));
    else if (which == "overfull")
        result = overfull();
    else if (which == "calls")
        result = calls();
    else if (which == "meddling")
        result = meddling();
    else if (which == "aside")
        result = aside(number(2, 0) != 0, number(3, 0));
    else if (which == "napping")
        result = napping();
    else if (which == "busy")
        result = busy(number(2, 1));
    else if (which == "death")
        result = death();
    else if (which == "dropped")
        result = dropped();
    else if (which == "fences")
        result = fences();
    else if (which == "remote")
        result = remote();
    else if (which == "many_nodes")
        result = many_nodes(number(2, 300));
    else if (which == "remote_long")
        result = remote_long();
    else if (which == "remote_many")
        result = remote_many(number(2, 2));
    else if (which == "remote_untold")
        result = remote_untold();
    else if (which == "remote_refused")
        result = remote_refused();
    else if (which == "remote_death")
        result = remote_death();
    else if (which == "forever")
        result = forever();
    else if (which == "lacking" && argc > 2)
        result = lacking(argv[2]);
    else if (which == "in_vain")
        result = in_vain();
    else
        fail("no case " + which);
    unlink(barrier_file.c_str());
    return result;
}
