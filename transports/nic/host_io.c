/* SPDX-License-Identifier: Apache-2.0 */
#include "host_io.h"

const struct host_io *host_io;
int (*host_fail)(int status, const char *format, ...);

int host_check_grant(const struct host_context *context, uint16_t target)
{
    if (host_io->may_send(context, target))
        return VELO_OK;
    return host_fail(VELO_ERR_ACCESS,
                     "no grant to send to context %u of node %u; see /sys/class/velo",
                     target & 0xffu, target >> 8);
}

bool host_enter_pages(const struct host_context *context, uint64_t address, uint64_t len_bytes,
                      uint64_t rights, uint32_t *first_page)
{
    uint64_t begin = address & ~(HOST_PAGE_BYTES - 1);
    uint64_t end = (address + len_bytes + HOST_PAGE_BYTES - 1) & ~(HOST_PAGE_BYTES - 1);
    return host_io->memory_enter(context, begin, end - begin, rights, first_page);
}
