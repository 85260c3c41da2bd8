// SPDX-License-Identifier: Apache-2.0
//
// A node is reset, alone, again and again, while all others send (hosts.h).
//
//   reset_bench TOPOLOGY [RESETS [SEED]]
//
// Between two resets every host stores messages to random other nodes. Then one node is held in reset, for a random
// time, at a random moment: its host stops, the others go on. It comes back as after power-up and is set up anew;
// nothing is done to any other node. Promises: its neighbours' links to it come up again by themselves; no message
// between nodes whose way does not lead through it is lost, doubled, changed or overtaken; nor is any that is stored
// after it is back; what had to go through it comes once or not at all; nobody waits for ever. Prints JSON.
// One seed makes one run.

#include "hosts.h"

namespace
{

using bench::fail;

constexpr uint64_t kHangCycles = 100000;
constexpr unsigned kMessages = 60; // of each host, between two resets

class Bench
{
  public:
    Bench(const char *topology, uint64_t seed) : hosts_(topology, 24, seed) {}

    void run(uint64_t resets)
    {
        for (uint64_t i = 0; i < resets; i++)
            one();
        std::printf("{\"resets\": %" PRIu64 ", \"messages\": %" PRIu64 ", \"lost\": %" PRIu64
                    ", \"cycles\": %" PRIu64 "}\n",
                    resets, hosts_.received(), hosts_.lost(), hosts_.cycle());
    }

  private:
    bench::Hosts hosts_;
    std::vector<unsigned> left_; // messages that a host has still to store

    unsigned nodes() { return static_cast<unsigned>(hosts_.nodes().size()); }

    // One cycle, in which hosts store; `but` names one that does not.
    void step(unsigned but)
    {
        for (unsigned n = 0; n < nodes(); n++)
            if (n != but && left_[n] && hosts_.nodes()[n].units.writes.size() < 4) {
                hosts_.send(n, (n + 1 + hosts_.random().below(nodes() - 1)) % nodes());
                left_[n]--;
            }
        hosts_.step();
    }

    void steps(unsigned cycles, unsigned but)
    {
        for (unsigned i = 0; i < cycles; i++)
            step(but);
    }

    void one()
    {
        unsigned none = nodes(), n = hosts_.random().below(none);
        left_.assign(none, kMessages);
        steps(100 + hosts_.random().below(900), none);
        hosts_.reset(n);
        steps(1 + hosts_.random().below(2000), n);
        hosts_.release(n);
        steps(300, n); // The context tables clear themselves.
        hosts_.set_up(n);
        steps(4000, n);
        for (unsigned other = 0; other < nodes(); other++)
            if (!hosts_.has_all_links(other))
                fail("a link of node " + std::to_string(other) + " did not come up after node " +
                     std::to_string(n) + "'s reset");
        hosts_.is_back(n); // What is stored from here on must not be lost.
        left_.assign(none, kMessages);
        for (uint64_t end = hosts_.cycle() + kHangCycles; pending();) {
            step(none);
            if (hosts_.cycle() > end)
                fail(std::to_string(hosts_.awaited()) + " messages did not arrive");
        }
    }

    bool pending()
    {
        for (unsigned n = 0; n < nodes(); n++)
            if (left_[n] || !hosts_.nodes()[n].units.writes.empty())
                return true;
        return hosts_.awaited() > 0;
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("reset_bench TOPOLOGY [RESETS [SEED]]");
    Bench bench(argv[1], argc > 3 ? bench::number<uint64_t>(argv[3]) : 1);
    bench.run(argc > 2 ? bench::count<uint64_t>(argv[2]) : 20);
    return 0;
}
