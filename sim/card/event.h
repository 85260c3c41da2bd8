// SPDX-License-Identifier: Apache-2.0
//
// Signals eventfds that a client has passed, and never waits for one.
//
// A write to an eventfd can wait: for as long as its counter is full, unless O_NONBLOCK is set,
// which whoever shares the file may clear at any time. So nothing is written here: the kernel
// signals the eventfd itself, at the end of an asynchronous read of no bytes (io_submit with
// IOCB_FLAG_RESFD). That leaves a full counter as it is. For one thread at a time.

#pragma once

#include <linux/aio_abi.h>

#include "descriptor.h"

namespace sim::card
{

class Events
{
  public:
    // Throws std::runtime_error if the kernel has no asynchronous I/O for this process.
    Events();
    ~Events();
    Events(const Events &) = delete;
    Events &operator=(const Events &) = delete;

    // Is this an eventfd? Nothing is signalled.
    bool is_eventfd(int file) const;
    // Adds 1 to its counter.
    void signal(int file) const;

  private:
    aio_context_t context_ = 0;
    Descriptor null_;
};

} // namespace sim::card
