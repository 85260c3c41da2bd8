// SPDX-License-Identifier: Apache-2.0
//
// One channel of the on-chip crossbar, one transaction at a time per target.
//
// `Reach` says which targets each source has; there is no logic for other pairs. A source without any has
// no buffer, and is never ready.
//
// Each source has a buffer of its own; each target a round-robin arbiter that keeps its choice until
// the transaction's last beat. The buffer costs one cycle, the crossbar none. Sources for different
// targets do not delay each other, except that a source's transactions stay in order.
//
// A target that one source reaches has no arbiter; its `out_eop_o` and `out_data_o` mean nothing without `out_valid_o`.
//
// Both sides valid/ready. `in_target_i` is one-hot and holds for the transaction; `in_eop_i` marks its
// last beat. An offered beat stands until it is taken. `in_count_o`: beats in a
// source's buffer; `in_taken_o`: one of them is being taken. Errors: none.
//
// Source: VELO paper, section 3 (the HT core's channels are kept behind it by a crossbar);
// arbitration as in case-for-fpga, section 3.

`include "velo_assert.svh"

module htax_channel #(
    parameter int unsigned NumPorts = 4,
    parameter int unsigned Width = 32,
    // By source, then target.
    parameter logic [NumPorts-1:0][NumPorts-1:0] Reach = '1,
    localparam int unsigned Depth = 2
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumPorts-1:0]                  in_valid_i,
    output logic [NumPorts-1:0]                  in_ready_o,
    input  logic [NumPorts-1:0][   NumPorts-1:0] in_target_i,
    input  logic [NumPorts-1:0]                  in_eop_i,
    input  logic [NumPorts-1:0][      Width-1:0] in_data_i,
    output logic [NumPorts-1:0][$clog2(Depth):0] in_count_o,
    output logic [NumPorts-1:0]                  in_taken_o,

    output logic [NumPorts-1:0]            out_valid_o,
    input  logic [NumPorts-1:0]            out_ready_i,
    output logic [NumPorts-1:0]            out_eop_o,
    output logic [NumPorts-1:0][Width-1:0] out_data_o
);

  typedef struct packed {
    logic [NumPorts-1:0] target;
    logic                eop;
    logic [Width-1:0]    data;
  } beat_t;

  logic [NumPorts-1:0] head_valid, head_ready;
  beat_t [NumPorts-1:0] head;
  assign in_taken_o = head_valid & head_ready;
  // By target, then source.
  logic [NumPorts-1:0][NumPorts-1:0] served;

  for (genvar s = 0; s < NumPorts; s++) begin : gen_source
    if (Reach[s] == '0) begin : gen_none
      assign in_ready_o[s] = 1'b0;
      assign in_count_o[s] = '0;
      assign head_valid[s] = 1'b0;
      assign head[s]       = '0;
      logic unused;
      assign unused = ^{in_valid_i[s], in_target_i[s], in_eop_i[s], in_data_i[s], head_ready[s]};
    end else begin : gen_buffer
      velo_fifo #(
          .Width($bits(beat_t)),
          .Depth(Depth)
      ) u_buffer (
          .clk_i,
          .rst_ni,
          .push_valid_i(in_valid_i[s]),
          .push_ready_o(in_ready_o[s]),
          .push_data_i ({in_target_i[s], in_eop_i[s], in_data_i[s]}),
          .pop_valid_o (head_valid[s]),
          .pop_ready_i (head_ready[s]),
          .pop_data_o  (head[s]),
          .count_o     (in_count_o[s])
      );
      `VELO_ASSUME(WithinReach, !in_valid_i[s] || (in_target_i[s] & ~Reach[s]) == '0)
    end

    always_comb begin
      head_ready[s] = 1'b0;
      for (int unsigned t = 0; t < NumPorts; t++) begin
        head_ready[s] |= served[t][s] && out_ready_i[t];
      end
    end
  end

  // `Reach` by target, then source.
  function automatic logic [NumPorts-1:0][NumPorts-1:0] by_target();
    logic [NumPorts-1:0][NumPorts-1:0] sources;
    for (int unsigned s = 0; s < NumPorts; s++) begin
      for (int unsigned t = 0; t < NumPorts; t++) sources[t][s] = Reach[s][t];
    end
    return sources;
  endfunction
  localparam logic [NumPorts-1:0][NumPorts-1:0] AllSources = by_target();

  for (genvar t = 0; t < NumPorts; t++) begin : gen_target
    localparam logic [NumPorts-1:0] Sources = AllSources[t];
    logic [NumPorts-1:0] requests;

    always_comb begin
      for (int unsigned s = 0; s < NumPorts; s++) begin
        requests[s] = Reach[s][t] && head_valid[s] && head[s].target[t];
      end
    end

    assign out_valid_o[t] = |served[t];

    if ((Sources & (Sources - 1'b1)) == '0) begin : gen_one
      // Nobody to choose from: what the source shows is the offer, without a gate.
      assign served[t] = requests;

      always_comb begin
        out_eop_o[t]  = 1'b0;
        out_data_o[t] = '0;
        for (int unsigned s = 0; s < NumPorts; s++) begin
          if (Sources[s]) begin
            out_eop_o[t]  = head[s].eop;
            out_data_o[t] = head[s].data;
          end
        end
      end
    end else begin : gen_several
      logic [NumPorts-1:0] grant, owner_q;
      logic kept_q, start;

      velo_rr_arb #(
          .NumReq(NumPorts)
      ) u_arbiter (
          .clk_i,
          .rst_ni,
          .req_i  (requests),
          .grant_o(grant),
          .take_i (start)
      );

      // A choice once shown is kept: the beat on offer must not change while the target is not ready.
      assign start     = !kept_q && |requests;
      assign served[t] = (kept_q ? owner_q : grant) & requests;

      always_comb begin
        out_eop_o[t]  = 1'b0;
        out_data_o[t] = '0;
        for (int unsigned s = 0; s < NumPorts; s++) begin
          out_eop_o[t] |= served[t][s] && head[s].eop;
          out_data_o[t] |= served[t][s] ? head[s].data : '0;
        end
      end

      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) kept_q <= 1'b0;
        else if (out_valid_o[t]) kept_q <= !(out_ready_i[t] && out_eop_o[t]);
      end
      always_ff @(posedge clk_i) begin
        if (start) owner_q <= grant;
      end
    end

    `VELO_ASSERT(OneSourceATime, (served[t] & (served[t] - 1'b1)) == '0)
  end

  for (genvar s = 0; s < NumPorts; s++) begin : gen_assume
    `VELO_ASSUME(OneTarget,
                 !in_valid_i[s] || Reach[s] == '0 || (in_target_i[s] != '0 &&
                 (in_target_i[s] & (in_target_i[s] - 1'b1)) == '0))
  end

endmodule
