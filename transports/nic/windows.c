/* SPDX-License-Identifier: Apache-2.0 */
#include "windows.h"

#include <velo/rma.h>

/* A window has at least this length if there is so much memory, so that what is near the first
 * request needs no window of its own. It begins at the first page that is asked for, and not at a
 * round address: the time in which the node looks pages up must not depend on the addresses that
 * the kernel chooses. */
#define WINDOW_BYTES_MIN (UINT64_C(1) << 20)

uint32_t windows_find(const struct windows *windows, uint64_t address, uint64_t len_bytes)
{
    uint32_t i = 0;
    while (i < WINDOWS_MAX &&
           (address - windows->all[i].address >= windows->all[i].len_bytes ||
            address + len_bytes > windows->all[i].address + windows->all[i].len_bytes))
        i++;
    return i;
}

/* A free window, or the one that was not used for the longest time; WINDOWS_MAX: all must stay. */
static uint32_t window_to_take(const struct windows *windows, uint32_t in_use)
{
    uint32_t best = WINDOWS_MAX;
    for (uint32_t i = 0; i < WINDOWS_MAX; i++) {
        if (in_use & UINT32_C(1) << i)
            continue;
        if (windows->all[i].len_bytes == 0)
            return i;
        if (best == WINDOWS_MAX || windows->all[i].used < windows->all[best].used)
            best = i;
    }
    return best;
}

static void withdraw_window(struct windows *windows, uint32_t i, const struct device_port *device)
{
    if (windows->all[i].len_bytes)
        host_io->memory_withdraw(&device->context, windows->all[i].page);
    windows->all[i].len_bytes = 0;
}

/* Whole pages from `begin` on. False: there is no memory, or no room in the table. */
static bool enter_window(struct windows *windows, uint32_t i, const struct device_port *device,
                         uint64_t begin, uint64_t end)
{
    uint64_t word = velo_registered_page_pack(1, VELO_RMA_RIGHT_READ | VELO_RMA_RIGHT_WRITE, 0, 0,
                                              (uint16_t)nic_name_id(nic_name(device)));
    end = (end + HOST_PAGE_BYTES - 1) & ~(HOST_PAGE_BYTES - 1);
    if (!host_io->memory_enter(&device->context, begin, end - begin, word, &windows->all[i].page))
        return false;
    windows->all[i].address = begin;
    windows->all[i].len_bytes = end - begin;
    return true;
}

uint32_t windows_make(struct windows *windows, uint32_t in_use, const struct device_port *device,
                      uint64_t address, uint64_t len_bytes)
{
    uint32_t i = window_to_take(windows, in_use);
    if (i == WINDOWS_MAX)
        return i;
    withdraw_window(windows, i, device);
    uint64_t begin = address & ~(HOST_PAGE_BYTES - 1);
    uint64_t end = address + len_bytes;
    bool is_entered = end < begin + WINDOW_BYTES_MIN &&
                      enter_window(windows, i, device, begin, begin + WINDOW_BYTES_MIN);
    return is_entered || enter_window(windows, i, device, begin, end) ? i : WINDOWS_MAX;
}

uint64_t windows_use(struct windows *windows, uint32_t window, uint64_t address)
{
    windows->all[window].used = ++windows->uses;
    return velo_registered_address_pack(0, windows->all[window].page) +
           (address - windows->all[window].address);
}

void windows_drop(struct windows *windows, uint32_t which, const struct device_port *device)
{
    for (uint32_t i = 0; i < WINDOWS_MAX; i++)
        if (which & UINT32_C(1) << i)
            withdraw_window(windows, i, device);
}

void windows_close(struct windows *windows, const struct device_port *device)
{
    windows_drop(windows, UINT32_MAX, device);
}
