// SPDX-License-Identifier: Apache-2.0
//
// CoreLogic of DIMMnet-2 in the custom slot of whole nodes (hosts.h), beside VELO and RMA.
//
//   dimmnet_slot_bench TOPOLOGY [ROUNDS [SEED]]   test
//   dimmnet_slot_bench TOPOLOGY --measure         cycles of one packet of 16 bytes
//
// Each node has two processes. A process that sends has one operation at a time: BOTF of 2 to 62
// words, put or get, in all orders of access, to any process of any node. A process that receives
// takes each status out of its ring, once, and looks at the data that it announces; in the end all
// of each node's SO-DIMM is compared. Messages of VELO (hosts.h) and operations of RMA
// (rma_model.h), which check themselves, go on beside. Before that: each length, packets that have
// to be dropped and counted, and a receiver that does not take statuses while the other units go
// on. Prints JSON. One seed makes one run.

#include <coroutine>
#include <cstring>

#include "Vvelo_node_flat__Syms.h"
#include "Vvelo_node_flat___024root.h"
#include "hosts.h"
#include "rma_model.h"
#include "velo/dimmnet_spec.h"

namespace
{

using bench::fail;
using Words = std::vector<uint64_t>;

constexpr unsigned kProcesses = VELO_DIMMNET_PROCESSES;
constexpr uint64_t kSodimm = 0x80000000, kRegCustomSetting = 0x30, kRegCustomStatus = 0x38,
                   kRegDropped = 0x58;
// A process's region, in words: a part for each sender, one for what it gets, one that is only
// read.
constexpr uint32_t kRegion = 32768, kPart = 2048, kOwn = 16384, kOwnWords = 8192, kSource = 24576,
                   kSourceWords = 8192;
constexpr uint32_t kLists = 2048, kListWords = 512; // in LLCM
constexpr uint64_t kPgid = 0x4711, kHangCycles = 60000;
constexpr unsigned kRing = VELO_DIMMNET_STATUS_ENTRIES;

// A wire of the node's unit, see dimmnet_slot.vlt.
#define DIMMNET_UNIT(name)                                                                         \
    u_core__DOT__u_units__DOT__u_custom__DOT__gen_unit__DOT__gen_dimmnet__DOT__u_unit__DOT__##name

// An actor of the test: goes on in each cycle, up to its next co_await.
struct Task {
    struct promise_type {
        Task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};
constexpr std::suspend_always kCycle;

// Words of a SO-DIMM in the order of an access.
struct Access {
    unsigned kind = VELO_DIMMNET_ACCESS_CONTIGUOUS, element = 1;
    uint32_t first = 0, step = 0;
    std::vector<uint32_t> offsets; // of a list's elements

    uint32_t word(uint32_t i) const
    {
        if (kind == VELO_DIMMNET_ACCESS_CONTIGUOUS)
            return first + i;
        uint32_t at = kind == VELO_DIMMNET_ACCESS_LIST ? offsets[i / element] : i / element * step;
        return first + at + i % element;
    }
};

struct Expected {
    unsigned kind, memory, tag, from; // as in the status; `from`: node and process
    Access to;
    Words words;
    bool *come;
};

struct Process {
    std::deque<Expected> expected;
    uint32_t taken = 0; // statuses
    bool paused = false;
    uint32_t commands = 0; // made
    uint8_t tag = 0;
};

class Bench
{
  public:
    Bench(const char *topology, uint64_t seed)
        : hosts_(topology, 24, seed), count_(static_cast<unsigned>(hosts_.nodes().size())),
          processes_(count_ * kProcesses), shadow_(count_),
          rma_(
              hosts_.random(), 1500,
              [this](unsigned n, uint64_t place, uint64_t value) {
                  hosts_.set_register(n, place, value);
              },
              [this](unsigned n, uint64_t place) { return hosts_.read_register(n, place); },
              [this](unsigned n, uint64_t addr, Words words) {
                  hosts_.nodes()[n].units.writes.push_back({addr, std::move(words)});
              })
    {
        hosts_.on_answer = [this](unsigned n, unsigned tag, bool error, const Words &words) {
            answers_[n << 8 | tag] = error ? Words{} : words;
        };
        hosts_.on_write = [this](unsigned n, uint64_t addr) { rma_.wrote(n, addr); };
        std::vector<bench::Memory *> memories;
        for (auto &node : hosts_.nodes())
            memories.push_back(&node.memory);
        rma_.start(memories);
        for (unsigned n = 0; n < count_; n++)
            set_up(n);
        run_until([this] { return idle(); });
    }

    void test(unsigned rounds)
    {
        for (unsigned p = 0; p < processes_.size(); p++)
            tasks_.push_back(collect(p));
        lengths();
        dropped();
        back_pressure();
        std::vector<Task> senders;
        unsigned going = static_cast<unsigned>(processes_.size());
        for (unsigned p = 0; p < processes_.size(); p++)
            tasks_.push_back(send_some(p, rounds, &going));
        uint64_t messages = hosts_.received();
        traffic_ = true;
        run_until([&] { return !going; }, kHangCycles + 20000 * rounds);
        traffic_ = false;
        run_until([this] { return idle() && !hosts_.awaited() && !rma_.busy(); });
        messages = hosts_.received() - messages;
        if (rounds >= 5 && (messages < rounds || rma_.done() < rounds))
            fail("hardly any traffic beside");
        finish();
        std::printf("{\"commands\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"messages\": %" PRIu64
                    ", \"rma\": %" PRIu64 ", \"cycles\": %" PRIu64 "}\n",
                    commands_, packets_, messages, rma_.done(), hosts_.cycle());
    }

    // A BOTF packet of 16 bytes on idle nodes, as the paper measures it.
    void measure()
    {
        bool come = false;
        Words two = some_words(2);
        uint32_t address = place(0, VELO_DIMMNET_MEMORY_PREFETCH);
        store_all(0, page(0, VELO_DIMMNET_PAGE_WRITE, 0),
                  packet(2, VELO_DIMMNET_MEMORY_PREFETCH, address, two, 1));
        quiet();
        expect(2, {VELO_DIMMNET_KIND_WRITE,
                   VELO_DIMMNET_MEMORY_PREFETCH,
                   1,
                   0,
                   {.first = address},
                   two,
                   &come});
        uint64_t began = hosts_.cycle(), left = 0, arrived = 0, told = 0;
        command(0, VELO_DIMMNET_REGISTER_BOTF, {velo_dimmnet_botf_pack(0, 0, 4)});
        const auto &from = *hosts_.nodes()[0].top->rootp->__PVT__velo_node_flat__DOT__u_node;
        const auto &to = *hosts_.nodes()[1].top->rootp->__PVT__velo_node_flat__DOT__u_node;
        for (unsigned i = 0; i < 200 && !told; i++) {
            step();
            // The signals seen now are those of the cycle that begins.
            uint64_t cycle = hosts_.cycle();
            if (from.DIMMNET_UNIT(u_send__DOT__net_valid_o) &&
                from.DIMMNET_UNIT(u_send__DOT__net_eop_o))
                left = cycle;
            if (!arrived && to.DIMMNET_UNIT(u_receive__DOT__net_valid_i))
                arrived = cycle;
            if (to.DIMMNET_UNIT(u_core__DOT__u_register__DOT__status_write_o))
                told = cycle;
        }
        if (!left || !arrived || !told)
            fail("the packet did not come");
        for (unsigned p = 0; p < processes_.size(); p++)
            tasks_.push_back(collect(p));
        run_until([&] { return come; });
        std::printf("{\"dimmnet_slot_send_cycles\": %" PRIu64
                    ", \"dimmnet_slot_receive_cycles\": %" PRIu64
                    ", \"dimmnet_slot_host_cycles\": %" PRIu64 "}\n",
                    left - began, told - arrived, told - began);
    }

  private:
    bench::Hosts hosts_;
    unsigned count_;
    std::vector<Process> processes_;
    std::vector<std::map<uint32_t, uint64_t>> shadow_; // of a node's SO-DIMM, what must be there
    bench::RmaModel rma_;
    std::map<unsigned, Words> answers_; // by node and tag; empty: refused
    std::vector<Task> tasks_;
    bool traffic_ = false;
    uint64_t commands_ = 0, packets_ = 0;
    std::map<unsigned, uint64_t>
        dropped_; // by node and privileged register: what has to be counted

    bench::Random &random() { return hosts_.random(); }
    static unsigned node_of(unsigned p) { return p / kProcesses; }
    static unsigned wid_of(unsigned p) { return p % kProcesses; }
    static uint16_t lid_of(unsigned n)
    {
        return static_cast<uint16_t>(VELO_DIMMNET_LID_OF_NODE + n);
    }
    static uint32_t region_of(unsigned p) { return wid_of(p) * kRegion; }

    // ----- time ---------------------------------------------------------------------------------

    void step()
    {
        for (unsigned n = 0; traffic_ && n < count_; n++) {
            if (hosts_.nodes()[n].units.writes.size() > 3)
                continue;
            if (!random().below(20))
                hosts_.send(n, random().below(count_));
            if (!random().below(60))
                rma_.act(n);
        }
        for (unsigned n = 0; n < count_; n++)
            for (unsigned c = 0; c < bench::RmaModel::kContexts; c++)
                if (!random().below(4))
                    rma_.poll(n, c);
        for (auto &node : hosts_.nodes())
            node.dma_pace = hosts_.cycle() / 512 % 3 + 1;
        hosts_.step();
        for (size_t i = 0; i < tasks_.size();) {
            tasks_[i].handle.resume();
            if (tasks_[i].handle.done()) {
                tasks_[i].handle.destroy();
                tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
                i++;
            }
        }
    }

    template <typename Condition> void run_until(Condition condition, uint64_t cycles = kHangCycles)
    {
        for (uint64_t end = hosts_.cycle() + cycles; !condition();) {
            step();
            if (hosts_.cycle() > end)
                fail("something never ends, cycle " + std::to_string(hosts_.cycle()));
        }
    }
    void steps(unsigned cycles)
    {
        for (unsigned i = 0; i < cycles; i++)
            step();
    }

    bool idle() const
    {
        for (const Process &process : processes_)
            if (!process.expected.empty())
                return false;
        for (const auto &node : const_cast<Bench *>(this)->hosts_.nodes())
            if (!node.units.writes.empty() || !node.control.writes.empty() || !node.loads.empty())
                return false;
        return true;
    }

    // ----- the slot -----------------------------------------------------------------------------

    static uint64_t window(uint64_t slot)
    {
        return velo_window_pack(static_cast<uint32_t>(slot), 0, VELO_UNIT_CUSTOM);
    }
    static uint64_t page(unsigned p, unsigned kind, uint32_t word)
    {
        return velo_dimmnet_slot_pack(0, static_cast<uint8_t>(kind),
                                      static_cast<uint8_t>(wid_of(p)), 0) +
               8 * word;
    }
    static uint64_t privileged(unsigned reg)
    {
        return velo_dimmnet_slot_pack(static_cast<uint16_t>(8 * reg), 0, 0, 1);
    }

    void store(unsigned n, uint64_t slot, Words words)
    {
        hosts_.nodes()[n].units.writes.push_back({window(slot), std::move(words)});
    }
    // A window or list, as bursts of any length.
    void store_all(unsigned n, uint64_t slot, const Words &words)
    {
        for (size_t i = 0; i < words.size();) {
            size_t some = std::min<size_t>(1 + random().below(8), words.size() - i);
            auto from = words.begin() + static_cast<std::ptrdiff_t>(i);
            store(n, slot + 8 * i, Words(from, from + static_cast<std::ptrdiff_t>(some)));
            i += some;
        }
    }
    void ask(unsigned n, unsigned tag, uint64_t slot, unsigned words)
    {
        answers_.erase(n << 8 | tag);
        hosts_.nodes()[n].loads.push_back({window(slot), 8 * words, tag});
    }
    bool answered(unsigned n, unsigned tag) const { return answers_.count(n << 8 | tag); }
    const Words &answer(unsigned n, unsigned tag, unsigned words)
    {
        Words &got = answers_[n << 8 | tag];
        if (bench::kWidth > 64 && got.size() == words + words % 2)
            got.resize(words); // The last half is padding.
        if (got.size() != words)
            fail("a load of " + std::to_string(words) + " words got " + std::to_string(got.size()));
        return got;
    }
    uint64_t load(unsigned n, uint64_t slot)
    {
        ask(n, 99, slot, 1);
        run_until([&] { return answered(n, 99); });
        return answer(n, 99, 1)[0];
    }
    bool is_refused(unsigned n, uint64_t slot, unsigned len_bytes)
    {
        answers_.erase(n << 8 | 98);
        hosts_.nodes()[n].loads.push_back({window(slot), len_bytes, 98});
        run_until([&] { return answered(n, 98); });
        return answers_[n << 8 | 98].empty();
    }

    void set_up(unsigned n)
    {
        hosts_.set_register(n, kRegCustomSetting, kSodimm | 1);
        store(n, privileged(VELO_DIMMNET_PRIVILEGED_LID), {lid_of(n)});
        store(n, privileged(VELO_DIMMNET_PRIVILEGED_PATIENCE), {0xFFFFF});
        for (unsigned w = 0; w < kProcesses; w++) {
            unsigned first = VELO_DIMMNET_PRIVILEGED_PROCESS + 8 * w;
            store(n, privileged(first + 1), {w * kRegion});
            store(n, privileged(first + 2), {kRegion});
            identify(n, w, kPgid);
            for (uint32_t i = 0; i < kRegion; i++)
                set_sodimm(n, w * kRegion + i, i < kSource ? 0 : random().next());
        }
    }
    void identify(unsigned n, unsigned w, uint64_t pgid)
    {
        store(n, privileged(VELO_DIMMNET_PRIVILEGED_PROCESS + 8 * w),
              {velo_dimmnet_identity_pack(static_cast<uint16_t>(pgid), 0, 1, 0)});
    }
    void set_sodimm(unsigned n, uint32_t word, uint64_t value)
    {
        hosts_.nodes()[n].memory.set_word(kSodimm + 8ULL * word, value);
        shadow_[n][word] = value;
    }
    bool is_in_sodimm(unsigned n, uint32_t word, uint64_t value)
    {
        return hosts_.nodes()[n].memory.word(kSodimm + 8ULL * word) == value;
    }

    // ----- commands -----------------------------------------------------------------------------

    // What the peer must get, and a status of it.
    void expect(unsigned at, Expected what)
    {
        if (what.memory == VELO_DIMMNET_MEMORY_SODIMM)
            for (uint32_t i = 0; i < what.words.size(); i++)
                shadow_[node_of(at)][region_of(at) + what.to.word(i)] = what.words[i];
        processes_[at].expected.push_back(std::move(what));
    }

    // Where sender p puts something in process `to`.
    uint32_t place(unsigned p, unsigned memory) const
    {
        unsigned parts = static_cast<unsigned>(processes_.size());
        return memory == VELO_DIMMNET_MEMORY_SODIMM     ? p * kPart
               : memory == VELO_DIMMNET_MEMORY_PREFETCH ? p * (256 / parts)
                                                        : p * (kLists / parts);
    }

    Words packet(unsigned to, unsigned memory, uint32_t address, const Words &payload, uint8_t tag,
                 bool status = true)
    {
        // What the controller puts right is anything.
        auto any = static_cast<uint16_t>(random().next());
        Words words{velo_dimmnet_packet_word0_pack(
                        VELO_DIMMNET_KIND_WRITE, static_cast<uint8_t>(memory),
                        VELO_DIMMNET_ACCESS_CONTIGUOUS, status, any & 127,
                        static_cast<uint8_t>(wid_of(to)), any & 15, lid_of(node_of(to)), any),
                    velo_dimmnet_packet_word1_pack(any, tag, address)};
        words.insert(words.end(), payload.begin(), payload.end());
        return words;
    }
    void botf(unsigned p, const Words &packet, unsigned window_number = 0, unsigned first = 0)
    {
        store_all(
            node_of(p),
            page(p, VELO_DIMMNET_PAGE_WRITE, window_number * VELO_DIMMNET_WINDOW_WORDS + first),
            packet);
        command(p, VELO_DIMMNET_REGISTER_BOTF,
                {velo_dimmnet_botf_pack(static_cast<uint8_t>(window_number),
                                        static_cast<uint8_t>(first),
                                        static_cast<uint8_t>(packet.size()))});
    }
    void command(unsigned p, unsigned reg, Words words)
    {
        store(node_of(p), page(p, VELO_DIMMNET_PAGE_REGISTER, reg), std::move(words));
        processes_[p].commands++;
        commands_++;
    }
    Words some_words(size_t count)
    {
        Words words(count);
        for (uint64_t &word : words)
            word = random().next();
        return words;
    }

    // A random order of `count` elements inside so many words from `first` on.
    Access some_access(uint32_t first, uint32_t room, unsigned element, unsigned count, bool lists)
    {
        Access access;
        access.first = first;
        access.kind = random().below(lists ? 3 : 2);
        access.element = element;
        uint32_t step = element + random().below(room / count - element + 1);
        access.step = step;
        if (access.kind == VELO_DIMMNET_ACCESS_LIST) {
            for (unsigned i = 0; i < count; i++)
                access.offsets.push_back(i * step);
            for (unsigned i = count; i > 1; i--)
                std::swap(access.offsets[i - 1], access.offsets[random().below(i)]);
        }
        return access;
    }
    void store_pattern(unsigned p, unsigned reg, uint32_t list, Access &access)
    {
        if (access.kind == VELO_DIMMNET_ACCESS_CONTIGUOUS)
            return;
        Words words((access.offsets.size() + 1) / 2);
        for (size_t i = 0; i < access.offsets.size(); i++)
            words[i / 2] |= uint64_t{access.offsets[i]} << 32 * (i % 2);
        store_all(node_of(p), page(p, VELO_DIMMNET_PAGE_LLCM, list), words);
        bool listed = access.kind == VELO_DIMMNET_ACCESS_LIST;
        store(node_of(p), page(p, VELO_DIMMNET_PAGE_REGISTER, reg),
              {velo_dimmnet_pattern_pack(static_cast<uint8_t>(access.element), 0,
                                         listed ? list : access.step)});
    }

    Task send_some(unsigned p, unsigned rounds, unsigned *going)
    {
        for (unsigned i = 0; i < rounds; i++) {
            unsigned to = random().below(static_cast<uint32_t>(processes_.size()));
            auto tag = processes_[p].tag++;
            bool come = false;
            if (random().below(2)) {
                start_botf(p, to, random().below(3), 2 + random().below(61), tag, &come);
            } else {
                start_transfer(p, to, tag, &come);
            }
            while (!come)
                co_await kCycle;
        }
        --*going;
    }

    void start_botf(unsigned p, unsigned to, unsigned memory, unsigned count, uint8_t tag,
                    bool *come)
    {
        unsigned parts = static_cast<unsigned>(processes_.size());
        if (memory == VELO_DIMMNET_MEMORY_PREFETCH)
            count = std::min(count, 256 / parts);
        Words words = some_words(count);
        uint32_t address = place(p, memory);
        expect(to, {VELO_DIMMNET_KIND_WRITE, memory, tag, p, {.first = address}, words, come});
        unsigned first = random().below(63 - count);
        botf(p, packet(to, memory, address, words, tag), random().below(2), first);
    }

    // A put, or a get.
    void start_transfer(unsigned p, unsigned to, uint8_t tag, bool *come)
    {
        unsigned parts = static_cast<unsigned>(processes_.size());
        bool get = random().below(2), near = random().below(3) == 0; // into Prefetch Windows
        unsigned element = 1 + random().below(near ? 8 : 32);
        uint32_t most = near ? 256 / parts : 600;
        unsigned count = 1 + random().below(most / element);
        unsigned source = get ? to : p, target = get ? p : to;
        Access from = some_access(kSource, kSourceWords, element, count, true), into;
        unsigned memory = near ? VELO_DIMMNET_MEMORY_PREFETCH : VELO_DIMMNET_MEMORY_SODIMM;
        if (near)
            into.first = place(p, memory);
        else if (get)
            into = some_access(kOwn, kOwnWords, element, count, false);
        else
            into = some_access(place(p, memory), kPart, element, count, true);
        Words words;
        for (uint32_t i = 0; i < element * count; i++)
            words.push_back(shadow_[node_of(source)][region_of(source) + from.word(i)]);
        Access &local = get ? into : from, &remote = get ? from : into;
        store_pattern(p, VELO_DIMMNET_REGISTER_PATTERN_LOCAL, kLists, local);
        store_pattern(p, VELO_DIMMNET_REGISTER_PATTERN_REMOTE, kLists + kListWords, remote);
        expect(target, {get ? VELO_DIMMNET_KIND_ANSWER : VELO_DIMMNET_KIND_WRITE, memory, tag,
                        get ? to : p, into, words, come});
        auto code = static_cast<uint8_t>(memory);
        command(p, VELO_DIMMNET_REGISTER_COMMAND_0,
                {velo_dimmnet_command_word0_pack(
                     get ? VELO_DIMMNET_OP_GET : VELO_DIMMNET_OP_PUT, get ? code : 0,
                     get ? 0 : code, static_cast<uint8_t>(local.kind),
                     static_cast<uint8_t>(remote.kind), 1, static_cast<uint8_t>(wid_of(to)), tag,
                     static_cast<uint32_t>(element * count), lid_of(node_of(to))),
                 velo_dimmnet_command_word1_pack(local.first, remote.first)});
    }

    // ----- statuses -----------------------------------------------------------------------------

    Task collect(unsigned p)
    {
        Process &process = processes_[p];
        unsigned n = node_of(p), tag = wid_of(p);
        for (;;) {
            while (process.paused)
                co_await kCycle;
            ask(n, tag, page(p, VELO_DIMMNET_PAGE_REGISTER, VELO_DIMMNET_REGISTER_STATUS_WRITE), 1);
            while (!answered(n, tag))
                co_await kCycle;
            auto written = static_cast<uint32_t>(answer(n, tag, 1)[0]);
            if (written - process.taken > kRing)
                fail("process " + std::to_string(p) + " has " + std::to_string(written) +
                     " statuses and took " + std::to_string(process.taken));
            while (process.taken != written) {
                ask(n, tag,
                    page(p, VELO_DIMMNET_PAGE_LLCM,
                         VELO_DIMMNET_STATUS_LLCM_WORD + process.taken % kRing),
                    1);
                while (!answered(n, tag))
                    co_await kCycle;
                Expected what = match(p, answer(n, tag, 1)[0]);
                process.taken++;
                if (what.memory == VELO_DIMMNET_MEMORY_SODIMM) {
                    // The last write may be on its way to host memory.
                    for (unsigned i = 0; i < 2000 && !in_memory(p, what); i++)
                        co_await kCycle;
                    if (!in_memory(p, what))
                        fail("data of a status is not in SO-DIMM");
                } else {
                    bool near = what.memory == VELO_DIMMNET_MEMORY_PREFETCH;
                    auto count = static_cast<unsigned>(what.words.size());
                    for (unsigned i = 0; i < count;) {
                        unsigned some = std::min(64U, count - i);
                        ask(n, tag,
                            page(p, near ? VELO_DIMMNET_PAGE_PREFETCH : VELO_DIMMNET_PAGE_LLCM,
                                 what.to.first + i),
                            some);
                        while (!answered(n, tag))
                            co_await kCycle;
                        const Words &got = answer(n, tag, some);
                        if (!std::equal(got.begin(), got.end(),
                                        what.words.begin() + static_cast<std::ptrdiff_t>(i)))
                            fail("data of a status is not in the Prefetch Window or LLCM");
                        i += some;
                    }
                }
                if (what.come)
                    *what.come = true;
            }
            store(n, page(p, VELO_DIMMNET_PAGE_REGISTER, VELO_DIMMNET_REGISTER_STATUS_READ),
                  {process.taken});
            for (unsigned i = random().below(40); i > 0; i--)
                co_await kCycle;
        }
    }

    Expected match(unsigned p, uint64_t status)
    {
        unsigned node = velo_dimmnet_status_src_lid(status) - VELO_DIMMNET_LID_OF_NODE;
        unsigned from = node * kProcesses + velo_dimmnet_status_src_wid(status);
        auto &expected = processes_[p].expected;
        for (auto it = expected.begin(); it != expected.end(); ++it) {
            // Of one sender in order.
            if (it->from != from || it->kind != velo_dimmnet_status_kind(status))
                continue;
            if (it->tag != velo_dimmnet_status_tag(status) ||
                it->memory != velo_dimmnet_status_memory(status))
                break;
            Expected what = std::move(*it);
            expected.erase(it);
            return what;
        }
        fail("a status that nobody waits for, or twice, or out of order");
    }
    bool in_memory(unsigned p, const Expected &what)
    {
        for (uint32_t i = 0; i < what.words.size(); i++)
            if (!is_in_sodimm(node_of(p), region_of(p) + what.to.word(i), what.words[i]))
                return false;
        return true;
    }

    // ----- one after the other
    // --------------------------------------------------------------------

    void lengths()
    {
        // BOTF of 16 to 496 bytes.
        for (unsigned count = 2; count <= VELO_DIMMNET_PAYLOAD_WORDS_MAX; count++) {
            bool come = false;
            unsigned p = count % processes_.size();
            start_botf(p, (p + kProcesses) % processes_.size(), count % 2 ? 0 : 2, count,
                       processes_[p].tag++, &come);
            run_until([&] { return come; });
        }
        // Accesses that are none, and what reads in one go.
        store(0, page(0, VELO_DIMMNET_PAGE_LLCM, 0) + 4, {1});
        store(0, page(0, VELO_DIMMNET_PAGE_LLCM, 511), {1, 2});
        store(0, 1U << 21, {1});
        run_until([this] { return idle(); });
        if (!is_refused(0, page(0, VELO_DIMMNET_PAGE_LLCM, 0) + 4, 8) ||
            !is_refused(0, page(0, VELO_DIMMNET_PAGE_LLCM, 0), 12) ||
            !is_refused(0, page(0, VELO_DIMMNET_PAGE_LLCM, 511), 16) ||
            !is_refused(0, page(0, VELO_DIMMNET_PAGE_LLCM, 0), 520) ||
            !is_refused(0, 1U << 21, 8) || is_refused(0, page(0, VELO_DIMMNET_PAGE_LLCM, 448), 512))
            fail("loads that are none were not refused, or one that is good");
        if (hosts_.read_register(0, kRegCustomStatus) != 8)
            fail("refused accesses were not counted");
    }

    void is_counted(unsigned n, unsigned reg, uint64_t more)
    {
        dropped_[n << 8 | reg] += more;
        if (load(n, privileged(reg)) != dropped_[n << 8 | reg])
            fail("privileged register " + std::to_string(reg) + " of node " + std::to_string(n) +
                 " counted " + std::to_string(load(n, privileged(reg))));
    }
    void quiet()
    {
        run_until([this] { return idle(); });
        steps(400);
    }

    // What must not arrive: nobody waits for a status, so one would end the run.
    void dropped()
    {
        Words two{0xbad, 0xbad};
        // Another group. A process with a new identity begins anew.
        processes_[1].paused = true;
        quiet();
        identify(0, 1, kPgid + 1);
        botf(1, packet(3, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0));
        quiet();
        is_counted(1, VELO_DIMMNET_PRIVILEGED_DROPPED_PGID, 1);
        identify(0, 1, kPgid);
        quiet();
        processes_[1].taken = processes_[1].commands = 0;
        processes_[1].paused = false;
        // Of no node: no such LIDs.
        for (uint64_t lid : {0x0001, 0x0201, 0xFF01}) {
            Words words = packet(2, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0);
            words[0] = (words[0] & ~VELO_DIMMNET_PACKET_DST_LID_MASK) |
                       lid << VELO_DIMMNET_PACKET_DST_LID_LSB;
            botf(0, words);
            quiet();
            is_counted(0, VELO_DIMMNET_PRIVILEGED_NETWORK_UNREACHABLE, 1);
        }
        // The board has another LID than its node.
        store(0, privileged(VELO_DIMMNET_PRIVILEGED_LID), {lid_of(7)});
        botf(0, packet(2, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0));
        quiet();
        is_counted(0, VELO_DIMMNET_PRIVILEGED_NETWORK_UNREACHABLE, 1);
        store(0, privileged(VELO_DIMMNET_PRIVILEGED_LID), {lid_of(0)});
        // The sender stops the peer; then the receiver does.
        store(0, privileged(VELO_DIMMNET_PRIVILEGED_PEERS_STOP), {1 << 1});
        botf(0, packet(2, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0));
        quiet();
        is_counted(0, VELO_DIMMNET_PRIVILEGED_NETWORK_UNREACHABLE, 1);
        if (load(0, privileged(VELO_DIMMNET_PRIVILEGED_PEERS_OFF)) != 1 << 1)
            fail("a stopped peer is not off");
        store(0, privileged(VELO_DIMMNET_PRIVILEGED_PEERS_STOP), {0});
        store(1, privileged(VELO_DIMMNET_PRIVILEGED_PEERS_STOP), {1 << 0});
        quiet();
        botf(0, packet(2, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0));
        quiet();
        is_counted(1, VELO_DIMMNET_PRIVILEGED_NETWORK_FOREIGN, 1);
        store(1, privileged(VELO_DIMMNET_PRIVILEGED_PEERS_STOP), {0});
        // A unit that is not enabled.
        hosts_.set_register(1, kRegCustomSetting, kSodimm);
        quiet();
        botf(0, packet(2, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0));
        botf(2, packet(0, VELO_DIMMNET_MEMORY_SODIMM, 64, two, 0));
        quiet();
        is_counted(1, VELO_DIMMNET_PRIVILEGED_NETWORK_FOREIGN, 1);
        is_counted(1, VELO_DIMMNET_PRIVILEGED_NETWORK_UNREACHABLE, 1);
        hosts_.set_register(1, kRegCustomSetting, kSodimm | 1);
        quiet();
    }

    uint64_t commands_done(unsigned p)
    {
        return load(node_of(p), page(p, VELO_DIMMNET_PAGE_REGISTER, VELO_DIMMNET_REGISTER_DONE));
    }

    // Process 2, of node 1, takes no statuses: its ring fills, then the network on the way to it,
    // then the queue of process 0. Messages from node 1 to node 0, its puts and its gets, whose
    // answers come the way of what waits, go on.
    void back_pressure()
    {
        Process &from = processes_[0], &to = processes_[2];
        quiet();
        to.paused = true;
        quiet();
        // Memory holds the last packet in the end: order counts.
        unsigned sent = 0;
        uint64_t done = commands_done(0);
        for (bool stands = false; !stands; sent++) {
            if (sent == kRing + 500)
                fail("the receiver never stopped the sender");
            Words words = some_words(sent < kRing ? 2 : 62);
            uint32_t address = place(0, VELO_DIMMNET_MEMORY_SODIMM) + sent % 30 * 64;
            uint8_t tag = from.tag++;
            for (uint32_t i = 0; i < words.size(); i++)
                shadow_[1][region_of(2) + address + i] = words[i];
            expect(2,
                   {VELO_DIMMNET_KIND_WRITE, VELO_DIMMNET_MEMORY_SODIMM, tag, 0, {}, {}, nullptr});
            botf(0, packet(2, VELO_DIMMNET_MEMORY_SODIMM, address, words, tag), sent % 2);
            // A window is free again when its command is done; a sender that stands has one that is
            // not.
            run_until([&] { return hosts_.nodes()[0].units.writes.empty(); });
            for (unsigned i = 0; i < 100 && done != from.commands; i++)
                done = commands_done(0);
            stands = done != from.commands;
        }
        uint64_t messages = hosts_.nodes()[0].received, ops = rma_.done();
        for (unsigned i = 0; i < 30; i++) {
            hosts_.send(1, 0);
            steps(20);
        }
        for (unsigned lane = 0; lane < 4; lane++)
            rma_.post(1, lane, lane % 2 ? bench::RmaModel::kGet : bench::RmaModel::kPut, 0);
        run_until(
            [&] { return hosts_.nodes()[0].received == messages + 30 && rma_.done() == ops + 4; });
        if (commands_done(0) != done ||
            to.taken + kRing !=
                load(1, page(2, VELO_DIMMNET_PAGE_REGISTER, VELO_DIMMNET_REGISTER_STATUS_WRITE)))
            fail("the receiver was not stopped all the time");
        // It takes them again: all come, once, in order.
        to.paused = false;
        run_until([&] { return to.expected.empty(); });
        run_until([&] { return commands_done(0) == from.commands; });
        is_counted(1, VELO_DIMMNET_PRIVILEGED_DROPPED_STATUS, 0);
        stopped_ = sent;
    }
    unsigned stopped_ = 0;

    void finish()
    {
        quiet();
        uint64_t sent = 0, received = 0;
        for (unsigned n = 0; n < count_; n++) {
            for (const auto &[word, value] : shadow_[n])
                if (!is_in_sodimm(n, word, value))
                    fail("word " + std::to_string(word) + " of node " + std::to_string(n) +
                         "'s SO-DIMM is not what it must be");
            for (unsigned reg = VELO_DIMMNET_PRIVILEGED_DROPPED_PGID;
                 reg <= VELO_DIMMNET_PRIVILEGED_REFUSED; reg++)
                is_counted(n, reg, 0);
            is_counted(n, VELO_DIMMNET_PRIVILEGED_DROPPED_BUSY, 0);
            for (unsigned reg = VELO_DIMMNET_PRIVILEGED_NETWORK_CRC;
                 reg <= VELO_DIMMNET_PRIVILEGED_NETWORK_GAVE_UP; reg++)
                is_counted(n, reg, 0);
            sent += load(n, privileged(VELO_DIMMNET_PRIVILEGED_SENT)) -
                    dropped_[n << 8 | VELO_DIMMNET_PRIVILEGED_NETWORK_UNREACHABLE];
            received += load(n, privileged(VELO_DIMMNET_PRIVILEGED_RECEIVED)) +
                        dropped_[n << 8 | VELO_DIMMNET_PRIVILEGED_NETWORK_FOREIGN];
            if (hosts_.read_register(n, kRegCustomStatus) != (n ? 0 : 8))
                fail("the custom unit counted an error");
            if (hosts_.read_register(n, kRegDropped))
                fail("VELO dropped a message");
        }
        if (sent != received)
            fail("not as many packets came as were sent");
        packets_ = sent;
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("dimmnet_slot_bench TOPOLOGY [ROUNDS [SEED]]");
    auto number = [&](int i, uint64_t other) {
        return argc > i ? bench::number<uint64_t>(argv[i]) : other;
    };
    Bench bench(argv[1], number(3, 1));
    if (argc > 2 && !std::strcmp(argv[2], "--measure")) {
        bench.measure();
        return 0;
    }
    bench.test(argc > 2 ? bench::count<unsigned>(argv[2]) : 20);
    return 0;
}
