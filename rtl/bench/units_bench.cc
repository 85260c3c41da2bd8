// SPDX-License-Identifier: Apache-2.0
//
// How many messages a node sends and takes with one VELO unit and with several.
//
//   units_bench TOPOLOGY [PAYLOAD_BYTES [MESSAGES [SEED]]]
//
// Every host stores messages as fast as its port takes them, from random contexts to random contexts of
// random other nodes (hosts.h). Prints JSON: cycles between messages at a node, and the share of cycles in
// which its host port carried a word, as stores and as DMA writes, over the messages in the middle of the run.

#include "hosts.h"

namespace
{

using bench::fail;

// The middle of the run is measured: all nodes are sending.
void run(bench::Hosts &hosts, unsigned payload, uint64_t messages)
{
    auto &nodes = hosts.nodes();
    uint64_t all = messages * nodes.size(), from = all / 4, to = 3 * all / 4, start = 0, end = 0;
    uint64_t stores = 0, writes = 0, limit = hosts.cycle() + 100 * messages + 10000;
    auto others = static_cast<unsigned>(nodes.size()) - 1;
    while (hosts.received() < all) {
        for (unsigned n = 0; n < nodes.size(); n++)
            while (nodes[n].sent < messages && nodes[n].units.writes.size() < 4)
                hosts.send(n, (n + 1 + hosts.random().below(others)) % (others + 1));
        hosts.step();
        if (!start && hosts.received() >= from) {
            start = hosts.cycle();
            from = hosts.received();
            for (auto &node : nodes)
                node.store_words = node.dma_words = 0;
        }
        if (!end && hosts.received() >= to) {
            end = hosts.cycle();
            to = hosts.received();
            for (auto &node : nodes) {
                stores += node.store_words;
                writes += node.dma_words;
            }
        }
        if (hosts.cycle() > limit)
            fail("messages did not arrive: " + std::to_string(hosts.received()) + " of " +
                 std::to_string(all));
    }
    hosts.check_nothing_refused();
    double cycles = static_cast<double>(end - start) * static_cast<double>(nodes.size());
    std::printf("{\"payload_bytes\": %u, \"messages\": %" PRIu64
                ", \"cycles_per_message\": %.4f, \"store_words_used\": %.4f, "
                "\"dma_words_used\": %.4f}\n",
                payload, hosts.received(), cycles / static_cast<double>(to - from),
                static_cast<double>(stores) / cycles, static_cast<double>(writes) / cycles);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2)
        fail("units_bench TOPOLOGY [PAYLOAD_BYTES [MESSAGES [SEED]]]");
    auto number = [&](int i, uint64_t other) {
        return argc > i ? bench::number<uint64_t>(argv[i]) : other;
    };
    auto payload = static_cast<unsigned>(number(2, 8));
    bench::Hosts hosts(argv[1], payload, number(4, 1));
    run(hosts, payload, argc > 3 ? bench::count<uint64_t>(argv[3]) : 2000);
    return 0;
}
