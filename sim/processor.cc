// SPDX-License-Identifier: Apache-2.0
#include "processor.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sim
{

namespace
{

// The name has no file: the kernel gives it to one socket at a time, and takes it back when the
// socket is closed. The socket stays open for as long as we run.
bool claim(int processor)
{
    int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (file < 0)
        return false;
    std::string name = "velo-sim.processor." + std::to_string(processor);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path + 1);
    auto len_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (bind(file, reinterpret_cast<const sockaddr *>(&address), len_bytes) == 0)
        return true;
    close(file);
    return false;
}

} // namespace

Processor::Processor(bool pin)
{
    cpu_set_t allowed;
    if (!pin || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    int here = std::max(sched_getcpu(), 0);
    number_ = here;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        int processor = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(static_cast<unsigned>(processor), &allowed) && claim(processor)) {
            number_ = processor;
            return;
        }
    }
}

void Processor::bring(int tid) const
{
    if (number_ < 0)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(number_), &set);
    (void)sched_setaffinity(tid, sizeof set, &set);
}

} // namespace sim
