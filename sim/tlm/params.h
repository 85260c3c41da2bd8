// SPDX-License-Identifier: Apache-2.0
//
// The hardware's constants, in cycles and words, as the RTL of the 32-bit path has them. Each names
// its source; `calibrate.py --check` shows that the model with all of them behaves as the RTL does.

#pragma once

#include <algorithm>
#include <cstdint>

namespace tlm
{

using Cycle = uint64_t;

struct Params {
    // --- sizes ---
    unsigned word_bytes = 4;    // DataWidth / 8, rtl/node/rtl/velo_node.sv
    unsigned header_words = 2;  // 64 bits, spec/velo.toml, packet
    unsigned line_bytes = 56;   // most payload of a message, spec/velo.toml; longer ones are puts
    unsigned put_bytes = 448;   // of data in a put's packet, rtl/rma/rtl/velo_rma_fragment.sv
    unsigned put_words = 6;     // before them, beside the header: rma_command of spec/velo.toml
    unsigned mtu_bytes = 512;   // MtuBytes, rtl/node/rtl/velo_node.sv
    unsigned unit_words = 8;    // a credit, rtl/switch/rtl/velo_switch_pkg.sv
    unsigned buffer_units = 30; // a channel, at each input, BufferUnits, velo_router.sv
    unsigned frame_extra = 2;   // start word and CRC, rtl/link/README.md
    unsigned status_words =
        32; // between two status words inside a frame, rtl/link/rtl/velo_link_tx.sv
    unsigned status_vcs = 6; // channels that take turns in status words, NumVcs, velo_router.sv
    unsigned sizes = 4;      // of packets, by which credits are asked for, NumSizes,
                             // velo_switch_pkg.sv
    unsigned least_size_bytes = 64; // most payload of the first; each has twice the one before it

    // --- cycles ---
    // First word at the host port to first word at the switch: crossbar, requester, network port,
    // one each (rtl/README.md, "Figures"; velo_netport_tx.sv).
    unsigned inject = 3;
    // First word at a switch input to the first cycle in which the packet may be granted: way,
    // queue (velo_switch_input.sv, "Latency").
    unsigned to_request = 2;
    // Grant to first word at the switch output (velo_switch_input.sv, velo_switch_output.sv).
    unsigned to_output = 3;
    // A packet holds input and output as many cycles as it has words, and no less than this
    // (velo_switch_input.sv, "one of less than four words").
    unsigned least_switch = 4;
    // First word into the link to its frame's turn, at the earliest (velo_link_tx.sv,
    // `next_exists`).
    unsigned to_frame = 1;
    // A frame's turn to its first word out of the other side's link: choice, CRC, PHY, start word,
    // the header's second word, a register (velo_link_tx.sv, velo_link_rx.sv).
    unsigned frame_through = 5;
    unsigned cable = 0; // of delay, each way; PHY included
    // Word out of the switch's local output to the unit (velo_netport_rx.sv).
    unsigned to_unit = 1;
    // First word at the completer to first word at the host port: completer 4, crossbar 1.
    unsigned complete = 5;
    // Cycles between packets at the completer, at least (rtl/velo/README.md).
    unsigned least_complete = 3;

    // --- credits ---
    // Grant to the cycle in whose arbitration the packet's first unit is seen as taken: three to
    // the output, then registers of velo_credit.sv, velo_switch_queues.sv (`queued_q`) and
    // velo_switch_pick.sv.
    unsigned take_seen = 6;
    // Last read of a unit to the count of freed units at the input's port (velo_switch_input.sv).
    unsigned freed = 3;
    // A changed count to the status word's choice of channel (velo_link_status.sv, `changed_q`).
    unsigned changed = 1;
    // Turn of an idle word, or end of the turn of a frame, to the first arbitration that sees its
    // status: two words of idle, or the end word, then velo_link_rx.sv, velo_link.sv,
    // velo_credit.sv.
    unsigned idle_told = 8;
    unsigned frame_told = 6;
    unsigned idle_words = 2; // an idle word stands for two cycles, velo_link_tx.sv
    // A word read from the buffer at a unit to the first arbitration that sees its unit freed:
    // velo_netport_rx.sv, velo_credit.sv (two), velo_switch_queues.sv, velo_switch_pick.sv.
    unsigned read_seen = 5;
    // Freed at the input of the network port to the next packet there (velo_netport_tx.sv).
    unsigned inject_credit = 2;
    // A packet that comes to an empty queue counts as the longest for so many cycles in which it
    // may be granted (velo_switch_queues.sv, `open_q`, and velo_switch_pick.sv, `arrived_q`).
    unsigned size_late = 2;
    // Grant to the first arbitration that knows the size of the packet behind in the same queue
    // (velo_switch_queues.sv, `size_q`); until then it counts as the longest.
    unsigned next_size_known = 6;
    // First word at an empty network port to the first cycle in which its size is known
    // (velo_netport_tx.sv, `u_sizes`), beyond the first in which the packet may go.
    unsigned inject_size_late = 1;
    // A long packet's patience: ticks of so many cycles (velo_switch_output.sv, PatienceCycles).
    unsigned patience_cycles = 64;

    // The words of a packet with that many bytes of payload.
    unsigned packet_words(unsigned bytes) const
    {
        // Payload is whole words of 64 bits, rtl/velo/rtl/velo_requester.sv.
        return header_words + (bytes + 7) / 8 * (8 / word_bytes);
    }
    // The words of all packets of a message; `full`: the packets with the most data.
    uint64_t message_words(unsigned bytes) const
    {
        if (bytes <= line_bytes)
            return packet_words(bytes);
        uint64_t full = bytes / put_bytes;
        unsigned rest = bytes % put_bytes;
        return full * (packet_words(put_bytes) + put_words) +
               (rest ? packet_words(rest) + put_words : 0);
    }
    unsigned units(unsigned words) const { return (words + unit_words - 1) / unit_words; }
    // The size of a packet by its payload, size_of() of velo_switch_pkg.sv.
    unsigned size_of(unsigned words) const
    {
        unsigned bytes = (words - header_words) * word_bytes, size = 0;
        while (size + 1 < sizes && bytes > least_size_bytes << size)
            size++;
        return size;
    }
    // A packet of that size is begun with no fewer credits, size_credits() of velo_switch_pkg.sv.
    unsigned need_units(unsigned size) const
    {
        unsigned longest = units(4 + mtu_bytes / word_bytes);
        unsigned these = units(header_words + (least_size_bytes << size) / word_bytes);
        return (size + 1 == sizes ? longest : std::min(these, longest)) + 2;
    }
    // The idle words inside a packet's frame.
    unsigned inner_idles(unsigned words) const { return (words - 1) / status_words; }
};

} // namespace tlm
