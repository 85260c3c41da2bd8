/* SPDX-License-Identifier: Apache-2.0 */
#include "nic.h"

pthread_mutex_t nic_lock = PTHREAD_MUTEX_INITIALIZER;

/* Slots are given back a quarter of the ring or queue at a time, as on the native receive side. */
void nic_give_back(const struct device_port *device, uint64_t read_pointers, uint64_t head,
                   uint64_t *head_told, uint64_t quarter)
{
    if (head - *head_told < quarter)
        return;
    *head_told = head;
    host_io->register_write(&device->context, read_pointers, head & UINT16_MAX);
}
