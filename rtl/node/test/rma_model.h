// SPDX-License-Identifier: Apache-2.0
//
// The operations of a network's hosts on remote memory, and their right results.
//
// Each host has lanes with one operation at a time each. A lane has two pages of its own in its
// node and two in every other, so what must be in all of them is known whenever a notification says
// that an operation is done; that is compared in the very cycle in which the notification is in
// memory. Besides, all hosts add to one word of each node, whose old values must form one chain.
// Some operations have to be refused, once here, once there. Pages are moved to other frames while
// the network is busy, which is a deregistration; what comes late to the old frame is missing in
// the new one.

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness.h"
#include "memory.h"
#include "velo/spec.h"

namespace bench
{

class RmaModel
{
  public:
    static constexpr unsigned kLanes = 8, kContexts = 2, kQueueLog2 = 2, kTableLog2 = 8;
    static constexpr uint64_t kTable = 0x8000000, kQueues = 0x9000000, kFrames = 0x10000;
    // Registers, spec/velo_regs.rdl.
    static constexpr uint64_t kRegPages = 0x88, kRegInvalidate = 0x90, kRegStall = 0x98,
                              kRegPosted = 0xa8, kRegCompleted = 0xb0, kRegServed = 0xb8,
                              kRegRefused = 0xc0, kRegErrors = 0xc8, kRegAtuHits = 0xd0,
                              kRegAtuMisses = 0xd8, kRegAtuRefused = 0xe0, kRegQueues = 0x8300000,
                              kRegQueueReadPointers = 0x8400000;

    // The operations that a host can post; from `kUnknown` on they are refused.
    enum Kind {
        kPut,
        kGet,
        kImmediate,
        kUpdate,
        kNotify,
        kAdd, // to the shared word
        kUnknown,
        kTooLong,
        kNotOurs,
        kReadOnly,
        kUnregistered,
        kOthersPage,
        kNoQueue,
        kKinds
    };

    using Write = std::function<void(unsigned node, uint64_t place, uint64_t value)>;
    using Read = std::function<uint64_t(unsigned node, uint64_t place)>;
    using Post = std::function<void(unsigned node, uint64_t addr, std::vector<uint64_t> words)>;

    // Registers are written and read, descriptors posted, by the given functions.
    RmaModel(Random &random, unsigned max_bytes, Write write, Read read, Post post)
        : random_(random), max_bytes_(max_bytes), write_(std::move(write)), read_(std::move(read)),
          post_(std::move(post))
    {
    }

    void start(std::vector<Memory *> memories)
    {
        hosts_.resize(memories.size());
        for (unsigned n = 0; n < hosts_.size(); n++) {
            Host &host = hosts_[n];
            host.memory = memories[n];
            host.frames.resize(1U << kTableLog2);
            host.adds.clear();
            for (unsigned lane = 0; lane < kLanes; lane++)
                for (unsigned half = 0; half < 2; half++) {
                    enter(n, local_page(lane) + half, context_of(lane), 7);
                    for (unsigned from = 0; from < hosts_.size(); from++)
                        enter(n, remote_page(from, lane) + half, target_context(lane), 7);
                }
            enter(n, kSharedPage, kSharedContext, 7);
            enter(n, kReadOnlyPage, 1, 1);
            enter(n, kOthersOwnPage, kSharedContext, 7);
            host.memory->set_word(at(n, kSharedPage * kPage), 0);
            write_(n, kRegPages, kTable | 1 << 8 | kTableLog2);
            for (unsigned c = 0; c < kContexts; c++)
                write_(n, kRegQueues + ((c + 1) << 12), queue(c) | uint64_t{kQueueLog2} << 48 | 1);
        }
        for (unsigned n = 0; n < hosts_.size(); n++)
            for (unsigned lane = 0; lane < kLanes; lane++)
                host_lane(n, lane).cookie = static_cast<uint8_t>(lane);
    }

    bool busy() const
    {
        for (const Host &host : hosts_)
            for (const Lane &lane : host.lanes)
                if (lane.want)
                    return true;
        return false;
    }

    uint64_t done() const { return done_; }
    uint64_t refused() const { return refused_; }
    uint64_t full_queues() const { return full_queues_; }
    uint64_t moves() const { return moves_; }

    // Post one operation, if a lane is free.
    void act(unsigned n)
    {
        unsigned lane = random_.below(kLanes);
        unsigned kind = random_.below(12) ? random_.below(kUnknown)
                                          : kUnknown + random_.below(kKinds - kUnknown);
        if (!host_lane(n, lane).want)
            post(n, lane, static_cast<Kind>(kind), random_.below(hosts_.size()));
    }

    void post(unsigned n, unsigned lane_index, Kind kind, unsigned to)
    {
        Lane &lane = host_lane(n, lane_index);
        lane.used = true;
        lane.kind = kind;
        lane.to = to;
        lane.cookie = static_cast<uint8_t>(lane.cookie + kLanes);
        lane.context = static_cast<uint8_t>(context_of(lane_index));
        lane.target = static_cast<uint8_t>(target_context(lane_index));
        lane.error = VELO_ERROR_NONE;
        lane.len = kind == kPut || kind == kGet ? some_length() : 8;
        if (kind == kImmediate)
            lane.len = 1 + random_.below(8);
        unsigned grid = kind == kUpdate || kind == kAdd ? 8 : 1;
        lane.local =
            local_page(lane_index) * kPage + random_.below((2 * kPage - lane.len) / grid) * grid;
        lane.remote = remote_page(n, lane_index) * kPage +
                      random_.below((2 * kPage - lane.len) / grid) * grid;
        if (kind >= kUnknown)
            spoil(n, lane);
        else
            foresee(n, lane);
        std::vector<uint64_t> words{
            velo_rma_descriptor_word0_pack(lane.op, lane.want & 7, lane.always,
                                           static_cast<uint8_t>(to), lane.target, lane.cookie,
                                           static_cast<uint32_t>(lane.len)),
            kind == kImmediate ? lane.value : lane.local, lane.remote};
        if (lane.op == VELO_RMA_OP_FETCH_COMPARE_ADD)
            words.insert(words.end(), {lane.compare, lane.value});
        post_(n, velo_window_pack(0, lane.context, VELO_UNIT_RMA), words);
        if (kind >= kUnknown)
            lane.want = VELO_RMA_PLACE_ERROR;
    }

    // A DMA write to `addr` is in memory.
    void wrote(unsigned n, uint64_t addr)
    {
        for (unsigned c = 0; c < kContexts; c++)
            if (addr >= queue(c) && addr < queue(c) + (16U << kQueueLog2) && addr % 16 == 0)
                announced(n, c, addr);
    }

    // The host takes an entry out of a queue.
    void poll(unsigned n, unsigned c)
    {
        Host &host = hosts_[n];
        if (host.head[c] == host.tail[c])
            return;
        uint64_t entry = queue(c) + 16 * (host.head[c] % (1U << kQueueLog2));
        host.memory->set_word(entry, 0);
        host.memory->set_word(entry + 8, 0);
        host.head[c]++;
        write_(n, kRegQueueReadPointers + ((c + 1) << 12), host.head[c] & 0xFFFF);
    }

    // Another frame for a page that nobody uses now, but a short time ago.
    void move(unsigned n)
    {
        unsigned from = random_.below(hosts_.size()), index = random_.below(kLanes);
        bool ours = random_.below(2);
        const Lane &lane = host_lane(ours ? n : from, index);
        if (!lane.used || lane.want || lane.kind >= kAdd || (!ours && lane.to != n))
            return;
        // The page of its last operation, so that the translation is still known.
        unsigned page = (ours ? lane.local : lane.remote) / kPage;
        Host &host = hosts_[n];
        uint64_t entry = host.memory->word(kTable + 8 * page), old = host.frames[page];
        host.memory->set_word(kTable + 8 * page, 0);
        write_(n, kRegInvalidate, page);
        for (unsigned tries = 0; read_(n, kRegInvalidate) >> 63; tries++)
            if (tries == 1000)
                fail("a deregistration does not end at node " + std::to_string(n));
        host.frames[page] = next_frame_++;
        std::memcpy(host.memory->page(host.frames[page]), host.memory->page(old), kPage);
        for (unsigned i = 0; i < kPage; i++)
            host.memory->set_byte(old * kPage + i, static_cast<uint8_t>(random_.next()));
        host.memory->set_word(kTable + 8 * page, (entry & ~VELO_REGISTERED_PAGE_FRAME_MASK) |
                                                     host.frames[page] * kPage);
        moves_++;
    }

    // Nothing is under way: what the registers say.
    void check_counters()
    {
        uint64_t completed = 0, served = 0;
        for (unsigned n = 0; n < hosts_.size(); n++) {
            Host &host = hosts_[n];
            check(n, "rma_posted", read_(n, kRegPosted), host.posted);
            check(n, "rma_refused", read_(n, kRegRefused), host.refused);
            check(n, "rma_errors", read_(n, kRegErrors), host.errors);
            check(n, "atu_refused", read_(n, kRegAtuRefused), host.atu_refused);
            check(n, "rma_stall", read_(n, kRegStall) & 3, 0);
            completed += read_(n, kRegCompleted);
            served += read_(n, kRegServed);
        }
        check(0, "sum of rma_completed", completed, done_ - refused_);
        check(0, "sum of rma_served", served, asked_);
    }

    // The same, and every byte of every lane.
    void check_end()
    {
        uint64_t hits = 0, misses = 0;
        check_counters();
        for (unsigned n = 0; n < hosts_.size(); n++) {
            hits += read_(n, kRegAtuHits);
            misses += read_(n, kRegAtuMisses);
            for (unsigned lane = 0; lane < kLanes; lane++) {
                compare(n, local_page(lane), "at the end");
                for (unsigned to = 0; to < hosts_.size(); to++)
                    compare(to, remote_page(n, lane), "at the end");
            }
            compare(n, kSharedPage, "at the end"); // and the pages after it
            uint64_t sum = 0;
            for (size_t i = 0; i < hosts_[n].adds.size(); i++) {
                auto next = hosts_[n].adds.find(sum);
                if (next == hosts_[n].adds.end())
                    fail("additions to a word of node " + std::to_string(n) + " are no chain");
                sum = next->second;
            }
            check(n, "the sum", hosts_[n].memory->word(at(n, kSharedPage * kPage)), sum);
        }
        check(0, "use of the translation cache", hits != 0 && misses != 0, done_ != 0);
    }

  private:
    static constexpr uint64_t kPage = Memory::kPageBytes;
    static constexpr unsigned kLocalPages = 0, kRemotePages = 2 * kLanes, kReadOnlyPage = 201,
                              kSharedPage = 200, kOthersOwnPage = 202, kUnregisteredPage = 240,
                              kSharedContext = 3, kNoContext = 5;

    struct Lane {
        Kind kind = kPut;
        bool used = false;
        unsigned want = 0; // notifications that have not come, enum rma_place
        unsigned to = 0;
        uint8_t op = 0, cookie = 0, context = 0, target = 0, error = 0, always = 0;
        uint64_t len = 0, local = 0, remote = 0, value = 0, compare = 0;
    };

    struct Host {
        Memory *memory = nullptr;
        std::vector<uint64_t> frames;                    // by page of the table
        std::map<unsigned, std::vector<uint8_t>> images; // what must be in a page
        std::array<Lane, kLanes> lanes;
        std::array<uint64_t, kContexts> head{}, tail{}; // of its queues
        std::map<uint64_t, uint64_t> adds;              // to the shared word: from, to
        uint64_t posted = 0, refused = 0, errors = 0, atu_refused = 0;
    };

    Random &random_;
    unsigned max_bytes_;
    Write write_;
    Read read_;
    Post post_;
    std::vector<Host> hosts_;
    uint64_t next_frame_ = kFrames;
    uint64_t done_ = 0, refused_ = 0, asked_ = 0, full_queues_ = 0, moves_ = 0;

    static uint64_t queue(unsigned context) { return kQueues + context * 0x1000; }
    static unsigned context_of(unsigned lane) { return 1 + lane % kContexts; }
    static unsigned target_context(unsigned lane) { return 1 + lane / 2 % kContexts; }
    static unsigned local_page(unsigned lane) { return kLocalPages + 2 * lane; }
    static unsigned remote_page(unsigned from, unsigned lane)
    {
        return kRemotePages + 2 * (from * kLanes + lane);
    }

    Lane &host_lane(unsigned n, unsigned lane) { return hosts_[n].lanes[lane]; }

    // A page's frames do not follow each other, so an access that runs over a page's end shows.
    void enter(unsigned n, unsigned page, unsigned context, unsigned rights)
    {
        Host &host = hosts_[n];
        host.frames[page] = next_frame_;
        next_frame_ += 2;
        auto &image = host.images[page];
        for (unsigned i = 0; i < kPage; i++)
            image.push_back(static_cast<uint8_t>(random_.next()));
        std::memcpy(host.memory->page(host.frames[page]), image.data(), kPage);
        host.memory->set_word(kTable + 8 * page,
                              velo_registered_page_pack(0, static_cast<uint8_t>(rights),
                                                        static_cast<uint8_t>(context),
                                                        host.frames[page], 0));
    }

    // Where a registered address is in a host's memory.
    uint64_t at(unsigned n, uint64_t address) const
    {
        return hosts_[n].frames[address / kPage] * kPage + address % kPage;
    }

    uint64_t some_length()
    {
        unsigned few = random_.below(10);
        return random_.below(std::min(few < 4 ? 64U : few < 8 ? 448U : 1600U, max_bytes_) + 1);
    }

    uint8_t image(unsigned n, uint64_t address)
    {
        return hosts_[n].images[address / kPage][address % kPage];
    }
    void set_image(unsigned n, uint64_t address, uint8_t value)
    {
        hosts_[n].images[address / kPage][address % kPage] = value;
    }
    uint64_t image_word(unsigned n, uint64_t address)
    {
        uint64_t word = 0;
        for (unsigned i = 0; i < 8; i++)
            word |= static_cast<uint64_t>(image(n, address + i)) << (8 * i);
        return word;
    }
    void set_image_bytes(unsigned n, uint64_t address, uint64_t value, uint64_t len)
    {
        for (unsigned i = 0; i < len; i++)
            set_image(n, address + i, static_cast<uint8_t>(value >> (8 * i)));
    }

    // An operation that will be done: what it will have changed, and who is to be told.
    void foresee(unsigned n, Lane &lane)
    {
        unsigned other = VELO_RMA_PLACE_COMPLETER;
        lane.want = 1 + random_.below(3); // the requester, the other, both
        lane.value = random_.next();
        lane.always = 0;
        hosts_[n].posted++;
        switch (lane.kind) {
        case kPut:
            lane.op = VELO_RMA_OP_PUT;
            for (unsigned i = 0; i < lane.len; i++)
                set_image(lane.to, lane.remote + i, image(n, lane.local + i));
            break;
        case kGet:
            lane.op = VELO_RMA_OP_GET;
            other = VELO_RMA_PLACE_RESPONDER;
            lane.want |= 1;
            for (unsigned i = 0; i < lane.len; i++)
                set_image(n, lane.local + i, image(lane.to, lane.remote + i));
            asked_++;
            break;
        case kImmediate:
            lane.op = VELO_RMA_OP_PUT_IMMEDIATE;
            set_image_bytes(lane.to, lane.remote, lane.value, lane.len);
            break;
        case kUpdate: {
            lane.op = VELO_RMA_OP_FETCH_COMPARE_ADD;
            other = VELO_RMA_PLACE_RESPONDER;
            lane.want |= 1;
            uint64_t old = image_word(lane.to, lane.remote);
            lane.compare = old ^ random_.below(2);
            set_image_bytes(n, lane.local, old, 8);
            if (lane.compare == old)
                set_image_bytes(lane.to, lane.remote, old + lane.value, 8);
            asked_++;
            break;
        }
        case kAdd:
            lane.op = VELO_RMA_OP_FETCH_COMPARE_ADD;
            lane.want = 1;
            lane.always = 1;
            lane.target = kSharedContext;
            lane.remote = kSharedPage * kPage;
            asked_++;
            break;
        default:
            lane.op = VELO_RMA_OP_NOTIFY;
            lane.want |= 2;
            lane.len = 0;
        }
        lane.want =
            (lane.want & 1 ? unsigned{VELO_RMA_PLACE_REQUESTER} : 0) | (lane.want & 2 ? other : 0);
    }

    // One that has to be refused, by whom and why.
    void spoil(unsigned n, Lane &lane)
    {
        Host &here = hosts_[n], &there = hosts_[lane.to];
        lane.op = VELO_RMA_OP_PUT;
        lane.want = lane.always = 0;
        lane.len = 8;
        refused_++;
        switch (lane.kind) {
        case kUnknown:
            lane.op = 6;
            lane.error = VELO_ERROR_MALFORMED;
            here.refused++;
            return;
        case kTooLong:
            lane.op = VELO_RMA_OP_PUT_IMMEDIATE;
            lane.len = 9;
            lane.error = VELO_ERROR_OVERSIZE;
            here.refused++;
            return;
        case kNotOurs:
            lane.local = kOthersOwnPage * kPage;
            lane.error = VELO_ERROR_RIGHT;
            here.refused++;
            here.atu_refused++;
            return;
        case kReadOnly:
            lane.op = VELO_RMA_OP_PUT_IMMEDIATE;
            lane.target = 1;
            lane.remote = kReadOnlyPage * kPage;
            lane.error = VELO_ERROR_RIGHT;
            there.atu_refused++;
            break;
        case kUnregistered:
            lane.op = VELO_RMA_OP_GET;
            lane.remote = kUnregisteredPage * kPage;
            lane.error = VELO_ERROR_UNREGISTERED;
            there.atu_refused++;
            break;
        case kOthersPage:
            lane.op = VELO_RMA_OP_PUT_IMMEDIATE;
            lane.remote = kOthersOwnPage * kPage;
            lane.error = VELO_ERROR_RIGHT;
            there.atu_refused++;
            break;
        default:
            lane.op = VELO_RMA_OP_NOTIFY;
            lane.want = VELO_RMA_PLACE_COMPLETER;
            lane.len = 0;
            lane.target = kNoContext;
            lane.error = VELO_ERROR_CONTEXT;
        }
        there.errors++;
        here.posted++;
    }

    void announced(unsigned n, unsigned c, uint64_t addr)
    {
        Host &host = hosts_[n];
        uint64_t word = host.memory->word(addr), address = host.memory->word(addr + 8);
        if (host.tail[c] - host.head[c] == 1U << kQueueLog2)
            fail("a notification was written to a full queue of node " + std::to_string(n));
        check(n, "place of a notification", addr,
              queue(c) + 16 * (host.tail[c] % (1U << kQueueLog2)));
        host.tail[c]++;
        full_queues_ += host.tail[c] - host.head[c] == 1U << kQueueLog2;

        unsigned place = velo_rma_notification_place(word);
        bool here = place == VELO_RMA_PLACE_REQUESTER || place == VELO_RMA_PLACE_ERROR;
        unsigned node = velo_rma_notification_node(word), from = here ? n : node;
        unsigned cookie = velo_rma_notification_cookie(word);
        if (!velo_rma_notification_valid(word) || from >= hosts_.size())
            fail("a notification of nothing at node " + std::to_string(n));
        Lane &lane = host_lane(from, cookie % kLanes);
        if (!(lane.want & place) || lane.cookie != cookie)
            fail("a notification that nobody waits for at node " + std::to_string(n));
        check(n, "other node", node, here ? lane.to : from);
        check(n, "other context", velo_rma_notification_ctx(word),
              here ? lane.target : lane.context);
        check(n, "own context", c + 1, here ? lane.context : lane.target);
        check(n, "operation", velo_rma_notification_op(word), lane.op);
        check(n, "error", velo_rma_notification_error(word), lane.error);
        check(n, "length", velo_rma_notification_len(word), lane.error ? 0 : lane.len);
        check(n, "address", address,
              !here                     ? lane.remote
              : lane.kind == kImmediate ? lane.value
                                        : lane.local);
        lane.want &= ~place;
        if (lane.kind == kAdd) {
            uint64_t old = host.memory->word(at(n, lane.local));
            set_image_bytes(n, lane.local, old, 8);
            if (!hosts_[lane.to].adds.emplace(old, old + lane.value).second)
                fail("two additions to node " + std::to_string(lane.to) + " saw the same word");
            if (hosts_[lane.to].memory->word(at(lane.to, lane.remote)) == old)
                fail("an addition to node " + std::to_string(lane.to) + " was told of too early");
        }
        // Data come before whoever is told of them. Of a get the responder is told before they
        // move.
        if (place != VELO_RMA_PLACE_RESPONDER) {
            if (lane.op != VELO_RMA_OP_FETCH_COMPARE_ADD)
                compare(lane.to, remote_page(from, cookie % kLanes), "as notified");
            if (here)
                compare(n, local_page(cookie % kLanes), "as notified");
        }
        done_ += lane.want == 0;
    }

    void compare(unsigned n, unsigned page, const char *when)
    {
        Host &host = hosts_[n];
        for (unsigned half = 0; half < 2; half++)
            if (page + half != kSharedPage &&
                std::memcmp(host.memory->page(host.frames[page + half]),
                            host.images[page + half].data(), kPage) != 0)
                fail("page " + std::to_string(page + half) + " of node " + std::to_string(n) +
                     " is not what it should be " + when);
    }

    static void check(unsigned n, const char *what, uint64_t is, uint64_t should)
    {
        if (is != should)
            fail("node " + std::to_string(n) + ", remote memory: " + what + " is " +
                 std::to_string(is) + ", not " + std::to_string(should));
    }
};

} // namespace bench
