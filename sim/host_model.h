// SPDX-License-Identifier: Apache-2.0
//
// The host model: the times of a processor, its memory and the bus between them. All other times
// are the RTL's.
//
// Source: VELO paper, section 5. It measures 970 ns from one process to the other over HT200, of
// which 640 ns are hardware (64 cycles at 100 MHz). The other 330 ns ("about 350", it says) are
// processor, memory controller and software. It does not say how they divide: the constants below
// were chosen to add up to them: store 110 + dma 110 + detection 45 (half a poll, then the one that
// finds it) + two calls 40 + two copies 20 = 325 ns.
//
// The papers give one time for an access: "about 180ns" to an HTX device (case-for-fpga, section
// III.B). That is of a later board, with HT400, and is not used here: store and dma, there and
// back, take 220 ns. `velo paper` shows what these 180 ns make of that paper's latency.

#pragma once

#include <cstdint>

namespace sim
{

struct HostModel {
    uint64_t store_ns = 110; // a posted write, from the processor to the node's host port
    uint64_t dma_ns = 110;   // a word that the node writes, until a processor can see it
    uint64_t read_ns = 220;  // a register read, there and back; the node's own cycles come on top
    uint64_t poll_ns = 30;   // one look at a ring in memory
    uint64_t clock_ns = 20;  // one reading of a clock
    uint64_t copy_ns = 10;   // one line, from or to memory
    uint64_t call_ns = 20;   // a call of the library, by itself
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
