// SPDX-License-Identifier: Apache-2.0
//
// Two whole boards, each in a slot, and a wire that flips bits: does each packet of random commands
// do what it should, once and in order, and each wrong one nothing but be counted?
//
//   bench_boards [--packets N] [--rate P] [--words N] [--seed N]
//
// Rounds: both processes of both boards get programs, which transfers_plan.h makes, and run them at
// the same time. Each reads its status ring as the statuses come; each status must be the next one
// of its kind and sender. When all packets have come and the boards are quiet, all memories must be
// as the model (boards_model.h) has them, and all counters. A bit of the wire, idle or not, is
// wrong with probability `rate`; `words` is the most payload of a packet.

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "Vdimmnet_board_pair.h"
#include "Vdimmnet_board_pair___024root.h"
#include "slot_bus.h"
#include "transfers_plan.h"

namespace
{

using namespace bench;

struct Settings {
    uint64_t packets = 2000, seed = 1;
    double rate = 0;
    unsigned words = kPayload;
};

// The boards' memories, behind their backs.
#define BOARD(b, rest) dimmnet_board_pair__DOT__gen_board__BRA__##b##__KET____DOT__##rest
#define CORE(b, rest) BOARD(b, u_board__DOT__u_core__DOT__##rest##__DOT__u_ram__DOT__mem)
#define CELLS(b, s) BOARD(b, gen_sodimm__BRA__##s##__KET____DOT__u_model__DOT__cells)
uint64_t half(const VlWide<4> &row, unsigned upper)
{
    return row[2 * upper] | uint64_t{row[2 * upper + 1]} << 32;
}

// A process of the host: runs its program, and takes its statuses.
class Host
{
  public:
    Host(Process &process, SlotBus &bus) : process_(process), bus_(bus) {}

    std::deque<Step> program;

    bool finished() const
    {
        return program.empty() && !reading_ && taken_ == process_.status_count;
    }
    void renew() { taken_ = done_ = answers_ = 0; }
    std::string state() const
    {
        std::string kinds = "board " + std::to_string(process_.board) + " process " +
                            std::to_string(process_.wid) + ": " + std::to_string(taken_) + " of " +
                            std::to_string(process_.status_count) + " statuses, " +
                            std::to_string(done_) + " of " + std::to_string(process_.done) +
                            " commands, " + std::to_string(program.size()) + " steps left";
        return kinds;
    }

    void step()
    {
        if (reading_ || bus_.waiting() > 3)
            return;
        if (!program.empty()) {
            const Step &step = program.front();
            if (step.kind == Step::Write) {
                write(step);
                program.pop_front();
                return;
            }
            if (step.kind == Step::Done ? done_ >= step.count : answers_ >= step.count) {
                program.pop_front();
                return;
            }
        }
        if (!program.empty() || taken_ != process_.status_count)
            poll();
    }

    // Whether a status that nobody waits for has come.
    void poll()
    {
        reading_ = true;
        polls_++;
        const uint32_t page = slot(kRegisterPage, process_.wid, 0);
        if (polls_ % 2) {
            bus_.read(page + 8 * VELO_DIMMNET_REGISTER_DONE, [this](uint64_t done, uint64_t) {
                done_ = static_cast<uint32_t>(done);
                reading_ = false;
            });
            return;
        }
        bus_.read(page + 8 * VELO_DIMMNET_REGISTER_STATUS_WRITE, [this](uint64_t count, uint64_t) {
            reading_ = false;
            if (count > process_.status_count)
                fail(state() + ": more statuses than there should be");
            for (uint32_t i = taken_; i < count; i++)
                take(i, i + 1 == count);
        });
    }

  private:
    void write(const Step &step)
    {
        uint32_t at = step.address;
        for (size_t i = 0; i < step.words.size();) {
            if (at & 8 || i + 1 == step.words.size()) {
                bus_.write_word(at, step.words[i++]);
                at += 8;
            } else {
                bus_.write(at, step.words[i], step.words[i + 1]);
                i += 2;
                at += 16;
            }
        }
    }

    void take(uint32_t index, bool last)
    {
        reading_ = true;
        const unsigned word = kRing + index % VELO_DIMMNET_STATUS_ENTRIES;
        bus_.read(slot(kLlcmPage, process_.wid, word), [=, this](uint64_t low, uint64_t high) {
            const uint64_t status = word % 2 ? high : low;
            auto &wanted = process_.statuses[stream_of(status)];
            char text[80];
            std::snprintf(text, sizeof text, " status %u: %016llx, wanted %016llx", index,
                          static_cast<unsigned long long>(status),
                          static_cast<unsigned long long>(wanted.empty() ? 0 : wanted.front()));
            if (wanted.empty() || wanted.front() != status)
                fail(state() + text);
            wanted.pop_front();
            answers_ +=
                (status & 15) == kAnswerKind && !(status >> (VELO_DIMMNET_STATUS_TAG_LSB + 7) & 1);
            taken_++;
            if (!last)
                return;
            reading_ = false;
            bus_.write_word(slot(kRegisterPage, process_.wid, VELO_DIMMNET_REGISTER_STATUS_READ),
                            taken_);
        });
    }

    Process &process_;
    SlotBus &bus_;
    bool reading_ = false;
    uint32_t taken_ = 0, done_ = 0, answers_ = 0, polls_ = 0;
};

class Bench
{
  public:
    explicit Bench(const Settings &settings)
        : settings_(settings), random_(settings.seed), plan_(model_, random_, settings.words)
    {
        top_ = std::make_unique<Vdimmnet_board_pair>(&context_);
        for (unsigned b = 0; b < 2; b++) {
            buses_.push_back(std::make_unique<SlotBus>(*top_, b));
            for (unsigned w = 0; w < kProcesses; w++)
                hosts_.push_back(std::make_unique<Host>(model_.boards[b].processes[w], *buses_[b]));
            to_error_[b] = next_error();
        }
        host_ = [this](unsigned b, unsigned w) { return hosts_[b * kProcesses + w].get(); };
    }

    void run()
    {
        const auto began = std::chrono::steady_clock::now();
        set_up();
        while (sent() < settings_.packets) {
            if (rounds_ % 8 == 0)
                renew();
            plan_.round();
            for (unsigned b = 0; b < 2; b++)
                for (unsigned w = 0; w < kProcesses; w++)
                    host_(b, w)->program = std::move(plan_.program(b, w));
            settle();
            compare();
            rounds_++;
        }
        report(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }

  private:
    uint64_t next_error()
    {
        if (settings_.rate <= 0)
            return ~0ULL;
        return static_cast<uint64_t>(std::log1p(-random_.unit()) / std::log1p(-settings_.rate));
    }

    uint64_t sent() const
    {
        return uint64_t{model_.boards[0].counters.sent} + model_.boards[1].counters.sent;
    }

    // ----- one clock -----------------------------------------------------------------------------

    void flip(unsigned b)
    {
        constexpr unsigned kBits = 70;
        for (unsigned w = 0; w < 3; w++)
            top_->flip_i[b][w] = 0;
        hit_[b] = to_error_[b] < kBits;
        while (to_error_[b] < kBits) {
            const unsigned bit = static_cast<unsigned>(to_error_[b]);
            top_->flip_i[b][bit / 32] |= 1U << bit % 32;
            to_error_[b] += 1 + next_error();
        }
        if (to_error_[b] != ~0ULL)
            to_error_[b] -= kBits;
    }

    void clock()
    {
        for (unsigned b = 0; b < 2; b++) {
            buses_[b]->drive();
            flip(b);
        }
        top_->clk_i = 0;
        top_->eval();
        for (unsigned b = 0; b < 2; b++) {
            buses_[b]->sample();
            damaged_ += hit_[b] && top_->sending_o[b];
            words_ += top_->sending_o[b];
        }
        top_->clk_i = 1;
        top_->eval();
        cycles_++;
    }
    void clocks(unsigned count)
    {
        while (count--)
            clock();
    }

    uint64_t read(unsigned b, uint32_t address)
    {
        uint64_t word = 0;
        bool came = false;
        buses_[b]->read(address, [&](uint64_t low, uint64_t high) {
            word = address & 8 ? high : low;
            came = true;
        });
        while (!came)
            clock();
        return word;
    }
    uint32_t privileged(unsigned b, unsigned word)
    {
        return static_cast<uint32_t>(read(b, privileged_slot(word)));
    }

    // ----- set-up
    // ---------------------------------------------------------------------------------

    void set_up()
    {
        top_->rst_ni = 0;
        clocks(4);
        top_->rst_ni = 1;
        clocks(600); // SO-DIMMs are set up.
        for (unsigned b = 0; b < 2; b++) {
            Board &board = model_.boards[b];
            board.lid = kLid + b;
            buses_[b]->write(privileged_slot(VELO_DIMMNET_PRIVILEGED_LID), board.lid, 0xFFFFF);
            for (unsigned w = 0; w < kProcesses; w++) {
                const uint32_t at = VELO_DIMMNET_PRIVILEGED_PROCESS + 8 * w;
                // Regions are even: the lowest bit that software writes there is not kept.
                buses_[b]->write_word(privileged_slot(at + 1), region_first(w) | b);
                buses_[b]->write_word(privileged_slot(at + 2), kRegion | b);
                if (privileged(b, at + 1) != region_first(w) || privileged(b, at + 2) != kRegion)
                    fail("a region is not what it was set to, or is odd");
                Process &p = board.processes[w];
                p.board = b;
                p.wid = w;
                for (unsigned i = 0; i < kRegion; i++) {
                    p.sodimm.push_back(random_.next());
                    set_cell(b, region_first(w) + i, p.sodimm[i]);
                }
                for (unsigned i = 0; i < kPrefetch; i++)
                    p.prefetch[i] = prefetch_word(b, w, i);
                for (unsigned i = 0; i < kRing; i++)
                    p.llcm[i] = llcm_word(b, w, i);
            }
        }
    }

    // New groups: all processes, those of the same number, or crosswise.
    void renew()
    {
        const unsigned kind = random_.below(3), group = random_.below(0x8000);
        for (unsigned b = 0; b < 2; b++)
            for (unsigned w = 0; w < kProcesses; w++) {
                Process &p = model_.boards[b].processes[w];
                // Groups differ in one bit.
                p.pgid = group ^ (kind == 0 ? 0 : kind == 1 ? w : (w + b) % 2) << (group % 15);
                p.status_count = p.done = p.answers = 0;
                p.error = Error::None;
                host_(b, w)->renew();
                buses_[b]->write_word(privileged_slot(VELO_DIMMNET_PRIVILEGED_PROCESS + 8 * w),
                                      p.pgid | 1ULL << VELO_DIMMNET_IDENTITY_ENABLED_LSB);
            }
        clocks(100);
    }

    // ----- a round
    // --------------------------------------------------------------------------------

    void settle()
    {
        const uint64_t limit = cycles_ + 20'000'000;
        auto expect = [&](bool there) {
            if (there || cycles_ < limit)
                return;
            std::string states;
            for (auto &host : hosts_)
                states += "\n  " + host->state();
            fail("a round does not end" + states);
        };
        auto busy = [&] {
            for (auto &host : hosts_)
                if (!host->finished())
                    return true;
            return false;
        };
        while (busy()) {
            for (auto &host : hosts_)
                host->step();
            clock();
            expect(false);
        }
        for (unsigned b = 0; b < 2; b++)
            while (privileged(b, VELO_DIMMNET_PRIVILEGED_RECEIVED) <
                   model_.boards[b].counters.received) {
                clocks(50);
                expect(false);
            }
        // Until nothing has moved for longer than LiteDRAM keeps a write.
        for (unsigned quiet = 0; quiet < 200; clock()) {
            quiet = top_->quiet_o[0] && top_->quiet_o[1] ? quiet + 1 : 0;
            expect(false);
        }
    }

    void compare()
    {
        for (unsigned b = 0; b < 2; b++) {
            for (unsigned w = 0; w < kProcesses; w++)
                compare(b, model_.boards[b].processes[w]);
            // Beside the regions nothing was written.
            for (unsigned i = 1; i <= 64; i++)
                if (has_cell(b, region_first(0) - i) ||
                    has_cell(b, region_first(kProcesses) + i - 1))
                    fail("a write outside all regions");
            compare_counters(b);
        }
    }

    void compare(unsigned b, const Process &p)
    {
        auto same = [&](const char *memory, unsigned word, uint64_t there, uint64_t wanted) {
            if (there == wanted)
                return;
            char text[160];
            std::snprintf(text, sizeof text,
                          "round %u, board %u, process %u: %s word %u is %016llx, not %016llx",
                          rounds_, b, p.wid, memory, word, static_cast<unsigned long long>(there),
                          static_cast<unsigned long long>(wanted));
            fail(text);
        };
        for (unsigned i = 0; i < kPrefetch; i++)
            same("Prefetch Window", i, prefetch_word(b, p.wid, i), p.prefetch[i]);
        for (unsigned i = 0; i < kRing; i++)
            same("LLCM", i, llcm_word(b, p.wid, i), p.llcm[i]);
        for (unsigned i = 0; i < kRegion; i++)
            same("SO-DIMM", i, cell(b, region_first(p.wid) + i), p.sodimm[i]);
        // The host sees the same.
        for (unsigned i = 0; i < 4; i++) {
            const unsigned at = random_.below(kPrefetch), word = random_.below(kRing);
            same("host's Prefetch Window", at, read(b, slot(kPrefetchPage, p.wid, at)),
                 p.prefetch[at]);
            same("host's LLCM", word, read(b, slot(kLlcmPage, p.wid, word)), p.llcm[word]);
        }
        auto reg = [&](unsigned word) { return read(b, slot(kRegisterPage, p.wid, word)); };
        same("status_write", 0, reg(VELO_DIMMNET_REGISTER_STATUS_WRITE), p.status_count);
        same("done", 0, reg(VELO_DIMMNET_REGISTER_DONE), p.done);
        same("error", 0, reg(VELO_DIMMNET_REGISTER_ERROR), static_cast<uint64_t>(p.error));
        for (const auto &[stream, left] : p.statuses)
            if (!left.empty())
                fail("statuses that did not come");
    }

    void compare_counters(unsigned b)
    {
        const Counters &c = model_.boards[b].counters;
        const struct {
            const char *name;
            unsigned word;
            uint32_t wanted;
        } all[] = {
            {"dropped_pgid", VELO_DIMMNET_PRIVILEGED_DROPPED_PGID, c.pgid},
            {"dropped_malformed", VELO_DIMMNET_PRIVILEGED_DROPPED_MALFORMED, c.malformed},
            {"dropped_bounds", VELO_DIMMNET_PRIVILEGED_DROPPED_BOUNDS, c.bounds},
            {"dropped_status", VELO_DIMMNET_PRIVILEGED_DROPPED_STATUS, 0},
            {"dropped_busy", VELO_DIMMNET_PRIVILEGED_DROPPED_BUSY, 0},
            {"refused", VELO_DIMMNET_PRIVILEGED_REFUSED, c.refused},
            {"received", VELO_DIMMNET_PRIVILEGED_RECEIVED, c.received},
            {"sent", VELO_DIMMNET_PRIVILEGED_SENT, c.sent},
            {"peers_failed", VELO_DIMMNET_PRIVILEGED_PEERS_FAILED, 0},
            {"network_unreachable", VELO_DIMMNET_PRIVILEGED_NETWORK_UNREACHABLE, c.unreachable},
            {"network_gave_up", VELO_DIMMNET_PRIVILEGED_NETWORK_GAVE_UP, 0},
        };
        for (const auto &one : all) {
            const uint32_t there = privileged(b, one.word);
            if (there != one.wanted)
                fail("board " + std::to_string(b) + ": " + one.name + " is " +
                     std::to_string(there) + ", not " + std::to_string(one.wanted));
        }
    }

    void report(double seconds)
    {
        uint32_t crc = 0, malformed = 0, duplicate = 0, repeated = 0, no_room = 0;
        Counters all;
        for (unsigned b = 0; b < 2; b++) {
            crc += privileged(b, VELO_DIMMNET_PRIVILEGED_NETWORK_CRC);
            malformed += privileged(b, VELO_DIMMNET_PRIVILEGED_NETWORK_MALFORMED);
            duplicate += privileged(b, VELO_DIMMNET_PRIVILEGED_NETWORK_DUPLICATE);
            repeated += privileged(b, VELO_DIMMNET_PRIVILEGED_NETWORK_REPEATED);
            no_room += privileged(b, VELO_DIMMNET_PRIVILEGED_NETWORK_NO_ROOM);
            const Counters &c = model_.boards[b].counters;
            all.pgid += c.pgid;
            all.malformed += c.malformed;
            all.bounds += c.bounds;
            all.refused += c.refused;
            all.unreachable += c.unreachable;
            for (unsigned kind = kWriteKind; kind <= kAnswerKind; kind++)
                for (unsigned access = 0; access < 3; access++)
                    all.done[kind][access] += c.done[kind][access];
        }
        std::printf("{");
        const char *const kinds[] = {"", "writes", "reads", "answers"};
        for (unsigned kind = kWriteKind; kind <= kAnswerKind; kind++)
            std::printf("\"%s\": [%u, %u, %u], ", kinds[kind], all.done[kind][kPlain],
                        all.done[kind][kStrided], all.done[kind][kList]);
        std::printf("\"packets\": %llu, \"rounds\": %u, \"cycles\": %llu, \"words\": %llu, "
                    "\"rate\": %g, \"damaged_words\": %llu, \"dropped_pgid\": %u, "
                    "\"dropped_malformed\": %u, \"dropped_bounds\": %u, \"refused\": %u, "
                    "\"unreachable\": %u, \"crc\": %u, \"network_malformed\": %u, "
                    "\"duplicate\": %u, \"repeated\": %u, \"no_room\": %u, \"seconds\": %.0f}\n",
                    static_cast<unsigned long long>(sent()), rounds_,
                    static_cast<unsigned long long>(cycles_),
                    static_cast<unsigned long long>(words_), settings_.rate,
                    static_cast<unsigned long long>(damaged_), all.pgid, all.malformed, all.bounds,
                    all.refused, all.unreachable, crc, malformed, duplicate, repeated, no_room,
                    seconds);
        if (damaged_ > 20 && !(crc + malformed))
            fail("damage was not noticed");
        if (damaged_ > 20 && !repeated)
            fail("nothing was repeated");
    }

    // ----- behind the boards' backs
    // ---------------------------------------------------------------

    uint64_t prefetch_word(unsigned b, unsigned w, unsigned i)
    {
        const auto &mem =
            b ? top_->rootp->CORE(1, u_prefetch_window) : top_->rootp->CORE(0, u_prefetch_window);
        return half(mem[(w * kPrefetch + i) / 2], i % 2);
    }
    uint64_t llcm_word(unsigned b, unsigned w, unsigned i)
    {
        const auto &mem = b ? top_->rootp->CORE(1, u_llcm) : top_->rootp->CORE(0, u_llcm);
        return half(mem[(w * VELO_DIMMNET_LLCM_WORDS + i) / 2], i % 2);
    }
    auto &cells(unsigned b, uint32_t word)
    {
        auto &root = *top_->rootp;
        const bool upper = word >> 25;
        return b       ? upper ? root.CELLS(1, 1) : root.CELLS(1, 0)
                     : upper ? root.CELLS(0, 1)
                       : root.CELLS(0, 0);
    }
    static uint32_t cell_of(uint32_t word) { return (word & ((1U << 25) - 1)) / 2; }
    bool has_cell(unsigned b, uint32_t word) { return cells(b, word).exists(cell_of(word)); }
    uint64_t cell(unsigned b, uint32_t word)
    {
        return half(cells(b, word).at(cell_of(word)), word % 2);
    }
    void set_cell(unsigned b, uint32_t word, uint64_t value)
    {
        auto &row = cells(b, word).at(cell_of(word));
        row[2 * (word % 2)] = static_cast<EData>(value);
        row[2 * (word % 2) + 1] = static_cast<EData>(value >> 32);
    }

    Settings settings_;
    Random random_;
    VerilatedContext context_;
    std::unique_ptr<Vdimmnet_board_pair> top_;
    Model model_;
    Plan plan_;
    std::vector<std::unique_ptr<SlotBus>> buses_;
    std::vector<std::unique_ptr<Host>> hosts_;
    std::function<Host *(unsigned, unsigned)> host_;
    uint64_t to_error_[2] = {};
    bool hit_[2] = {};
    uint64_t cycles_ = 0, damaged_ = 0, words_ = 0;
    unsigned rounds_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    Settings settings;
    for (const auto &[name, value] : bench::options_of(argc, argv, 1)) {
        if (name == "--packets")
            settings.packets = bench::count<uint64_t>(value);
        else if (name == "--rate")
            settings.rate = bench::real(value);
        else if (name == "--words")
            settings.words = bench::number<unsigned>(value);
        else if (name == "--seed")
            settings.seed = bench::number<uint64_t>(value);
        else
            fail("no such option: " + name);
    }
    if (settings.words < 4 || settings.words > kPayload)
        fail("packets have 4 to 62 words of payload");
    Bench(settings).run();
    return 0;
}
