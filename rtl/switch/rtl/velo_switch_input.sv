// SPDX-License-Identifier: Apache-2.0
//
// Input of the switch: finds each packet's way, keeps it in the shared buffer, sends it out when the
// crossbar grants, cut-through: as soon as it has begun to arrive.
//
// The buffer (block RAM) is made of units of UnitWords words; a packet is a linked list of units, of
// which it takes the next when a unit is full. Each channel's share is kept by the credits of whoever
// sends here, so no channel can take another's room. `freed_o` counts, per channel, units freed.
//
// `in_*`: words of whole packets, no ready. `out_*` to the crossbar, two cycles after a grant's cycle:
// one word with the outputs it is for (one-hot), `out_unit_o` on the first word of each unit.
// `grant_*`: comes only in a cycle with `idle_o` and starts the packet picked for that output.
// `idle_o`: nothing is being sent, or its last word is in this cycle. `going_to_o`: the output that is
// in use beyond this cycle. `stop_i`: outputs that take no word in the next cycle but one.
// Latency: the word of cycle 0 is at `out_*` in cycle 4 if granted at once.
//
// Errors: a packet that leads nowhere is swallowed, its credits given back; `dropped_o` pulses.
// Source: case-for-fpga, section 3 (VOQ, cut-through); high-message-rates, section 3.A.

`include "velo_assert.svh"

module velo_switch_input
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned NumUnits = 180,
    localparam int unsigned NumPorts = NumLinks + NumClasses,
    localparam int unsigned PortBits = $clog2(NumPorts)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic       table_we_i,
    input logic [7:0] table_node_i,
    input hop_t       table_hop_i,

    input  logic                   in_valid_i,
    input  logic                   in_sop_i,
    input  logic                   in_eop_i,
    input  vc_t                    in_vc_i,
    input  logic   [DataWidth-1:0] in_data_i,
    output count_t [   NumVcs-1:0] freed_o,

    input  logic [NumPorts-1:0][NumVcs-1:0] may_send_i,
    input  logic [NumPorts-1:0]             stop_i,
    output logic [NumPorts-1:0]             request_o,
    output logic                            idle_o,
    output logic [NumPorts-1:0]             going_to_o,
    input  logic [NumPorts-1:0]             grant_i,

    output logic [ NumPorts-1:0] out_to_o,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic                 out_unit_o,
    output vc_t                  out_vc_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic dropped_o
);

  localparam int unsigned UnitBits = $clog2(NumUnits);
  localparam int unsigned OffBits = $clog2(UnitWords);
  localparam logic [OffBits-1:0] LastOff = OffBits'(UnitWords - 1);
  typedef logic [UnitBits-1:0] unit_t;
  typedef logic [OffBits-1:0] off_t;

  // ----- Where to ---------------------------------------------------------------------------------

  logic word_valid, word_sop, word_eop, way_drop;
  logic [DataWidth-1:0] word_data;
  logic [ PortBits-1:0] way_port;
  vc_t word_vc, way_vc;

  velo_switch_route #(
      .DataWidth(DataWidth),
      .NumLinks (NumLinks),
      .NumVcs   (NumVcs)
  ) u_route (
      .out_valid_o(word_valid),
      .out_sop_o  (word_sop),
      .out_eop_o  (word_eop),
      .out_in_vc_o(word_vc),
      .out_data_o (word_data),
      .port_o     (way_port),
      .vc_o       (way_vc),
      .drop_o     (way_drop),
      .*
  );

  // ----- Writing ----------------------------------------------------------------------------------

  // Side tables of the units, in LUT RAM: what follows, how far it was filled, whose share it is of.
  unit_t unit_next[2**UnitBits];
  logic [OffBits:0] unit_last[2**UnitBits];  // {ends the packet, place of its last word}
  vc_t unit_vc[2**UnitBits];

  logic writing_q, dropping_q, drop, write, take_unit, drop_unit;
  unit_t write_unit_q, write_unit, fresh_unit;
  off_t write_off_q, write_off;

  assign drop = word_sop ? way_drop : dropping_q;
  assign write = word_valid && !drop;
  assign write_unit = word_sop ? fresh_unit : write_unit_q;
  assign write_off = word_sop ? '0 : write_off_q;
  assign take_unit = write && (word_sop || (write_off == LastOff && !word_eop));
  assign drop_unit = word_valid && drop && write_off == '0;
  assign dropped_o = word_valid && drop && word_sop;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writing_q  <= 1'b0;
      dropping_q <= 1'b0;
    end else if (word_valid) begin
      writing_q  <= write && !word_eop;
      dropping_q <= drop && !word_eop;
    end
    if (word_valid) begin
      write_off_q  <= write_off + 1'b1;
      write_unit_q <= write_off == LastOff ? fresh_unit : write_unit;
    end
    if (write) begin
      unit_last[write_unit] <= {word_eop, write_off};
      unit_vc[write_unit]   <= word_vc;
      if (take_unit && !word_sop) unit_next[write_unit] <= fresh_unit;
    end
  end

  // ----- Reading ----------------------------------------------------------------------------------

  logic start_q, busy_q, active, arrived, last, issue, give_back;
  logic [NumPorts-1:0] to_q;
  logic [PortBits-1:0] start_port_q, grant_port;
  vc_t start_vc_q, grant_vc, vc_q;
  unit_t first_unit, unit_q, unit, unit_d;
  off_t off_q, off, off_d;
  logic ending_d, ending_q, fresh_start_q;
  logic finishing;
  vc_t [NumPorts-1:0] pick;

  assign unit = start_q ? first_unit : unit_q;
  assign off = start_q ? '0 : off_q;
  assign active = start_q || busy_q;
  // The writer's unit ends at the writer; any other is as full as it will ever be.
  assign arrived = !(writing_q && write_unit_q == unit) || off < write_off_q;
  assign last = !(writing_q && write_unit_q == unit) && unit_last[unit] == {1'b1, off};
  assign issue = active && arrived && (to_q & stop_i) == '0;
  assign give_back = issue && (last || off == LastOff);

  always_comb begin
    unit_d = unit;
    off_d  = off;
    if (issue) begin
      off_d = off + 1'b1;
      if (off == LastOff) unit_d = unit_next[unit];
    end
  end
  // Foresight for the arbiters: the word of the next cycle is there and is the packet's last. That it
  // may miss one that is just arriving costs a cycle and nothing else.
  assign ending_d = active && !(issue && last) && !(writing_q && write_unit_q == unit_d) &&
      unit_last[unit_d] == {1'b1, off_d};
  assign finishing = ending_q && (to_q & stop_i) == '0;
  assign idle_o = !start_q && (!busy_q || finishing);
  assign going_to_o = (start_q || (busy_q && !finishing)) ? to_q : '0;

  always_comb begin
    grant_port = '0;
    grant_vc   = '0;
    for (int p = 0; p < int'(NumPorts); p++) begin
      if (grant_i[p]) begin
        grant_port = PortBits'(p);
        grant_vc   = pick[p];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      start_q  <= 1'b0;
      busy_q   <= 1'b0;
      ending_q <= 1'b0;
      to_q     <= '0;
    end else begin
      start_q  <= |grant_i;
      busy_q   <= active && !(issue && last);
      ending_q <= ending_d;
      if (|grant_i) to_q <= grant_i;
    end
    start_port_q  <= grant_port;
    start_vc_q    <= grant_vc;
    fresh_start_q <= start_q ? !issue : fresh_start_q && !issue;
    unit_q        <= unit_d;
    off_q         <= off_d;
    if (start_q) vc_q <= start_vc_q;
  end

  velo_switch_queues #(
      .NumPorts(NumPorts),
      .NumVcs  (NumVcs),
      .NumUnits(NumUnits)
  ) u_queues (
      .add_i        (write && word_sop),
      .add_port_i   (way_port),
      .add_vc_i     (way_vc),
      .add_unit_i   (fresh_unit),
      .remove_i     (start_q),
      .remove_port_i(start_port_q),
      .remove_vc_i  (start_vc_q),
      .remove_unit_o(first_unit),
      .some_o       (request_o),
      .pick_o       (pick),
      .*
  );

  velo_switch_pool #(
      .NumUnits(NumUnits)
  ) u_pool (
      .take_i     (take_unit),
      .unit_o     (fresh_unit),
      .free_i     (give_back),
      .free_unit_i(unit),
      .*
  );

  velo_ram #(
      .Width(DataWidth),
      .Depth(2 ** UnitBits * UnitWords)
  ) u_buffer (
      .we_i   (write),
      .waddr_i({write_unit, write_off}),
      .wdata_i(word_data),
      .raddr_i({unit, off}),
      .rdata_o(out_data_o),
      .*
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_to_o <= '0;
    else out_to_o <= issue ? to_q : '0;
    out_sop_o  <= start_q || fresh_start_q;
    out_eop_o  <= last;
    out_unit_o <= off == '0;
    out_vc_o   <= start_q ? start_vc_q : vc_q;
  end

  // ----- Credits ----------------------------------------------------------------------------------

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      freed_o <= '0;
    end else begin
      for (int v = 0; v < int'(NumVcs); v++) begin
        freed_o[v] <= freed_o[v] + count_t'(give_back && unit_vc[unit] == vc_t'(v)) +
            count_t'(drop_unit && word_vc == vc_t'(v));
      end
    end
  end

  `VELO_ASSUME(PacketsWhole, !word_valid || word_sop == !(writing_q || dropping_q))
  `VELO_ASSERT(GrantOnlyToIdle, !(|grant_i) || (idle_o && (grant_i & ~request_o) == '0))
  `VELO_ASSERT(OneOutput, (out_to_o & (out_to_o - 1'b1)) == '0)

endmodule
