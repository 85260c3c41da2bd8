// SPDX-License-Identifier: Apache-2.0
//
// Two boards with their SO-DIMMs, joined by a cable, for simulation: ports are arrays over the boards. What a board sends
// is at the other one `WireClocks` later: serializers, cable and, where there is one, a switch.

module dimmnet_board_pair
  import dimmnet_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned WireClocks = 0,
    parameter int unsigned NumSodimms = 2,
    parameter int unsigned PowerUp = 100,
    parameter bit Retransmission = 1'b1,
    parameter int unsigned TimeoutCycles = 4096,
    parameter int unsigned RetryLimit = 7
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                cs_n_i   [2],
    input  logic [         2:0] command_i[2],
    input  logic [BankBits-1:0] bank_i   [2],
    input  logic [ RowBits-1:0] address_i[2],
    input  logic [        63:0] dq_rise_i[2],
    input  logic [        63:0] dq_fall_i[2],
    input  logic [         7:0] dm_rise_i[2],
    input  logic [         7:0] dm_fall_i[2],
    output logic                dq_oe_o  [2],
    output logic [        63:0] dq_rise_o[2],
    output logic [        63:0] dq_fall_o[2],

    input logic        cut_i [2],  // what this board sends is lost
    input logic [69:0] flip_i[2],  // bits that are wrong of what it sends: first, last, bytes, word

    // Where a packet is, for measuring: a command comes in at CoreLogic, a packet's last word goes out and its first
    // word comes in at SWIF, the write pointer of the statuses has moved.
    output logic       command_o[2],
    output logic       sent_o   [2],
    output logic       coming_o [2],
    output logic       status_o [2],
    // A word of a packet goes out.
    output logic       sending_o[2],
    // CoreLogic has nothing to send, nothing that came, and asks for nothing in SO-DIMM.
    output logic       quiet_o  [2]
);

  typedef struct packed {
    logic        valid;
    logic        first;
    logic        last;
    logic [3:0]  bytes;
    logic [63:0] word;
  } wire_t;

  wire_t out[2], in[2];

  for (genvar b = 0; b < 2; ++b) begin : gen_board
    dfi_t [NumSodimms-1:0] dfi;
    logic [NumSodimms-1:0][127:0] rddata;
    wire_t made;
    logic [31:0] statuses_q;

    dimmnet_board #(
        .NumSodimms(NumSodimms),
        .PowerUp(PowerUp),
        .Retransmission(Retransmission),
        .TimeoutCycles(TimeoutCycles),
        .RetryLimit(RetryLimit)
    ) u_board (
        .clk_i,
        .rst_ni,
        .cs_n_i        (cs_n_i[b]),
        .command_i     (ddr_command_e'(command_i[b])),
        .bank_i        (bank_i[b]),
        .address_i     (address_i[b]),
        .dq_rise_i     (dq_rise_i[b]),
        .dq_fall_i     (dq_fall_i[b]),
        .dm_rise_i     (dm_rise_i[b]),
        .dm_fall_i     (dm_fall_i[b]),
        .dq_oe_o       (dq_oe_o[b]),
        .dq_rise_o     (dq_rise_o[b]),
        .dq_fall_o     (dq_fall_o[b]),
        .dfi_o         (dfi),
        .dfi_rddata_i  (rddata),
        .net_tx_valid_o(made.valid),
        .net_tx_ready_i(1'b1),
        .net_tx_first_o(made.first),
        .net_tx_last_o (made.last),
        .net_tx_bytes_o(made.bytes),
        .net_tx_word_o (made.word),
        .net_rx_valid_i(in[b].valid),
        .net_rx_first_i(in[b].first),
        .net_rx_last_i (in[b].last),
        .net_rx_bytes_i(in[b].bytes),
        .net_rx_word_i (in[b].word)
    );

    for (genvar s = 0; s < NumSodimms; ++s) begin : gen_sodimm
      logic [14:0] unused_broken;
      logic [31:0] unused_refreshes, unused_activates;
      dimmnet_dram_model #(
          .PowerUp(PowerUp)
      ) u_model (
          .clk_i,
          .rst_ni,
          .dfi_i      (dfi[s]),
          .rddata_o   (rddata[s]),
          .broken_o   (unused_broken),
          .refreshes_o(unused_refreshes),
          .activates_o(unused_activates)
      );
    end

    always_comb begin
      out[b] = made;
      {out[b].first, out[b].last, out[b].bytes, out[b].word} =
          {made.first, made.last, made.bytes, made.word} ^ flip_i[b];
      if (cut_i[b]) out[b].valid = 1'b0;
    end
    assign command_o[b] = u_board.write_valid && u_board.write_ready &&
        u_board.write_address[20:16] == '0 && u_board.write_address[15:12] == DimmnetPageRegister &&
        u_board.write_address[11:4] == 8'(DimmnetRegisterBotf / 2) && u_board.write_be[0];
    assign sending_o[b] = made.valid;
    assign sent_o[b] = made.valid && made.last;
    assign coming_o[b] = in[b].valid && in[b].first;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) statuses_q <= '0;
      else statuses_q <= u_board.u_core.status_write[0];
    end
    assign quiet_o[b] = !(u_board.tx_valid || u_board.rx_valid || u_board.mem_valid ||
        u_board.u_core.head_valid);
    assign status_o[b] = u_board.u_core.status_write[0] != statuses_q;
  end

  if (WireClocks == 0) begin : gen_tied
    assign in[0] = out[1];
    assign in[1] = out[0];
  end else begin : gen_wire
    wire_t under_way[2][WireClocks];
    for (genvar b = 0; b < 2; ++b) begin : gen_way
      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) begin
          for (int i = 0; i < int'(WireClocks); i++) under_way[b][i] <= '0;
        end else begin
          under_way[b][0] <= out[1-b];
          for (int i = 1; i < int'(WireClocks); i++) under_way[b][i] <= under_way[b][i-1];
        end
      end
      assign in[b] = under_way[b][WireClocks-1];
    end
  end

endmodule
