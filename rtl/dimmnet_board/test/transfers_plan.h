// SPDX-License-Identifier: Apache-2.0
//
// Random programs for both processes of both boards, for a round: the model carries out each
// command as it is planned. So that this order does not matter, a round's sources are written by
// nobody, and each writer has a part of each memory of its own: the peer board's processes, the
// process itself, and what it gets. Each round reads the words that the round before wrote.

#pragma once

#include "boards_model.h"

namespace bench
{

constexpr unsigned kLid = 0x4240;
constexpr unsigned kWritePage = 0, kPrefetchPage = 1, kRegisterPage = 2, kLlcmPage = 8;
constexpr unsigned kRegion = 6144; // words, of which a half is read and a half written
constexpr unsigned kHalf = kRegion / 2;
constexpr unsigned kWriters = 4;     // the peer's processes, the process itself, its gets
constexpr unsigned kLists = 1024;    // words of LLCM for lists of offsets
constexpr unsigned kReadsAtOnce = 3; // of a process: a board has room for eight

// The first region goes over from one SO-DIMM to the other, the second one follows at once.
inline uint32_t region_first(unsigned wid) { return (1U << 25) - 1000 + wid * kRegion; }

inline uint32_t slot(unsigned page, unsigned wid, unsigned word)
{
    const uint32_t offset = 8 * word;
    return (offset & 4095) | (page + (offset >> 12)) << VELO_DIMMNET_SLOT_PAGE_LSB |
           wid << VELO_DIMMNET_SLOT_WID_LSB;
}
inline uint32_t privileged_slot(unsigned word)
{
    return 1U << VELO_DIMMNET_SLOT_PRIVILEGED_LSB | 8 * word;
}

// What a process does next: write words; or wait until so many commands are done, or so many
// answers are there.
struct Step {
    enum Kind { Write, Done, Answers } kind;
    uint32_t address = 0;
    Data words;
    uint32_t count = 0;
};

class Plan
{
  public:
    Plan(Model &model, Random &random, unsigned words)
        : model_(model), random_(random), words_(words)
    {
    }

    void round()
    {
        turn_ = random_.below(kWriters);
        written_half_ = 1 - written_half_;
        for (Board &board : model_.boards)
            for (Process &p : board.processes)
                for (unsigned i = 0; i < 3; i++)
                    batch(p);
    }
    std::deque<Step> &program(unsigned board, unsigned wid) { return programs_[board][wid]; }

  private:
    struct Packet {
        Header header;
        Data payload;
    };
    struct Item {
        enum Kind { Botf, Aotf, Move, Wrong } kind;
        unsigned window = 0, first = 0; // of AOTF: which
        Packet packet;
        Transfer transfer;
    };
    struct Part {
        unsigned first, words;
    };

    bool chance(unsigned percent) { return random_.below(100) < percent; }
    template <typename... Values> unsigned one_of(Values... values)
    {
        const unsigned all[] = {static_cast<unsigned>(values)...};
        return all[random_.below(sizeof...(values))];
    }
    unsigned some(unsigned limit)
    {
        switch (random_.below(4)) {
        case 0:
            return 1 + random_.below(std::min(limit, 4U));
        case 1:
            return 1 + random_.below(std::min(limit, 16U));
        case 2:
            return 1 + random_.below(std::min(limit, kPayload + 4));
        default:
            return 1 + random_.below(limit);
        }
    }

    // A process of the peer's board: mostly of the same group, else another one, or none.
    unsigned target(const Process &p)
    {
        const auto &peers = model_.boards[1 - p.board].processes;
        unsigned wid = random_.below(kProcesses);
        if (peers[wid].pgid != p.pgid && !chance(10))
            wid = 1 - wid;
        return chance(2) ? 2 + random_.below(14) : wid;
    }

    // A writer's part of a memory in this round.
    Part part(unsigned memory, unsigned writer) const
    {
        const unsigned place = (writer + turn_) % kWriters;
        if (memory == kSodimm)
            return {written_half_ * kHalf + place * (kHalf / kWriters), kHalf / kWriters};
        if (memory == kPrefetchMemory)
            return {place * (kPrefetch / kWriters), kPrefetch / kWriters};
        constexpr unsigned words = (kRing - kLists) / kWriters;
        return {kLists + place * words, words};
    }
    Part source() const { return {(1 - written_half_) * kHalf, kHalf}; }

    // Elements at random places of a part.
    void place(Part in, unsigned access, unsigned words, unsigned element, unsigned count,
               Shape &shape, std::vector<uint32_t> &offsets, uint32_t &first)
    {
        if (access == kPlain) {
            first = in.first + random_.below(in.words - words + 1);
            return;
        }
        shape.element = element;
        const unsigned room = in.words - element;
        if (access == kList) {
            first = in.first;
            offsets.clear();
            const bool near = chance(30);
            uint32_t next = random_.below(room - std::min(room, count * element) + 1);
            for (unsigned i = 0; i < count; i++) {
                offsets.push_back(near ? std::min(next, room) : random_.below(room + 1));
                next += element;
            }
            return;
        }
        const unsigned most = room / std::max(count - 1, 1U);
        const unsigned step = std::min(
            most, one_of(element, element + 1, most, random_.below(41), random_.below(most + 1)));
        const unsigned span = step * (count - 1);
        first = in.first + random_.below(room - span + 1);
        shape.step = step;
        if (chance(30)) {
            first += span;
            shape.step = -step;
        }
    }

    // A right transfer of at most so many words, with offsets of a list for so many elements.
    Transfer transfer(const Process &p, unsigned op, unsigned limit, unsigned most_offsets)
    {
        Transfer t;
        const bool stays = op == kLoad || op == kStore;
        t.op = op;
        t.status = random_.below(2);
        t.tag = random_.below(128);
        t.lid = model_.boards[1 - p.board].lid;
        t.wid = target(p);
        if (!stays && chance(30))
            t.local_memory = kPrefetchMemory;
        else
            t.local_access = op == kGet ? one_of(0, 0, 1) : one_of(0, 0, 1, 1, 2);
        if (op == kPut && chance(50))
            t.remote_memory = one_of(kPrefetchMemory, kLlcm);
        else if (!stays)
            t.remote_access = one_of(0, 0, 1, 2);

        const bool to_windows = op == kLoad || (op == kGet && t.local_memory != kSodimm);
        const bool from_windows = op == kStore || (op == kPut && t.local_memory != kSodimm);
        const Part target = to_windows     ? part(kPrefetchMemory, op == kLoad ? 2 : 3)
                            : op == kStore ? part(kSodimm, 2)
                            : op == kGet   ? part(kSodimm, 3)
                                           : part(t.remote_memory, p.wid);
        limit = std::min(limit, target.words);
        if (from_windows)
            limit = std::min(limit, kWindows);
        unsigned element = 1;
        if (t.elements())
            element = std::min(
                one_of(1, 1, 1, 2, 3, 4, 5, 8, 13, 23, 31, 32, 1 + random_.below(32)), limit);
        unsigned most = limit / element;
        if (t.local_access == kList || t.remote_access == kList)
            most = std::min(most, most_offsets);
        const unsigned count = some(most);
        t.words = count * element;
        Shape none;
        std::vector<uint32_t> no_offsets;
        auto local = [&](Part in) {
            place(in, t.local_access, t.words, element, count, t.local, t.local_offsets,
                  t.local_word);
        };
        auto remote = [&](Part in) {
            place(in, t.remote_access, t.words, element, count, t.remote, t.remote_offsets,
                  t.remote_word);
        };
        auto window = [&](Part in, uint32_t &word) {
            place(in, kPlain, t.words, 1, t.words, none, no_offsets, word);
        };
        const Part windows{0, kWindows};
        if (op == kLoad) {
            local(source());
            window(target, t.remote_word);
        } else if (op == kStore) {
            local(target);
            window(windows, t.remote_word);
        } else if (op == kPut) {
            if (from_windows)
                window(windows, t.local_word);
            else
                local(source());
            remote(target);
        } else {
            local(target);
            remote(source());
        }
        return t;
    }

    // Words of the longest transfer: where packets must be short, it is one.
    unsigned longest() const { return words_ == kPayload ? kHalf : words_ - 2; }

    unsigned reads_of(const Transfer &t) const
    {
        const unsigned element = std::max(t.element(), 1U);
        return t.remote_access == kList ? (t.words / element + kReadElements - 1) / kReadElements
                                        : 1;
    }

    // ----- wrong ones
    // -----------------------------------------------------------------------------

    // Nothing of it may be written anywhere but where its sender writes.
    void spoil(Transfer &t)
    {
        const unsigned element = t.element();
        const bool windows = t.op == kLoad || t.op == kStore || t.local_memory != kSodimm;
        switch (random_.below(6)) {
        case 0:
            t.op = one_of(0, 1, 6, 9, 15);
            break;
        case 1:
            t.words = 0;
            break;
        case 2:
            if (t.elements())
                t.local.element = t.remote.element = one_of(0, 33, 63);
            else
                t.words = 0;
            break;
        case 3:
            if (windows) {
                uint32_t &word = t.op == kLoad || t.op == kStore ? t.remote_word : t.local_word;
                word = (t.op == kLoad || t.op == kGet ? kPrefetch : kWindows) - t.words + 1 +
                       random_.below(100);
            } else if (t.local_access == kList) {
                t.local_offsets[random_.below(t.words / element)] =
                    one_of(0xFFFFFFFF, 0x80000000, kRegion);
            } else {
                t.local_word = kRegion - (t.local_access ? element : t.words) + 1;
                if (t.local_access && t.local.step >> 31)
                    t.local_word = kRegion;
            }
            break;
        case 4:
            if (t.local_access == kList || t.remote_access == kList) {
                (t.local_access == kList ? t.local : t.remote).step = VELO_DIMMNET_LLCM_WORDS;
                break;
            }
            [[fallthrough]];
        default:
            // All packets, since those behind one that is outside are, too.
            if (t.op == kPut || t.op == kGet) {
                const uint32_t size = t.remote_memory == kSodimm           ? kRegion
                                      : t.remote_memory == kPrefetchMemory ? kPrefetch
                                                                           : kRing;
                if (t.remote_access == kPlain && t.op == kPut)
                    t.remote_word = size - random_.below(1 + std::min(t.words, 4U) / 2);
                else
                    t.remote_word = size;
                if (t.remote_access == kStrided && t.remote.step >> 31)
                    t.remote.step = -t.remote.step;
                if (t.remote_access == kPlain && t.local_access && t.op == kPut)
                    t.remote_word = size;
            } else {
                t.words = 0;
            }
        }
    }

    // A packet that does nothing at the peer.
    void spoil(const Process &p, Packet &packet)
    {
        const Board &peer = model_.boards[1 - p.board];
        for (int i = 0; i < 20; i++) {
            Packet wrong = packet;
            Header &h = wrong.header;
            switch (random_.below(7)) {
            case 0:
                h.kind = random_.below(16);
                break;
            case 1:
                h.memory = random_.below(4);
                break;
            case 2:
                h.access = random_.below(4);
                break;
            case 3:
                h.address = one_of(random_.next(), kRegion, kPrefetch, kRing, 0xFFFFFFFF);
                break;
            case 4:
                if (!wrong.payload.empty())
                    wrong.payload[0] ^= 1ULL << random_.below(64);
                break;
            case 5:
                if (wrong.payload.size() > 1)
                    wrong.payload[1] ^= 1ULL << random_.below(64);
                break;
            default:
                if (!wrong.payload.empty())
                    wrong.payload.pop_back();
            }
            model_.stamp(p, h, wrong.payload);
            // A board has no room for more reads.
            if (h.kind == kReadKind && packet.header.kind != kReadKind)
                continue;
            if (h.dst_lid == peer.lid && model_.judge(peer, h, wrong.payload) != Error::None) {
                packet = wrong;
                return;
            }
        }
    }

    // ----- packets of a user
    // -----------------------------------------------------------------------

    // One with at most so many words of payload.
    Packet packet(const Process &p, unsigned room)
    {
        Packet result;
        const unsigned limit = std::min(room, words_);
        if (limit >= 4 && reads_ && chance(6)) {
            Transfer t = transfer(p, kGet, longest(), 2 * (limit - 3));
            if (t.words / t.element() > kReadElements && t.remote_access == kList)
                return packet(p, room);
            reads_--;
            unanswered_ = true;
            result.header = Model::read_packet(t, 0, t.words / t.element(), result.payload);
        } else {
            Transfer t;
            Data data;
            do {
                t = transfer(p, kPut, std::max(limit, 1U), std::max(limit, 1U));
                data.assign(t.words, 0);
                for (uint64_t &word : data)
                    word = random_.next();
                // The elements of one packet: the pattern says how many.
                result.header = Model::write_packet(t, chance(80) ? kWriteKind : kAnswerKind, 0,
                                                    t.words / t.element(), data, result.payload);
                if (result.payload.size() > limit && t.remote_access == kPlain)
                    result.payload.resize(limit);
            } while (result.payload.size() > limit);
            result.header.tag |= 128;
            if (result.header.access == kPlain && chance(5))
                result.payload.clear();
            if (chance(2))
                result.header.dst_lid = kLid ^ 0x1000;
        }
        model_.stamp(p, result.header, result.payload);
        if (chance(8))
            spoil(p, result);
        return result;
    }

    // As the user wrote it: what the controller puts right is wrong.
    void write_header(const Header &right, Data &image, unsigned at)
    {
        Header forged = right;
        forged.words = random_.below(128);
        forged.src_wid = random_.below(16);
        forged.src_lid = random_.below(0x10000);
        forged.pgid = random_.below(0x10000);
        image[at] = forged.low();
        image[at + 1] = forged.high();
    }

    // ----- a batch: windows are filled, then commands of them and others in any order
    // ---------------

    void batch(Process &p)
    {
        list_at_ = 0;
        reads_ = kReadsAtOnce - 1;
        unanswered_ = false;
        issued_ = waited_ = p.done;
        steps_ = &programs_[p.board][p.wid];
        std::vector<Item> items;
        for (uint64_t &word : p.windows)
            word = random_.next();
        for (unsigned window = 0; window < VELO_DIMMNET_WRITE_WINDOWS; window++) {
            if (window && chance(50)) {
                fill_aotf(p, items);
                continue;
            }
            unsigned at = random_.below(3);
            const unsigned most = one_of(1, 62, 62, 12);
            while (at + VELO_DIMMNET_HEADER_WORDS <= VELO_DIMMNET_WINDOW_WORDS) {
                Item item{Item::Botf};
                item.window = window;
                item.first = at;
                item.packet = packet(p, std::min(most, VELO_DIMMNET_WINDOW_WORDS - at - 2));
                Data &image = p.windows;
                const unsigned base = window * VELO_DIMMNET_WINDOW_WORDS + at;
                write_header(item.packet.header, image, base);
                std::copy(item.packet.payload.begin(), item.packet.payload.end(),
                          image.begin() + base + 2);
                at += 2 + static_cast<unsigned>(item.packet.payload.size());
                items.push_back(item);
                if (item.packet.header.kind != kReadKind && chance(10))
                    items.push_back(item);
            }
        }
        steps_->push_back({Step::Write, slot(kWritePage, p.wid, 0), p.windows});
        for (unsigned i = random_.below(8); i > 0; i--) {
            Item item{chance(4) ? Item::Wrong : Item::Move};
            item.transfer = random_transfer(p);
            items.push_back(item);
        }
        for (size_t i = items.size(); i > 1; i--)
            std::swap(items[i - 1], items[random_.below(static_cast<uint32_t>(i))]);
        for (Item &item : items)
            issue(p, item);
        if (unanswered_) {
            Item item{Item::Move};
            do
                item.transfer = transfer(p, kGet, longest(), 2);
            while (item.transfer.wid >= kProcesses ||
                   model_.boards[1 - p.board].processes[item.transfer.wid].pgid != p.pgid);
            item.transfer.status = 1;
            issue(p, item);
        }
        steps_->push_back({Step::Done, 0, {}, issued_});
        if (unanswered_)
            steps_->push_back({Step::Answers, 0, {}, p.answers});
    }

    void fill_aotf(Process &p, std::vector<Item> &items)
    {
        for (unsigned k = random_.below(12); k < 32; k += 1 + random_.below(12)) {
            Item item{Item::Aotf};
            item.first = k;
            do
                item.packet = packet(p, 1);
            while (item.packet.payload.size() != 1);
            write_header(item.packet.header, p.windows, VELO_DIMMNET_WINDOW_WORDS + 2 * k);
            items.push_back(item);
        }
    }

    Transfer random_transfer(const Process &p)
    {
        const unsigned op = one_of(kPut, kPut, kPut, kGet, kLoad, kStore);
        const unsigned limit = longest();
        Transfer t = transfer(p, op, limit, words_ == kPayload ? 2 * kReadElements : 2);
        while (t.op == kGet && reads_of(t) > reads_)
            t = transfer(p, reads_ ? kGet : kPut, limit, 2);
        if (t.op == kGet) {
            reads_ -= reads_of(t);
            unanswered_ = true;
        }
        if (chance(8))
            spoil(t);
        return t;
    }

    void command(const Process &p, unsigned word, Data words)
    {
        // No more commands than their queue has room for.
        if (issued_ - waited_ >= 8) {
            waited_ = issued_ - random_.below(8);
            steps_->push_back({Step::Done, 0, {}, waited_});
        }
        steps_->push_back({Step::Write, slot(kRegisterPage, p.wid, word), std::move(words)});
        issued_++;
    }

    void issue(Process &p, Item &item)
    {
        switch (item.kind) {
        case Item::Botf: {
            const uint64_t words = 2 + item.packet.payload.size();
            command(p, VELO_DIMMNET_REGISTER_BOTF,
                    {1 | uint64_t{item.window} << VELO_DIMMNET_BOTF_WINDOW_LSB |
                     uint64_t{item.first} << VELO_DIMMNET_BOTF_FIRST_LSB |
                     words << VELO_DIMMNET_BOTF_WORDS_LSB});
            p.done++;
            model_.send(p, item.packet.header, item.packet.payload);
            break;
        }
        case Item::Aotf:
            command(p, VELO_DIMMNET_REGISTER_AOTF + item.first * VELO_DIMMNET_AOTF_STEP_WORDS,
                    item.packet.payload);
            p.done++;
            model_.send(p, item.packet.header, item.packet.payload);
            break;
        case Item::Wrong: {
            // Another command's code; a header that is not whole; words behind the window.
            const unsigned kind = random_.below(3);
            command(p, VELO_DIMMNET_REGISTER_BOTF,
                    {(kind == 0 ? 2U : 1U) | 8U << VELO_DIMMNET_BOTF_FIRST_LSB |
                     uint64_t{kind == 1 ? random_.below(2) : 57} << VELO_DIMMNET_BOTF_WORDS_LSB});
            p.done++;
            model_.refuse(p, kind == 0 ? Error::Op : Error::Size);
            break;
        }
        case Item::Move:
            move(p, item.transfer);
        }
    }

    void list(Process &p, Shape &shape, const std::vector<uint32_t> &offsets)
    {
        const unsigned words = static_cast<unsigned>(offsets.size() + 1) / 2;
        if (shape.step == VELO_DIMMNET_LLCM_WORDS)
            return; // One that is refused.
        shape.step = list_at_;
        Step step{Step::Write, slot(kLlcmPage, p.wid, list_at_), {}};
        for (unsigned i = 0; i < words; i++) {
            const uint64_t upper =
                2 * i + 1 < offsets.size() ? offsets[2 * i + 1] : random_.below(1 << 31);
            step.words.push_back(offsets[2 * i] | upper << 32);
            p.llcm[list_at_ + i] = step.words.back();
        }
        list_at_ += words;
        steps_->push_back(step);
    }

    void move(Process &p, Transfer &t)
    {
        if (t.local_access == kList)
            list(p, t.local, t.local_offsets);
        if (t.remote_access == kList)
            list(p, t.remote, t.remote_offsets);
        steps_->push_back({Step::Write,
                           slot(kRegisterPage, p.wid, VELO_DIMMNET_REGISTER_PATTERN_LOCAL),
                           {t.local.word(), t.remote.word()}});
        const uint64_t low = t.op |
                             uint64_t{t.local_memory} << VELO_DIMMNET_COMMAND_LOCAL_MEMORY_LSB |
                             uint64_t{t.remote_memory} << VELO_DIMMNET_COMMAND_REMOTE_MEMORY_LSB |
                             uint64_t{t.local_access} << VELO_DIMMNET_COMMAND_LOCAL_ACCESS_LSB |
                             uint64_t{t.remote_access} << VELO_DIMMNET_COMMAND_REMOTE_ACCESS_LSB |
                             uint64_t{t.status} << VELO_DIMMNET_COMMAND_STATUS_LSB |
                             uint64_t{t.wid} << VELO_DIMMNET_COMMAND_WID_LSB |
                             uint64_t{t.tag} << VELO_DIMMNET_COMMAND_TAG_LSB |
                             uint64_t{t.words} << VELO_DIMMNET_COMMAND_WORDS_LSB |
                             uint64_t{t.lid} << VELO_DIMMNET_COMMAND_LID_LSB;
        command(p, VELO_DIMMNET_REGISTER_COMMAND_0,
                {low, t.local_word | uint64_t{t.remote_word} << 32});
        model_.command(p, t);
    }

    Model &model_;
    Random &random_;
    unsigned words_;
    unsigned turn_ = 0, written_half_ = 0;
    std::deque<Step> programs_[2][kProcesses];
    // Of the batch.
    std::deque<Step> *steps_ = nullptr;
    unsigned list_at_ = 0, reads_ = 0;
    bool unanswered_ = false;
    uint32_t issued_ = 0, waited_ = 0;
};

} // namespace bench
