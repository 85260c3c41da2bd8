// SPDX-License-Identifier: Apache-2.0
// Two processes send a message to and fro, and time it.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <velo/velo.hpp>

using namespace std::chrono_literals;

namespace
{

constexpr int rounds = 10000;

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

// Reply to each message with what came, from where it lies.
bool reply(velo::Port &port)
{
    velo::Connection conn = must(port.connect(VELO_ID(0, 0), 5s), "connect");
    for (int round = 0; round < rounds; round++) {
        const velo::Message message = must(port.peek(5s), "peek");
        must(conn.send(message.bytes(), message.tag(), 5s), "send");
    }
    return true;
}

bool ask(velo::Port &port)
{
    velo::Connection conn = must(port.connect(VELO_ID(0, 1), 5s), "connect");
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; round++) {
        int answer = -1;
        must(conn.send(velo::bytes_of(round), 7, 5s), "send");
        must(port.recv(velo::writable_bytes_of(answer), 5s), "recv");
        if (answer != round)
            return false;
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    std::printf("%d round trips, %.0f ns each way\n", rounds, time.count() / rounds / 2);
    return true;
}

} // namespace

int main()
{
    const std::string domain = "ping-pong-" + std::to_string(getpid()); // One of our own.
    const pid_t child = fork();
    velo::PortAttr attr;
    attr.domain = domain.c_str();
    attr.vpid = child == 0 ? 1 : 0;
    velo::Port port = must(velo::Port::open(attr), "open");
    const bool good = child == 0 ? reply(port) : ask(port);
    int status = 0;
    return good && (child == 0 || (wait(&status) == child && status == 0)) ? 0 : 1;
}
