// SPDX-License-Identifier: Apache-2.0
// A process writes a table into the memory of another, and notifies it.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <velo/rma.hpp>

using namespace std::chrono_literals;

namespace
{

using Table = std::array<double, 1000>;

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

bool write(velo::Port &port, velo::Rma &rma)
{
    velo_rma_key_t key = 0;
    must(port.recv(velo::writable_bytes_of(key), 5s), "recv");
    velo::RmaPeer owner = must(rma.connect(VELO_ID(0, 0), 5s), "connect");
    Table table;
    table.fill(1.5);
    must(owner.put(velo::bytes_of(table), velo_rma_place(key, 0), VELO_RMA_NOTIFY_COMPLETER),
         "put");
    must(owner.flush(5s), "flush"); // The table is read until then.
    return true;
}

bool own(velo::Port &port, velo::Rma &rma)
{
    velo::RmaMemory memory = must(rma.alloc(sizeof(Table), VELO_RMA_RIGHT_WRITE), "alloc");
    velo::Connection conn = must(port.connect(VELO_ID(0, 1), 5s), "connect");
    must(conn.send(velo::bytes_of(memory.key()), 0, 5s), "send");
    std::array<velo::RmaNotification, 1> written;
    must(rma.poll(written, 5s), "poll");
    const auto *table = reinterpret_cast<const Table *>(memory.bytes().data());
    std::printf("%zu numbers, the last is %g\n", table->size(), table->back());
    return table->back() == 1.5;
}

} // namespace

int main()
{
    const std::string domain = "remote-memory-" + std::to_string(getpid()); // One of our own.
    const pid_t child = fork();
    velo::PortAttr attr;
    attr.domain = domain.c_str();
    attr.vpid = child == 0 ? 1 : 0;
    velo::Port port = must(velo::Port::open(attr), "open");
    velo::Rma rma = must(velo::Rma::open(port), "open");
    const bool good = child == 0 ? write(port, rma) : own(port, rma);
    int status = 0;
    return good && (child == 0 || (wait(&status) == child && status == 0)) ? 0 : 1;
}
