// SPDX-License-Identifier: Apache-2.0
//
// What two boards do with commands, packet by packet, from spec/dimmnet.toml and its rules:
// memories, statuses, counters; no cycles. A command is carried out whole, with all that follows
// from it at both boards, before the next one.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "harness.h"
#include "velo/dimmnet_spec.h"

namespace bench
{

using Data = std::vector<uint64_t>;

constexpr unsigned kProcesses = VELO_DIMMNET_PROCESSES;
constexpr unsigned kPayload = VELO_DIMMNET_PAYLOAD_WORDS_MAX;
constexpr unsigned kWindows = VELO_DIMMNET_WRITE_WINDOWS * VELO_DIMMNET_WINDOW_WORDS;
constexpr unsigned kPrefetch = VELO_DIMMNET_PREFETCH_WINDOWS * VELO_DIMMNET_WINDOW_WORDS;
constexpr unsigned kRing = VELO_DIMMNET_STATUS_LLCM_WORD;
constexpr unsigned kElement = VELO_DIMMNET_ELEMENT_WORDS_MAX;
constexpr unsigned kReadElements = 64; // most of a list that a read asks for

// As in the spec; the bench makes wrong ones, too, so they are numbers.
constexpr unsigned kSodimm = 0, kPrefetchMemory = 1, kLlcm = 2;
constexpr unsigned kPlain = 0, kStrided = 1, kList = 2;
constexpr unsigned kPut = 2, kGet = 3, kLoad = 4, kStore = 5;
constexpr unsigned kWriteKind = 1, kReadKind = 2, kAnswerKind = 3;
enum class Error : unsigned { None = 0, Op = 1, Size = 2, Bounds = 3, Pgid = 5, Malformed = 6 };

struct Shape {
    unsigned element = 0;
    uint32_t step = 0;
    uint64_t word(unsigned count = 0) const
    {
        return element | uint64_t{count} << VELO_DIMMNET_PATTERN_COUNT_LSB |
               uint64_t{step} << VELO_DIMMNET_PATTERN_STEP_LSB;
    }
};

struct Header {
    unsigned kind = kWriteKind, memory = 0, access = 0, status = 0, words = 0;
    unsigned dst_wid = 0, src_wid = 0, dst_lid = 0, src_lid = 0, pgid = 0, tag = 0;
    uint32_t address = 0;

    uint64_t low() const
    {
        return uint64_t{kind} << VELO_DIMMNET_PACKET_KIND_LSB |
               uint64_t{memory} << VELO_DIMMNET_PACKET_MEMORY_LSB |
               uint64_t{access} << VELO_DIMMNET_PACKET_ACCESS_LSB |
               uint64_t{status} << VELO_DIMMNET_PACKET_STATUS_LSB |
               uint64_t{words} << VELO_DIMMNET_PACKET_WORDS_LSB |
               uint64_t{dst_wid} << VELO_DIMMNET_PACKET_DST_WID_LSB |
               uint64_t{src_wid} << VELO_DIMMNET_PACKET_SRC_WID_LSB |
               uint64_t{dst_lid} << VELO_DIMMNET_PACKET_DST_LID_LSB |
               uint64_t{src_lid} << VELO_DIMMNET_PACKET_SRC_LID_LSB;
    }
    uint64_t high() const
    {
        return pgid | uint64_t{tag} << VELO_DIMMNET_PACKET_TAG_LSB |
               uint64_t{address} << VELO_DIMMNET_PACKET_ADDRESS_LSB;
    }
};

// A command, or what answers a read, in one form; `local` is the side of who sends.
struct Transfer {
    unsigned op = kPut, local_access = 0, remote_access = 0, local_memory = 0, remote_memory = 0;
    unsigned status = 0, wid = 0, lid = 0, tag = 0, words = 0;
    uint32_t local_word = 0, remote_word = 0;
    Shape local, remote;
    std::vector<uint32_t> local_offsets, remote_offsets;

    bool elements() const { return local_access || remote_access; }
    unsigned element() const
    {
        return !elements() ? 1 : local_access ? local.element : remote.element;
    }
};

struct Process {
    unsigned board = 0, wid = 0, pgid = 0;
    Data sodimm, prefetch = Data(kPrefetch), llcm = Data(kRing), windows = Data(kWindows);
    // Statuses that must come, in order, by who caused them; see `stream_of`.
    std::map<unsigned, std::deque<uint64_t>> statuses;
    uint32_t status_count = 0, done = 0, answers = 0;
    Error error = Error::None;
};

struct Counters {
    uint32_t pgid = 0, malformed = 0, bounds = 0, refused = 0, received = 0, sent = 0,
             unreachable = 0;
    // Of those that came and were not dropped: packets by kind and access.
    std::array<std::array<uint32_t, 3>, 4> done{};
};

struct Board {
    unsigned lid = 0;
    std::array<Process, kProcesses> processes;
    Counters counters;
};

// Statuses of one kind and sender come in order. Packets that a user calls answers are no read's:
// they have the tag's highest bit, which the tags of reads have not.
inline unsigned stream_of(uint64_t status)
{
    return (status & 15) | (status >> VELO_DIMMNET_STATUS_SRC_WID_LSB & 15) << 4 |
           (status >> (VELO_DIMMNET_STATUS_TAG_LSB + 7) & 1) << 8 |
           static_cast<unsigned>(status >> VELO_DIMMNET_STATUS_SRC_LID_LSB) << 9;
}

// The most elements of a packet: beside its data, a pattern and offsets. Lists are not torn inside
// a word.
inline unsigned most_elements(unsigned element, bool pattern, bool offsets, bool even)
{
    unsigned most = 0;
    for (unsigned n = 1; n <= kPayload; n++)
        if (pattern + (offsets ? (n + 1) / 2 : 0) + n * element <= kPayload)
            most = n;
    return even && most > 1 ? most - most % 2 : most;
}

// Whether all elements of an access are inside.
inline bool inside(uint64_t region, uint32_t first, unsigned element, unsigned count, uint32_t step)
{
    const int64_t limit = static_cast<int64_t>(region) - element;
    const int64_t last = int64_t{first} + int64_t{static_cast<int32_t>(step)} * (count - 1);
    return first <= limit && last >= 0 && last <= limit;
}

inline int64_t start_of(unsigned access, uint32_t first, const Shape &shape,
                        const std::vector<uint32_t> &offsets, unsigned element, unsigned index)
{
    if (access == kStrided)
        return int64_t{first} + int64_t{static_cast<int32_t>(shape.step)} * index;
    return int64_t{first} + (access == kList ? int64_t{offsets[index]} : int64_t{index} * element);
}

class Model
{
  public:
    std::array<Board, 2> boards;

    // ----- packets of transfers ------------------------------------------------------------------

    // That of elements [done, done + now), which have this data.
    static Header write_packet(const Transfer &t, unsigned kind, unsigned done, unsigned now,
                               const Data &data, Data &payload)
    {
        const unsigned element = t.element();
        const bool list = t.remote_access == kList;
        payload.clear();
        if (t.remote_access)
            payload.push_back(Shape{element, list ? 0 : t.remote.step}.word(now));
        if (list)
            append_offsets(payload, t.remote_offsets, done, now);
        payload.insert(payload.end(), data.begin(), data.end());
        Header h;
        h.kind = kind;
        h.memory = t.remote_memory;
        h.access = t.remote_access;
        h.status = t.status && (done + now) * element == t.words;
        h.dst_wid = t.wid;
        h.dst_lid = t.lid;
        h.tag = t.tag;
        h.address = t.remote_word;
        if (t.remote_access == kPlain)
            h.address += done * element;
        else if (t.remote_access == kStrided)
            h.address += done * t.remote.step;
        return h;
    }
    static Header read_packet(const Transfer &t, unsigned done, unsigned now, Data &payload)
    {
        const unsigned element = t.element();
        const bool list = t.remote_access == kList;
        const uint32_t to = t.local_word + done * (t.local_access ? t.local.step : element);
        payload = {t.local_memory | t.local_access << VELO_DIMMNET_REPLY_ACCESS_LSB |
                   uint64_t{now * element} << VELO_DIMMNET_REPLY_WORDS_LSB |
                   uint64_t{to} << VELO_DIMMNET_REPLY_ADDRESS_LSB};
        if (t.remote_access)
            payload.push_back(Shape{element, list ? 0 : t.remote.step}.word(now));
        if (list)
            append_offsets(payload, t.remote_offsets, done, now);
        if (t.local_access)
            payload.push_back(t.local.word(now));
        Header h;
        h.kind = kReadKind;
        h.access = t.remote_access;
        h.status = t.status && (done + now) * element == t.words;
        h.dst_wid = t.wid;
        h.dst_lid = t.lid;
        h.tag = t.tag;
        h.address = t.remote_word;
        return h;
    }

    // ----- what comes in -----------------------------------------------------------------------

    // What would become of a packet at a board.
    Error judge(const Board &board, const Header &h, const Data &payload) const
    {
        const bool read = h.kind == kReadKind, plain = h.access == kPlain;
        if (h.kind < kWriteKind || h.kind > kAnswerKind || h.memory == 3 || h.access == 3 ||
            ((read || !plain) && (h.memory != kSodimm || !h.words)))
            return Error::Malformed;
        if (h.dst_wid >= kProcesses || h.dst_lid != board.lid ||
            board.processes[h.dst_wid].pgid != h.pgid)
            return Error::Pgid;
        const Process &p = board.processes[h.dst_wid];
        if (read) {
            Transfer t;
            return judge_read(p, h, payload, t);
        }
        if (plain) {
            const uint64_t size = h.memory == kSodimm           ? p.sodimm.size()
                                  : h.memory == kPrefetchMemory ? kPrefetch
                                                                : kRing;
            return uint64_t{h.address} + h.words > size ? Error::Bounds : Error::None;
        }
        const Shape shape = shape_of(payload[0]);
        const unsigned count = count_of(payload[0]);
        const bool list = h.access == kList;
        if (!count || count > kPayload || !shape.element || shape.element > kElement ||
            (list && shape.step) ||
            shape.element * count + (list ? (count + 1) / 2 : 0) + 1 != h.words)
            return Error::Malformed;
        if (!list)
            return inside(p.sodimm.size(), h.address, shape.element, count, shape.step)
                       ? Error::None
                       : Error::Bounds;
        for (uint32_t offset : offsets_of(payload, 1, count))
            if (uint64_t{h.address} + offset + shape.element > p.sodimm.size())
                return Error::Bounds;
        return Error::None;
    }

    // A user's packet as it leaves: the controller has put right who sends it and how long it is.
    void send(Process &p, Header h, const Data &payload)
    {
        Board &own = boards[p.board], &peer = boards[1 - p.board];
        stamp(p, h, payload);
        own.counters.sent++;
        if (h.dst_lid == peer.lid)
            receive(peer, h, payload);
        else
            own.counters.unreachable++;
    }
    void stamp(const Process &p, Header &h, const Data &payload) const
    {
        h.src_wid = p.wid;
        h.src_lid = boards[p.board].lid;
        h.pgid = p.pgid;
        h.words = static_cast<unsigned>(payload.size());
    }

    // ----- commands ----------------------------------------------------------------------------

    void command(Process &p, const Transfer &t)
    {
        p.done++;
        Error error = judge_command(p, t);
        if (error == Error::None)
            error = t.op == kPut ? put(p, t, kWriteKind) : t.op == kGet ? get(p, t) : move(p, t);
        if (error != Error::None)
            refuse(p, error);
    }
    void refuse(Process &p, Error error)
    {
        p.error = error;
        boards[p.board].counters.refused++;
    }

  private:
    static Shape shape_of(uint64_t pattern)
    {
        return {static_cast<unsigned>(pattern & 63),
                static_cast<uint32_t>(pattern >> VELO_DIMMNET_PATTERN_STEP_LSB)};
    }
    static unsigned count_of(uint64_t pattern)
    {
        return pattern >> VELO_DIMMNET_PATTERN_COUNT_LSB & 0xFFFF;
    }
    static std::vector<uint32_t> offsets_of(const Data &words, size_t at, unsigned count)
    {
        std::vector<uint32_t> offsets;
        for (unsigned i = 0; i < count; i++)
            offsets.push_back(static_cast<uint32_t>(words[at + i / 2] >> 32 * (i % 2)));
        return offsets;
    }
    static void append_offsets(Data &payload, const std::vector<uint32_t> &offsets, unsigned first,
                               unsigned count)
    {
        for (unsigned i = 0; i < count; i += 2)
            payload.push_back(offsets[first + i] |
                              (i + 1 < count ? uint64_t{offsets[first + i + 1]} << 32 : 0));
    }

    void status(Process &p, unsigned kind, unsigned memory, unsigned words, unsigned wid,
                unsigned lid, unsigned tag)
    {
        const uint64_t word = kind | uint64_t{memory} << VELO_DIMMNET_STATUS_MEMORY_LSB |
                              uint64_t{words} << VELO_DIMMNET_STATUS_WORDS_LSB |
                              uint64_t{wid} << VELO_DIMMNET_STATUS_SRC_WID_LSB |
                              uint64_t{tag} << VELO_DIMMNET_STATUS_TAG_LSB |
                              uint64_t{lid} << VELO_DIMMNET_STATUS_SRC_LID_LSB;
        p.statuses[stream_of(word)].push_back(word);
        p.status_count++;
        p.answers += kind == kAnswerKind && !(tag & 128);
    }

    void receive(Board &board, const Header &h, const Data &payload)
    {
        board.counters.received++;
        const Error error = judge(board, h, payload);
        board.counters.malformed += error == Error::Malformed;
        board.counters.pgid += error == Error::Pgid;
        board.counters.bounds += error == Error::Bounds;
        if (error != Error::None)
            return;
        board.counters.done[h.kind][h.access]++;
        Process &p = board.processes[h.dst_wid];
        if (h.kind == kReadKind) {
            answer(p, h, payload);
            return;
        }
        Shape shape{h.words, 0};
        unsigned count = h.words ? 1 : 0;
        size_t at = 0;
        std::vector<uint32_t> offsets;
        if (h.access != kPlain) {
            shape = shape_of(payload[0]);
            count = count_of(payload[0]);
            at = 1;
            if (h.access == kList) {
                offsets = offsets_of(payload, 1, count);
                at += (count + 1) / 2;
            }
        }
        Data &target = h.memory == kSodimm           ? p.sodimm
                       : h.memory == kPrefetchMemory ? p.prefetch
                                                     : p.llcm;
        for (unsigned k = 0; k < count; k++) {
            const int64_t start = start_of(h.access, h.address, shape, offsets, shape.element, k);
            for (unsigned i = 0; i < shape.element; i++)
                target[start + i] = payload[at++];
        }
        if (h.status)
            status(p, h.kind, h.memory, h.words, h.src_wid, h.src_lid, h.tag);
    }

    // A read's payload: reply, pattern and offsets of what is read, pattern of where it goes.
    Error judge_read(const Process &p, const Header &h, const Data &payload, Transfer &t) const
    {
        const uint64_t reply = payload[0];
        t.remote_memory = reply & 3;
        t.remote_access = reply >> VELO_DIMMNET_REPLY_ACCESS_LSB & 3;
        t.words = reply >> VELO_DIMMNET_REPLY_WORDS_LSB & 0xFFFFF;
        t.remote_word = static_cast<uint32_t>(reply >> VELO_DIMMNET_REPLY_ADDRESS_LSB);
        t.local_access = h.access;
        t.local_word = h.address;
        t.status = h.status;
        t.wid = h.src_wid;
        t.lid = h.src_lid;
        t.tag = h.tag;
        // Words of the slot behind a short packet are an earlier one's; what they say decides
        // nothing.
        auto word = [&](size_t i) { return i < payload.size() ? payload[i] : 0; };
        const bool list = t.local_access == kList;
        if (t.local_access)
            t.local = shape_of(word(1));
        const unsigned count = t.local_access ? count_of(word(1)) : 0;
        const size_t offsets = list ? ((count & 127) + 1) / 2 : 0;
        const size_t second = 1 + (t.local_access ? 1 : 0) + offsets;
        if (t.remote_access)
            t.remote = shape_of(word(second));
        if (t.remote_access >= kList || t.remote_memory > kPrefetchMemory ||
            (t.remote_memory != kSodimm && t.remote_access))
            return Error::Malformed;
        const unsigned element = t.element();
        if (!t.words || !element || element > kElement ||
            (t.local_access && t.remote_access && t.local.element != t.remote.element) ||
            t.words % element)
            return Error::Malformed;
        const unsigned elements = t.words / element;
        if (payload.size() != second + (t.remote_access ? 1 : 0) ||
            (t.local_access && count != elements) ||
            (t.remote_access && count_of(word(second)) != elements) ||
            (list && (count > 127 || t.local.step)))
            return Error::Malformed;
        if ((!list && !inside(p.sodimm.size(), t.local_word, t.local_access ? element : t.words,
                              t.local_access ? elements : 1, t.local.step)) ||
            !inside(0xFFFFFFFF, t.remote_word, t.remote_access ? element : t.words,
                    t.remote_access ? elements : 1, t.remote.step))
            return Error::Bounds;
        if (list)
            t.local_offsets = offsets_of(payload, 2, count);
        return Error::None;
    }

    void answer(Process &p, const Header &h, const Data &payload)
    {
        Transfer t;
        judge_read(p, h, payload, t);
        if (put(p, t, kAnswerKind) != Error::None)
            boards[p.board].counters.bounds++;
    }

    Error judge_command(const Process &p, const Transfer &t) const
    {
        const bool stays = t.op == kLoad || t.op == kStore;
        const unsigned element = t.element();
        if (t.op < kPut || t.op > kStore)
            return Error::Op;
        if (!t.words || !element || element > kElement || t.words % element)
            return Error::Size;
        const unsigned elements = t.words / element;
        const uint64_t lists = VELO_DIMMNET_LLCM_WORDS;
        if ((t.local_access == kList && t.local.step + (elements + 1) / 2 > lists) ||
            (t.remote_access == kList && t.remote.step + (elements + 1) / 2 > lists))
            return Error::Bounds;
        if (t.local_memory == kSodimm && t.local_access != kList &&
            !inside(p.sodimm.size(), t.local_word, t.local_access ? element : t.words,
                    t.local_access ? elements : 1, t.local.step))
            return Error::Bounds;
        if (t.op == kPut && t.remote_access != kList &&
            !inside(0xFFFFFFFF, t.remote_word, t.remote_access ? element : t.words,
                    t.remote_access ? elements : 1, t.remote.step))
            return Error::Bounds;
        const uint64_t windows = t.op == kLoad || t.op == kGet ? kPrefetch : kWindows;
        const uint64_t window = stays ? t.remote_word : t.local_word;
        if ((stays || t.local_memory != kSodimm) && window + t.words > windows)
            return Error::Bounds;
        return Error::None;
    }

    // Elements [first, first + count) of the sender's side; false if one is outside.
    static bool gather(const Process &p, const Transfer &t, unsigned first, unsigned count,
                       Data &data)
    {
        const unsigned element = t.element();
        const bool sodimm = t.local_memory == kSodimm;
        const Data &source = sodimm ? p.sodimm : p.windows;
        for (unsigned k = first; k < first + count; k++) {
            const int64_t start =
                start_of(t.local_access, t.local_word, t.local, t.local_offsets, element, k);
            if (start < 0 || start + element > static_cast<int64_t>(source.size()))
                return false;
            data.insert(data.end(), source.begin() + start, source.begin() + start + element);
        }
        return true;
    }

    Error put(Process &p, const Transfer &t, unsigned kind)
    {
        const unsigned element = t.element(), elements = t.words / element;
        const bool list = t.remote_access == kList;
        const unsigned most =
            most_elements(element, t.remote_access, list, list || t.local_access == kList);
        for (unsigned done = 0, now; done < elements; done += now) {
            now = std::min(most, elements - done);
            Data payload, data;
            if (!gather(p, t, done, now, data))
                return Error::Bounds;
            const Header h = write_packet(t, kind, done, now, data, payload);
            send(p, h, payload);
        }
        return Error::None;
    }

    Error get(Process &p, const Transfer &t)
    {
        const unsigned element = t.element(), elements = t.words / element;
        const bool list = t.remote_access == kList;
        for (unsigned done = 0, now; done < elements; done += now) {
            now = list ? std::min(kReadElements, elements - done) : elements;
            Data payload;
            const Header h = read_packet(t, done, now, payload);
            send(p, h, payload);
        }
        return Error::None;
    }

    // Load and store.
    Error move(Process &p, const Transfer &t)
    {
        const unsigned element = t.element(), elements = t.words / element;
        const unsigned most = most_elements(element, false, false, t.local_access == kList);
        unsigned now = 0;
        for (unsigned done = 0; done < elements; done += now) {
            now = std::min(most, elements - done);
            Data data;
            if (!gather(p, t, done, now, data))
                return Error::Bounds;
            const uint32_t at = t.remote_word + done * element;
            for (unsigned i = 0; i < now * element; i++) {
                const int64_t start = start_of(t.local_access, t.local_word, t.local,
                                               t.local_offsets, element, done + i / element);
                if (t.op == kLoad)
                    p.prefetch[at + i] = data[i];
                else
                    p.sodimm[start + i % element] = p.windows[at + i];
            }
        }
        if (t.status)
            status(p, 0, t.op == kLoad ? kPrefetchMemory : kSodimm, now * element, p.wid,
                   boards[p.board].lid, t.tag);
        return Error::None;
    }
};

} // namespace bench
