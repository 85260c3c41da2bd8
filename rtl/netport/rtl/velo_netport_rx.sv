// SPDX-License-Identifier: Apache-2.0
//
// Network port of one traffic class, from the network: the buffer that a stalled unit fills before its
// class, and no other, is held back by credits. Takes the route word, if there is one, off the packet:
// a unit sees the header first. The route word's mark (velo_switch_output) goes over to the header.
//
// A packet may end poisoned: it was disturbed on its way. No unit acts upon such a one. A VELO message,
// whose unit makes it visible only with its end, is passed on as it comes, with the mark `out_poison_o` on
// its last word (MessagesAtOnce). All others are held until their end has come, and swallowed if it is a poisoned
// one. So are messages with a route word: the link's CRC of the first 64 bits does not cover their header.
//
// `in_*` words from the switch's node port, no ready; `freed_o` counts the buffer's freed units.
// `out_*` valid/ready stream. Latency one cycle, plus that of a route word, or one cycle after the last
// word. Errors: `poisoned_o` pulses for each packet that ended poisoned.
// Source: case-for-fpga, section 3, "Network Ports".

`include "velo_assert.svh"

module velo_netport_rx
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned BufferUnits = 30,
    parameter bit MessagesAtOnce = 1'b0  // the port of class request
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                   in_valid_i,
    input  logic                   in_sop_i,
    input  logic                   in_eop_i,
    input  logic                   in_poison_i,
    input  logic   [DataWidth-1:0] in_data_i,
    output count_t                 freed_o,

    output logic                 out_valid_o,
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic                 out_poison_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic poisoned_o
);

  localparam int unsigned AddrBits = $clog2(BufferUnits * UnitWords);
  localparam bit Narrow = DataWidth == 32;
  localparam logic [3:0] KindVelo = 4'd0;  // spec/velo.toml, enum packet_kind
  typedef logic [AddrBits:0] addr_t;  // one bit more than an address: full is not empty
  typedef logic [$clog2(UnitWords)-1:0] off_t;

  // ----- In -----------------------------------------------------------------------------------------

  addr_t write_q, begin_q, ready_q, read_q;  // ready: words up to here may leave
  logic at_once_q, at_once, swallow;
  off_t in_off_q, in_off;
  count_t held_q, held;  // units of the packet that is coming in

  assign at_once = in_sop_i ?
      MessagesAtOnce && !in_data_i[0] && in_data_i[7:4] == KindVelo : at_once_q;
  assign swallow = in_valid_i && in_eop_i && in_poison_i && !at_once;
  assign in_off = in_sop_i ? '0 : in_off_q;
  assign held = (in_sop_i ? '0 : held_q) + count_t'(in_off == '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q    <= '0;
      ready_q    <= '0;
      at_once_q  <= 1'b0;
      poisoned_o <= 1'b0;
    end else begin
      if (in_valid_i) begin
        write_q   <= swallow ? (in_sop_i ? write_q : begin_q) : write_q + 1'b1;
        at_once_q <= at_once;
        if (at_once || (in_eop_i && !in_poison_i)) ready_q <= write_q + 1'b1;
      end
      poisoned_o <= in_valid_i && in_eop_i && in_poison_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (in_valid_i) begin
      if (in_sop_i) begin_q <= write_q;
      in_off_q <= in_off + 1'b1;
      held_q   <= held;
    end
  end

  // ----- Out ----------------------------------------------------------------------------------------

  logic valid, sop, eop, poison, pop, strip, route_q, first_q, mark_q;
  logic [DataWidth-1:0] data;
  off_t off_q, off;

  velo_fifo_ram #(
      .Width(DataWidth + 3),
      .Depth(2 ** AddrBits)
  ) u_words (
      .clk_i,
      .rst_ni,
      .push_i  (in_valid_i),
      .write_i (write_q),
      .data_i  ({in_sop_i, in_eop_i, in_poison_i, in_data_i}),
      .pop_i   (pop),
      .read_i  (read_q),
      .oldest_o({sop, eop, poison, data})
  );

  assign valid = read_q != ready_q;

  // A route is one word, two on the narrow path; the word after it is the packet's first.
  assign strip = (sop && data[0]) || (Narrow && route_q);
  assign pop = valid && (strip || out_ready_i);
  assign out_valid_o = valid && !strip;
  assign out_sop_o = sop || first_q;
  assign out_eop_o = eop;
  assign out_poison_o = eop && poison;
  always_comb begin
    out_data_o = data;
    out_data_o[MarkBit] |= first_q && mark_q;
  end
  assign off = sop ? '0 : off_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q  <= '0;
      route_q <= 1'b0;
      first_q <= 1'b0;
      freed_o <= '0;
    end else begin
      if (pop) begin
        read_q  <= read_q + 1'b1;
        route_q <= sop && data[0];
        first_q <= strip;
      end
      // Each unit of the sender's reckoning, when its last word leaves; all of a packet that is swallowed.
      freed_o <= freed_o + count_t'(pop && (eop || off == '1)) + (swallow ? held : '0);
    end
  end
  always_ff @(posedge clk_i) begin
    if (pop) off_q <= off + 1'b1;
    if (pop && sop) mark_q <= data[MarkBit];
  end

  logic open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (in_valid_i) open_q <= !in_eop_i;
  end
  `VELO_ASSUME(PacketsWhole, !in_valid_i || in_sop_i == !open_q)
  `VELO_ASSUME(CreditsKept, !in_valid_i || addr_t'(write_q - read_q) != addr_t'(2 ** AddrBits))
  `VELO_ASSERT(OnlyWhatIsThereLeaves, addr_t'(ready_q - read_q) <= addr_t'(write_q - read_q))
  `VELO_ASSERT(PoisonOnlyInMessages, MessagesAtOnce || !out_valid_o || !out_poison_o)

endmodule
