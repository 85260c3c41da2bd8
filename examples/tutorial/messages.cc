// SPDX-License-Identifier: Apache-2.0
// A sampler measures, and sends each value to a collector, which takes their mean.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.hpp>

using namespace std::chrono_literals;

namespace
{

constexpr int collector = 0, sampler = 1, values = 100000;

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
double measure(int i) { return i % 1000; }

int sample(const std::string &domain)
{
    velo::Port port = open_port(domain, sampler);
    velo::Connection conn = must(port.connect(VELO_ID(0, collector), 5s), "connect");
    for (int i = 0; i < values; i++) {
        const double value = measure(i);
        must(conn.send(velo::bytes_of(value), 0, 5s), "send");
    }
    return 0;
}

int collect(const std::string &domain)
{
    velo::Port port = open_port(domain, collector);
    double sum = 0, value = 0;
    for (int i = 0; i < values; i++) {
        must(port.recv(velo::writable_bytes_of(value), 5s), "recv");
        sum += value;
    }
    std::printf("%d values, their mean is %.1f\n", values, sum / values);
    return sum / values != 499.5;
}

} // namespace

int main()
{
    const std::string domain = "tutorial-" + std::to_string(getpid()); // One of our own.
    if (fork() == 0)
        return sample(domain);
    int failed = collect(domain), status = 0;
    return failed || wait(&status) < 0 || status != 0;
}
