// SPDX-License-Identifier: Apache-2.0
// Several samplers write to one collector, which sees whose block it is, and who has gone.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.hpp>

using namespace std::chrono_literals;

namespace
{

constexpr int collector = 0, samplers = 4, values = 100000, block_len = 500;

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
    attr.flags = vpid == collector ? VELO_PORT_DEPARTURES : 0;
    return must(velo::Port::open(attr), "open");
}

// A sensor would be read here.
double measure(int self, int i) { return self * 1000 + i % 1000; }

int sample(const std::string &domain, int self)
{
    velo::Port port = open_port(domain, self);
    velo::Connection conn = must(port.connect(VELO_ID(0, collector), 5s), "connect");
    for (int i = 0; i < values; i += block_len) {
        constexpr std::size_t block_bytes = block_len * sizeof(double);
        auto *block =
            reinterpret_cast<double *>(must(conn.reserve(block_bytes, 5s), "reserve").data());
        for (int j = 0; j < block_len; j++)
            block[j] = measure(self, i + j);
        must(conn.commit(block_bytes), "commit");
    }
    return 0;
}

std::span<const double> values_in(const velo::Message &message)
{
    const auto bytes = message.bytes();
    return {reinterpret_cast<const double *>(bytes.data()), bytes.size() / sizeof(double)};
}

int report(unsigned sampler, double mean)
{
    std::printf("sampler %u has gone, its mean is %.1f\n", sampler, mean);
    return mean != sampler * 1000 + 499.5;
}

int collect(const std::string &domain)
{
    velo::Port port = open_port(domain, collector);
    std::array<double, 1 << VELO_ADDRESS_VPID_BITS> sums{};
    int gone = 0, failed = 0;
    while (gone < samplers) {
        auto next = port.peek(5s);
        if (next.status() == velo::Status::peer_closed ||
            next.status() == velo::Status::peer_dead) {
            const unsigned sampler = VELO_ID_VPID(next.error().about.source);
            failed |= report(sampler, sums[sampler] / values);
            gone++;
            continue;
        }
        const velo::Message message =
            must(std::move(next), "peek"); // Its end gives the memory back.
        for (double value : values_in(message))
            sums[VELO_ID_VPID(message.source())] += value;
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
