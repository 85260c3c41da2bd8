// SPDX-License-Identifier: Apache-2.0
//
// The RMA unit of a node, rtl/rma: descriptors become packets, packets are written to memory and
// answered. Its parts are those of the RTL; rma_cycles.h has their cycles. Between them nothing is
// evaluated.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "../names.h"
#include "dma.h"
#include "pending_asks.h"
#include "rings.h"
#include "timer.h"
#include "translation.h"

namespace sim
{

// Traffic classes, spec/velo.toml.
enum RmaClass : unsigned { kRequests, kResponses, kCompletions, kClasses };

// Of a packet, beside its data: header and command.
struct RmaPacket {
    uint8_t kind = 0, op = 0, notify = 0, error = 0, cookie = 0;
    uint8_t number = 0; // of a get or an update: its entry of PendingAsks
    bool add_always = false;
    uint16_t from = 0, to = 0; // node and context
    uint32_t len = 0, offset = 0;
    uint64_t remote = 0, local = 0;
    Dma::Bytes data;

    unsigned words() const;
};

// What the unit has of its node.
class RmaNode : public Timer
{
  public:
    // A packet of which the first word is there in this cycle. `begun` hears, when the network port
    // has room for it, in which cycle that word goes; the others follow it.
    using Begun = std::function<void(uint64_t first)>;
    virtual void send(RmaClass which, uint64_t cycle, std::unique_ptr<RmaPacket> packet,
                      Begun begun) = 0;
    // The unit reads words of the packet that came, one a cycle; they may be its last ones.
    virtual void read(RmaClass which, uint64_t first, unsigned words, bool ends) = 0;
    // It is done with that packet, and reads the next one from this cycle on.
    virtual void took(RmaClass which, uint64_t free) = 0;

    // The unit may take another descriptor.
    virtual void room_for_descriptors(uint64_t cycle) = 0;

  protected:
    ~RmaNode() = default;
};

class FastRma
{
  public:
    FastRma(unsigned node, const Names &names, HostSide &host, uint64_t dma_cycles,
            RmaNode &hardware);

    // The host stores a descriptor, its first beat in this cycle. There was room.
    void post(uint64_t cycle, uint8_t context, const uint64_t *words, unsigned count);
    bool has_room() const;
    // A packet may be read from `first` on.
    void came(RmaClass which, std::unique_ptr<RmaPacket> packet, uint64_t first);

    Translation &translation() { return translation_; }
    // Notification queues.
    FastRings &queues() { return queues_; }
    // A queue may have room, or is another.
    void queue_changed(uint64_t cycle);
    // A message takes the host port; see Dma.
    uint64_t pass_message(uint64_t first, unsigned beats)
    {
        return dma_.pass_message(first, beats);
    }

  private:
    using Packet = std::unique_ptr<RmaPacket>;

    // --- one packet after the other, velo_rma_emit ---
    struct Emitter {
        bool busy = false;
        std::function<void(uint64_t)> next; // waits for its turn: is told the cycle
    };
    // In this cycle or later; `taken` hears in which one the packet is taken.
    void emit(RmaClass which, uint64_t cycle, Packet packet, std::function<void(uint64_t)> taken);

    // --- descriptors, velo_rma_requester ---
    struct Descriptor {
        uint8_t context, op, notify, cookie;
        bool add_always;
        uint16_t to;
        uint32_t len;
        uint64_t local, remote;
        std::array<uint64_t, 2> operands;
        unsigned beats;
        uint64_t judge_cycle; // at the earliest
    };
    void next_descriptor(uint64_t cycle);
    void judge(uint64_t cycle);
    void cut_request(uint64_t cycle);
    void send_request(uint64_t cycle, Dma::Bytes data, unsigned count);
    void request_taken(uint64_t cycle);
    void refuse(uint64_t cycle, uint8_t error);

    // --- gets and updates that wait for a place, velo_rma_pending ---
    struct Waiting {
        Packet packet;
        uint64_t cycle; // since when
    };
    void try_to_ask(uint64_t cycle);
    void answered(uint64_t cycle, uint8_t number, bool ends);

    // --- reads of registered memory, velo_rma_reader. `keep`: the access is given back later ---
    struct Got {
        uint8_t error;
        uint64_t addr;
        Dma::Bytes bytes;
    };
    void read(Translation::Client client, uint64_t cycle, const Translation::Request &request,
              bool keep, const std::function<void(uint64_t cycle, Got got)> &done);

    // --- packets that carry data or ask for a notification, velo_rma_completer ---
    struct Job {
        Packet packet;
        unsigned words_left = 0; // in the network port
        uint8_t error = 0;
        bool is_last = false;
    };
    struct Completer {
        RmaClass which;
        Translation::Client client;
        Dma::Writer writer;
        unsigned source; // of notifications
        Job job;
        std::vector<uint8_t> failures; // of the last operation of each node
    };
    void begin_job(RmaClass which, uint64_t cycle);
    void complete(Completer &completer, uint64_t cycle);
    void write_data(Completer &completer, uint64_t cycle, uint64_t addr);
    void outcome(Completer &completer, uint64_t cycle);
    void tell_here(Completer &completer, uint64_t cycle);
    void tell_requester(Completer &completer, uint64_t cycle);
    void end_job(Completer &completer, uint64_t cycle);

    // --- gets and updates, velo_rma_asks and velo_rma_responder ---
    void keep(uint64_t cycle);
    void next_ask(uint64_t done);
    void serve(uint64_t cycle);
    void read_old(uint64_t cycle);
    void update(uint64_t cycle, const Got &old);
    void cut_answer(uint64_t cycle);
    void send_answer(uint64_t cycle, Got got, unsigned count);
    void end_answer(uint64_t cycle);

    // --- notifications, velo_rma_notifier ---
    enum Source : unsigned { kSource, kServe, kAccept, kFinish, kCompletion, kSources };
    using Told = std::function<void(uint64_t cycle, uint8_t error)>;
    struct Notification {
        uint8_t context;
        std::array<uint64_t, 2> entry;
        Told told; // the cycle in which the notifier takes it back
    };
    void notify(unsigned source, uint64_t cycle, uint8_t context, const RmaPacket &about,
                uint16_t them, uint8_t place, uint64_t address, Told told);
    void next_notification(uint64_t cycle);
    void look_for_room(uint64_t cycle);
    void write_entry(uint64_t cycle);
    void end_notification(uint64_t cycle, uint8_t error);

    unsigned node_;
    const Names &names_;
    RmaNode &hardware_;
    Dma dma_;
    Translation translation_;
    FastRings queues_;
    std::array<Emitter, kClasses> emitters_;

    std::deque<Descriptor> descriptors_; // the first is at work, if requesting_
    bool requesting_ = false;
    uint32_t request_offset_ = 0;
    unsigned queued_beats_ = 0;
    PendingAsks pending_;
    Waiting ask_ = {}; // if it waits

    std::array<Packet, kClasses> came_; // whose head is read
    Completer accept_, finish_;
    std::deque<Waiting> asks_; // of others
    Packet asked_;             // that is served
    uint32_t answer_offset_ = 0;

    std::array<std::optional<Notification>, kSources> notifications_; // that wait for their turn
    unsigned notify_turn_ = 0;
    bool notifying_ = false;
    Notification notification_ = {}; // at work
    bool waits_for_room_ = false;
};

} // namespace sim
