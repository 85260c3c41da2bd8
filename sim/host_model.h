// SPDX-License-Identifier: Apache-2.0
//
// The host model: the times of a processor, its memory and the bus between them. All other times
// are the RTL's.
//
// A host is a profile in hosts/, each time with its source; the values here are the default one's.

#pragma once

#include <cstdint>

#include "host_default.h"

namespace sim
{

struct HostModel {
    uint64_t store_ns = kHostStoreNs; // a posted write, from the processor to the node's host port
    uint64_t dma_ns = kHostDmaNs;     // a word that the node writes, until a processor can see it
    uint64_t read_ns = kHostReadNs;   // a register read, there and back, but for the node's cycles
    uint64_t poll_ns = kHostPollNs;   // one look at a ring in memory
    uint64_t clock_ns = kHostClockNs; // one reading of a clock
    uint64_t copy_ns = kHostCopyNs;   // one line, from or to memory
    uint64_t call_ns = kHostCallNs;   // a call of the library, by itself
    // A delay after each line that is stored for the node to send. It is not a cost of the hosts:
    // with such a delay the high-message-rates paper, section VI, slows a network down.
    uint64_t gap_ns = 0;
    // The time that a program computes between two calls of the simulator, on top.
    uint64_t compute_ns = 0;       // always that
    uint64_t compute_permille = 0; // of the processor time that it really took
};

// The way from the processors of a node to its host port holds this many lines.
constexpr unsigned kStoreQueueLines = 16;

constexpr uint64_t kPsPerNs = 1000;

} // namespace sim
