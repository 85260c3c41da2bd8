// SPDX-License-Identifier: Apache-2.0
//
// Output of the switch: the crossbar's multiplexers, and the credits of what is behind.
//
// `to_i[i]`: input i has a word for here; at most one does. Its data come a cycle after the rest, so
// they pass their multiplexer behind the register, the rest in front of it; so does `over_i`, which says
// late that the word is its packet's last; `poison_i` goes with either. `void_i` comes with the data and poisons
// the packet's end, too. `credits_i` is the capacity
// of each channel's buffer behind, `freed_i` counts what it has freed. `may_send_o[vc][size]`: a packet of
// that size fits, so that a packet once begun never waits for credits and never holds the output from
// others.
//
// Small packets could take every credit that a long one waits for. `long_i[vc]`: such a one waits at some
// input. If it has waited through two ticks of PatienceCycles without credits, then all sizes ask for the
// credits of the longest until none waits, and the arbiters are as fair to it as to any other.
//
// `sink_i`: what begins to leave now is swallowed here to its end and takes no credits; a pulse on `sunk_o` for
// each that does not end poisoned. With `any_i` packets may be sent whatever credits there are: it falls earlier, so
// that what had none comes while it is swallowed.
//
// `mark_i`: a packet that begins to leave now gets a mark: bit 3 of its first word, the same in header and route
// word. A mark that a packet has stays.

`include "velo_assert.svh"

module velo_switch_output
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumPorts = 9,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned PatienceCycles = 64,
    parameter bit [NumVcs-1:0] Exists = '1  // channels that come here
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumPorts-1:0]                to_i,
    input  logic [NumPorts-1:0]                sop_i,
    input  logic [NumPorts-1:0]                eop_i,
    input  logic [NumPorts-1:0]                poison_i,
    input  logic [NumPorts-1:0]                unit_i,
    input  vc_t  [NumPorts-1:0]                vc_i,
    input  logic [NumPorts-1:0]                over_i,
    input  logic [NumPorts-1:0][DataWidth-1:0] data_i,
    input  logic [NumPorts-1:0]                void_i,
    input  logic                               mark_i,    // see velo_switch_pressure
    input  logic                               sink_i,
    input  logic                               any_i,
    output logic                               sunk_o,

    output logic                 out_valid_o,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic                 out_poison_o,
    output vc_t                  out_vc_o,
    output logic [DataWidth-1:0] out_data_o,

    input  count_t              credits_i,
    input  count_t [NumVcs-1:0] freed_i,
    output count_t [NumVcs-1:0] avail_o,
    input  logic   [NumVcs-1:0] long_i,

    output logic [NumVcs-1:0][NumSizes-1:0] may_send_o
);

  logic sop, eop, eop_q, poison, poison_q, unit, over, mark_q, sinks, sinks_q, gone_q;
  vc_t vc;
  logic [NumPorts-1:0] to_q;

  always_comb begin
    sop = 1'b0;
    eop = 1'b0;
    poison = 1'b0;
    unit = 1'b0;
    vc = '0;
    for (int i = 0; i < int'(NumPorts); i++) begin
      if (to_i[i]) begin
        sop |= sop_i[i];
        eop |= eop_i[i];
        poison |= poison_i[i];
        unit |= unit_i[i];
        vc |= vc_i[i];
      end
    end
  end

  // Credits are counted behind the register; see need_credits() for why that may be late.
  logic unit_q;
  assign sinks = sop ? sink_i : sinks_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      out_valid_o <= 1'b0;
      unit_q      <= 1'b0;
      sinks_q     <= 1'b0;
      gone_q      <= 1'b0;
    end else begin
      out_valid_o <= |to_i && !sinks;
      unit_q      <= unit && !sinks;
      sinks_q     <= sinks;
      gone_q      <= |to_i && sinks;
    end
  end
  assign sunk_o = gone_q && out_eop_o && !out_poison_o;
  always_ff @(posedge clk_i) begin
    out_sop_o <= sop;
    eop_q     <= eop;
    poison_q  <= poison;
    mark_q    <= mark_i && sop;
    out_vc_o  <= vc;
    to_q      <= to_i;
  end

  always_comb begin
    out_data_o = '0;
    for (int i = 0; i < int'(NumPorts); i++) if (to_q[i]) out_data_o |= data_i[i];
    out_data_o[MarkBit] |= mark_q;
    over = |(to_q & over_i);
    out_eop_o = eop_q || over;
    out_poison_o = (eop_q ? poison_q : |(to_q & over_i & poison_i)) ||
        (out_eop_o && |(to_q & void_i));
  end

  localparam int unsigned TickBits = $clog2(PatienceCycles);
  logic [TickBits-1:0] tick_q;
  logic tick;
  assign tick = tick_q == TickBits'(PatienceCycles - 1);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) tick_q <= '0;
    else tick_q <= tick || long_i == '0 ? '0 : tick_q + 1'b1;
  end

  for (genvar v = 0; v < int'(NumVcs); v++) begin : gen_credit
    if (Exists[v]) begin : gen_exists
      logic [NumSizes-1:0] ok;
      logic waits_q, strict_q;

      assign may_send_o[v] = any_i ? '1 : strict_q ? {NumSizes{ok[NumSizes-1]}} : ok;

      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) begin
          waits_q  <= 1'b0;
          strict_q <= 1'b0;
        end else if (!long_i[v]) begin
          waits_q  <= 1'b0;
          strict_q <= 1'b0;
        end else if (tick && !ok[NumSizes-1]) begin
          waits_q  <= 1'b1;
          strict_q <= waits_q;
        end
      end

      velo_credit #(
          .Width(CountWidth),
          .NumSizes(NumSizes),
          .Thresholds(thresholds(DataWidth, MtuBytes))
      ) u_credit (
          .clk_i,
          .rst_ni,
          .total_i(credits_i),
          .freed_i(freed_i[v]),
          .take_i (unit_q && out_vc_o == vc_t'(v)),
          .avail_o(avail_o[v]),
          .ok_o   (ok)
      );
    end else begin : gen_none
      logic unused;
      assign unused = ^{freed_i[v], long_i[v]};
      assign avail_o[v] = credits_i;
      assign may_send_o[v] = '0;
    end
  end

  // One packet after the other: no word of another in between.
  logic open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (out_valid_o) open_q <= !out_eop_o;
  end
  `VELO_ASSERT(OneInputAtATime, (to_i & (to_i - 1'b1)) == '0)
  `VELO_ASSERT(NoInterleaving, !out_valid_o || out_sop_o == !open_q)

endmodule
