// SPDX-License-Identifier: Apache-2.0
// Samplers write all their values into a table in the collector's memory, and notify it.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <velo/rma.hpp>

using namespace std::chrono_literals;

namespace
{

constexpr int collector = 0, samplers = 4, values = 100000, block_len = 500, table_number = 1;
using Row = std::array<double, values>;

// The value of a result, or the end of the program with the reason.
template <class T, class E> T must(velo::Result<T, E> result, const char *call)
{
    if (!result) {
        std::fprintf(stderr, "%s: %s\n%s\n", call, to_string(result.status()), velo::last_error());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>)
        return *std::move(result);
}

velo::Port open_port(const std::string &domain, int vpid)
{
    velo::PortAttr attr;
    attr.domain = domain.c_str();
    attr.vpid = vpid;
    return must(velo::Port::open(attr), "open");
}

// A sensor would be read here.
double measure(int self, int i) { return self * 1000 + i % 1000; }

int sample(const std::string &domain, int self)
{
    velo::Port port = open_port(domain, self);
    velo::Rma rma = must(velo::Rma::open(port), "open");
    velo::RmaPeer owner = must(rma.connect(VELO_ID(0, collector), 5s), "connect");
    auto found = owner.lookup(table_number, VELO_RMA_RIGHT_WRITE);
    while (found.status() == velo::Status::access) // Until the collector has published its table.
        found = owner.lookup(table_number, VELO_RMA_RIGHT_WRITE);
    velo::RmaPlace place = must(found, "lookup");
    place.offset += self * sizeof(Row);
    for (int i = 0; i < values; i += block_len) {
        std::array<double, block_len> block;
        for (int j = 0; j < block_len; j++)
            block[j] = measure(self, i + j);
        must(owner.put(velo::bytes_of(block), place), "put");
        must(owner.flush(5s), "flush"); // Now the block is ours again.
        place.offset += sizeof block;
    }
    must(owner.notify(VELO_RMA_NOTIFY_COMPLETER), "notify");
    must(owner.flush(5s), "flush");
    return 0;
}

int report(unsigned sampler, const Row &row)
{
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / values;
    std::printf("sampler %u is done, its mean is %.1f\n", sampler, mean);
    return mean != sampler * 1000 + 499.5;
}

int collect(const std::string &domain)
{
    velo::Port port = open_port(domain, collector);
    velo::Rma rma = must(velo::Rma::open(port), "open");
    velo::RmaMemory memory =
        must(rma.alloc((samplers + 1) * sizeof(Row), VELO_RMA_RIGHT_WRITE), "alloc");
    must(memory.publish(table_number), "publish");
    const auto *table = reinterpret_cast<const Row *>(memory.bytes().data());
    int failed = 0;
    for (int done = 0; done < samplers; done++) {
        std::array<velo::RmaNotification, 1> notes; // They come after the data.
        must(rma.poll(notes, 5s), "poll");
        const unsigned sampler = VELO_ID_VPID(notes[0].peer);
        failed |=
            notes[0].status != VELO_OK || sampler > samplers || report(sampler, table[sampler]);
    }
    return failed;
}

} // namespace

int main()
{
    const std::string domain = "tutorial-" + std::to_string(getpid()); // One of our own.
    for (int sampler = 1; sampler <= samplers; sampler++)
        if (fork() == 0)
            return sample(domain, sampler);
    int failed = collect(domain), status = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
