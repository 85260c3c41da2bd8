// SPDX-License-Identifier: Apache-2.0
//
// Multicast at an input of the switch: a packet of a group is put into the queue of one output after the
// other, and its units stay in the buffer until the last copy has been sent.
//
// A packet of a group is put into its first queue when its end has come, not before: so it is known to be
// good, and no copy waits for words. When a copy begins to leave, the packet is put into the queue of the next
// output, in a cycle in which no other packet is added; until then the input asks for nothing (`hold_o`).
// Credits keep that short: whoever sends here has few, and none come back meanwhile. Of a packet that is not
// good (`bad_i`) only the first output gets a copy, which ends poisoned. One that was cut off and comes again
// is put into no queue: `undo_o`, its units from `undo_unit_o` on are the next to be used.
//
// `first_i`: a packet's first word that is not to be swallowed, with its way: `to_i`, one output or, of a
// group (`group_i`), all that get a copy; `retry_i`: it takes over a place in a queue. `end_i`: the last word
// of a packet. `add_*`: to the queues, see velo_switch_queues, in the same cycle or later.
// `start_i`: the packet `start_unit_i` begins to be sent. `keep_o`, from the cycle behind it: another copy of it
// follows, so its units are not free.
// Errors: none. Latency: a packet for one output is added in the cycle of its first word.

`include "velo_assert.svh"

module velo_switch_copies
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned NumPorts = 9,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned UnitBits = 8,
    parameter bit Multicast = 1'b1  // 0: all packets are for one output, and there is no logic
) (
    input logic clk_i,
    input logic rst_ni,

    input logic first_i,  // a packet begins
    input logic end_i,  // a packet ends
    input logic bad_i,  // it must not be acted upon
    input logic again_i,  // it was cut off and comes again
    input logic retry_i,  // what begins has a place in a queue
    input logic group_i,  // what begins is for a group
    input logic [NumPorts-1:0] to_i,  // outputs
    input logic [NumLinks-1:0] dateline_i,  // of a group: links where it takes the second channel
    input vc_t vc_i,  // channel; of a group, the first one of its class
    input size_t size_i,  // size of the packet
    input logic [UnitBits-1:0] unit_i,  // its first unit

    output logic                 add_o,         // a packet is added
    output logic  [NumPorts-1:0] add_to_o,      // to the queue of this output
    output vc_t                  add_vc_o,      // and this channel
    output logic  [UnitBits-1:0] add_unit_o,    // its first unit
    output logic                 add_single_o,  // it has one word
    output size_t                add_size_o,    // its size

    input  logic                start_i,       // a packet begins to be sent
    input  logic [UnitBits-1:0] start_unit_i,  // its first unit
    output logic                keep_o,        // units of the packet being sent are not free
    output logic                hold_o,        // the input must not ask for an output now

    output logic                undo_o,      // a group's packet is given up
    output logic [UnitBits-1:0] undo_unit_o  // its first unit
);

  if (Multicast) begin : gen_copies
    // A packet whose copies are still to be made.
    typedef struct packed {
      logic [NumPorts-1:0] to;
      logic [NumLinks-1:0] dateline;
      vc_t                 vc;
      size_t               size;
      logic                single;
    } copies_t;

    // ----- The packet that is coming in ----------------------------------------------------------

    copies_t begins, coming_q, coming;
    logic open_q, ends;
    logic [UnitBits-1:0] coming_unit_q, coming_unit;

    assign begins = '{
            to: to_i,
            dateline: dateline_i,
            vc: vc_i,
            size: size_i,
            single: first_i && end_i
        };
    assign coming = first_i ? begins : coming_q;
    assign coming_unit = first_i ? unit_i : coming_unit_q;
    assign ends = end_i && (first_i ? group_i : open_q);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) open_q <= 1'b0;
      else if (end_i) open_q <= 1'b0;
      else if (first_i) open_q <= group_i;
    end
    always_ff @(posedge clk_i) begin
      if (first_i) begin
        coming_q      <= begins;
        coming_unit_q <= unit_i;
      end
    end

    assign undo_o      = ends && again_i;
    assign undo_unit_o = coming_unit;

    // ----- The packet that is being sent ---------------------------------------------------------

    copies_t left, next_q, rest;
    logic started_q, keep_q, waits_q, more;
    logic [UnitBits-1:0] started_unit_q, next_unit_q;

    velo_ram_through #(
        .Width($bits(copies_t)),
        .Depth(2 ** UnitBits)
    ) u_left (
        .clk_i,
        .we_i   (add_o),
        .waddr_i(add_unit_o),
        .wdata_i(rest),
        .raddr_i(start_unit_i),
        .rdata_o(left)
    );
    assign more   = started_q && left.to != '0;
    assign keep_o = started_q ? more : keep_q;
    assign hold_o = more || waits_q;

    // ----- To the queues -------------------------------------------------------------------------

    logic add_one, add_group;
    copies_t source;

    assign add_one   = first_i && !group_i && !retry_i;
    assign add_group = ends && !undo_o;
    assign add_o     = add_one || add_group || waits_q;
    assign source    = add_one || add_group ? coming : next_q;

    always_comb begin
      add_to_o = source.to & (~source.to + 1'b1);
      rest = source;
      rest.to = add_one || (add_group && bad_i) ? '0 : source.to & ~add_to_o;
      add_vc_o = source.vc;
      if (|(add_to_o[NumLinks-1:0] & source.dateline)) add_vc_o[0] = 1'b1;
    end
    assign add_unit_o   = add_one || add_group ? coming_unit : next_unit_q;
    assign add_single_o = source.single;
    assign add_size_o   = source.size;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        started_q <= 1'b0;
        keep_q    <= 1'b0;
        waits_q   <= 1'b0;
      end else begin
        started_q <= start_i;
        keep_q    <= keep_o;
        waits_q   <= more || (waits_q && (add_one || add_group));
      end
    end
    always_ff @(posedge clk_i) begin
      if (start_i) started_unit_q <= start_unit_i;
      if (more) {next_q, next_unit_q} <= {left, started_unit_q};
    end

    `VELO_ASSUME(EndsBeforeTheNext, !(first_i && open_q))
    `VELO_ASSERT(OneQueueAtATime,
                 !add_o || (add_to_o != '0 && (add_to_o & (add_to_o - 1'b1)) == '0))
    `VELO_ASSERT(NoneWaitsTwice, !(more && waits_q))
  end else begin : gen_no_copies
    assign add_o        = first_i && !retry_i;
    assign add_to_o     = to_i;
    assign add_vc_o     = vc_i;
    assign add_unit_o   = unit_i;
    assign add_single_o = end_i;
    assign add_size_o   = size_i;
    assign keep_o       = 1'b0;
    assign hold_o       = 1'b0;
    assign undo_o       = 1'b0;
    assign undo_unit_o  = '0;
    logic unused;
    assign unused = ^{clk_i, rst_ni, bad_i, again_i, group_i, dateline_i, start_i, start_unit_i};
  end

endmodule
