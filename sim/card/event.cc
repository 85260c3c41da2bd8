// SPDX-License-Identifier: Apache-2.0
#include "event.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/syscall.h>

namespace sim::card
{

namespace
{

// One operation on a file, with an eventfd that is signalled at its end. Returns 0 or an errno.
int submit(aio_context_t context, unsigned operation, int file, int eventfd)
{
    iocb block = {};
    block.aio_lio_opcode = static_cast<uint16_t>(operation);
    block.aio_fildes = static_cast<uint32_t>(file);
    block.aio_flags = IOCB_FLAG_RESFD;
    block.aio_resfd = static_cast<uint32_t>(eventfd);
    iocb *blocks[] = {&block};
    return syscall(SYS_io_submit, context, 1L, blocks) == 1 ? 0 : errno;
}

} // namespace

Events::Events() : null_(open("/dev/null", O_RDONLY | O_CLOEXEC))
{
    if (!null_)
        throw std::runtime_error(std::string("/dev/null: ") + std::strerror(errno));
    if (syscall(SYS_io_setup, 1U, &context_) != 0)
        throw std::runtime_error(
            std::string("a card signals its interrupts by the kernel's asynchronous I/O: ") +
            std::strerror(errno) +
            " (EAGAIN: raise fs.aio-max-nr; ENOSYS: the kernel or its filter of calls has none)");
}

Events::~Events() { syscall(SYS_io_destroy, context_); }

// The kernel looks at the eventfd, and then refuses to write to a file that is open for reading.
bool Events::is_eventfd(int file) const
{
    return submit(context_, IOCB_CMD_PWRITE, null_.number(), file) == EBADF;
}

// A read of no bytes has ended when io_submit() returns, so there is always room for the next one.
void Events::signal(int file) const
{
    if (submit(context_, IOCB_CMD_PREAD, null_.number(), file) != 0)
        return;
    io_event event = {};
    syscall(SYS_io_getevents, context_, 1L, 1L, &event, nullptr);
}

} // namespace sim::card
