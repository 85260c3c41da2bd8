// SPDX-License-Identifier: Apache-2.0
//
// A node with three kinds of clocks: the host's, the core's, and those of its links' serializers.
//
// Core: units, switch and link ports, all that velo_node is. Host: the host port's streams, through
// FIFOs. Link: the PCS of each link, one word clock to send and one recovered clock a lane.
// The border to the links is in the PCS, not between switch and link port: behind it words come and go
// without a gap and without a way back, before it a link port may be asked for idle words and takes them
// anywhere; its credits, acknowledgements and repetitions stay in one clock. So one crossing each way
// does, and its latency is what a cable has anyway.
// The host clock is free. The core clock may be faster than the serializers' word clock by any ratio,
// and not slower than (1 - 1/SkipEvery) of what comes in (velo_pcs).
//
// Order at the host port is that of velo_node: a read is not seen before the writes before it, on each of the
// two ways in; a DMA read and an answer are not seen before the DMA writes before them (velo_cdc_ordered).
// So an answer that says "nothing is under way any more" is true in the host's memory.
// A slow host clock makes pauses inside posted writes: WholeRequests = 1 waits for the whole packet.
//
// `rst_ni` is asynchronous and clears all domains; each leaves it by its own clock.
// Latency: as velo_node, and 4 cycles of the slower clock for each crossing of a stream; links: velo_pcs.
// Errors: as velo_node; those of the links' codes in `pcs_*_o`, in the core clock.
// Source: case-for-fpga, section 3.C (host interface at 200 MHz, core logic at 156 MHz).

`include "velo_assert.svh"

module velo_node_clocks
  import velo_pkg::*;
  import velo_host_pkg::*;
  import velo_link_pkg::*;
  import velo_pcs_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,  // see velo_node
    parameter bit WholeRequests = 1'b1,
    parameter int unsigned NumVelo = 1,
    parameter int unsigned VeloWidth = DataWidth,
    parameter bit Ecc = 1'b0,  // this and what follows: see velo_node
    parameter bit Multicast = 1'b0,
    parameter bit Barrier = 1'b0,
    parameter bit Congestion = 1'b0,
    parameter int unsigned HostDepth = 16,  // of the host port's FIFOs, a power of two
    parameter coding_e Coding = Coding8b10b,
    localparam int unsigned NumLanes = DataWidth / lane_bits(Coding),
    localparam int unsigned WireBits = wire_bits(Coding)
) (
    input logic rst_ni,  // asynchronous, of all domains

    input logic host_clk_i,  // of the host port
    input logic core_clk_i,  // of units, switch and link ports
    input logic link_clk_i,  // of the serializers, a word a cycle

    // Host clock: as in velo_node.
    input  host_request_t                  host_request_i,
    input  logic           [DataWidth-1:0] host_write_data_i,
    output host_response_t                 host_response_o,
    output logic           [DataWidth-1:0] host_answer_data_o,
    input  host_request_t                  control_request_i,
    input  logic           [DataWidth-1:0] control_write_data_i,
    output host_response_t                 control_response_o,
    output logic           [DataWidth-1:0] control_answer_data_o,
    output dma_request_t                   dma_request_o,
    output logic           [DataWidth-1:0] dma_write_data_o,
    input  dma_response_t                  dma_response_i,
    input  logic           [DataWidth-1:0] dma_answer_data_i,

    // Links, lane by lane; bit 0 is on the wire first.
    output logic [NumLinks-1:0][NumLanes-1:0][WireBits-1:0] wire_o,    // link clock
    input  logic [NumLinks-1:0][NumLanes-1:0]               rx_clk_i,  // recovered
    input  logic [NumLinks-1:0][NumLanes-1:0]               signal_i,  // a signal is seen
    input  logic [NumLinks-1:0][NumLanes-1:0][WireBits-1:0] wire_i,    // recovered clocks

    output logic [NumLinks-1:0]       pcs_up_o,                // core clock; see velo_pcs
    output logic [NumLinks-1:0][15:0] pcs_code_errors_o,
    output logic [NumLinks-1:0][15:0] pcs_disparity_errors_o,
    output logic [NumLinks-1:0][15:0] pcs_skips_o,
    output logic [NumLinks-1:0][15:0] pcs_lock_losses_o,
    output logic [NumLinks-1:0][15:0] pcs_lost_words_o,

    output logic [7:0] node_id_o  // host clock
);

  // ----- Resets -------------------------------------------------------------------------------------

  logic host_rst_n, core_rst_n;
  velo_rst_sync u_host_rst (
      .clk_i (host_clk_i),
      .rst_ni(rst_ni),
      .rst_no(host_rst_n)
  );
  velo_rst_sync u_core_rst (
      .clk_i (core_clk_i),
      .rst_ni(rst_ni),
      .rst_no(core_rst_n)
  );

  // ----- From the host: a load behind the stores before it ------------------------------------------

  localparam int unsigned WriteBits = $bits(host_write_t) + DataWidth;
  localparam int unsigned AnswerBits = $bits(host_answer_t) + DataWidth;
  localparam int unsigned DmaAnswerBits = $bits(dma_answer_t) + DataWidth;

  // In the core clock.
  host_request_t host_request, control_request;
  host_response_t host_response, control_response;
  dma_request_t  dma_request;
  dma_response_t dma_response;
  logic [DataWidth-1:0] host_write_data, host_answer_data, control_write_data, control_answer_data;
  logic [DataWidth-1:0] dma_write_data, dma_answer_data;

  velo_cdc_ordered #(
      .LeadWidth  (WriteBits),
      .NumBehind  (1),
      .BehindWidth($bits(host_read_t)),
      .Depth      (HostDepth)
  ) u_messages (
      .clk_i         (host_clk_i),
      .rst_ni        (host_rst_n),
      .lead_valid_i  (host_request_i.write_valid),
      .lead_ready_o  (host_response_o.write_ready),
      .lead_data_i   ({host_request_i.write, host_write_data_i}),
      .behind_valid_i(host_request_i.read_valid),
      .behind_ready_o(host_response_o.read_ready),
      .behind_data_i (host_request_i.read),
      .pop_clk_i     (core_clk_i),
      .pop_rst_ni    (core_rst_n),
      .lead_valid_o  (host_request.write_valid),
      .lead_ready_i  (host_response.write_ready),
      .lead_data_o   ({host_request.write, host_write_data}),
      .behind_valid_o(host_request.read_valid),
      .behind_ready_i(host_response.read_ready),
      .behind_data_o (host_request.read)
  );

  velo_cdc_ordered #(
      .LeadWidth  (WriteBits),
      .NumBehind  (1),
      .BehindWidth($bits(host_read_t)),
      .Depth      (HostDepth)
  ) u_control (
      .clk_i         (host_clk_i),
      .rst_ni        (host_rst_n),
      .lead_valid_i  (control_request_i.write_valid),
      .lead_ready_o  (control_response_o.write_ready),
      .lead_data_i   ({control_request_i.write, control_write_data_i}),
      .behind_valid_i(control_request_i.read_valid),
      .behind_ready_o(control_response_o.read_ready),
      .behind_data_i (control_request_i.read),
      .pop_clk_i     (core_clk_i),
      .pop_rst_ni    (core_rst_n),
      .lead_valid_o  (control_request.write_valid),
      .lead_ready_i  (control_response.write_ready),
      .lead_data_o   ({control_request.write, control_write_data}),
      .behind_valid_o(control_request.read_valid),
      .behind_ready_i(control_response.read_ready),
      .behind_data_o (control_request.read)
  );

  // Data that the node asked for wait for nobody.
  logic [$clog2(HostDepth):0] unused_count;
  velo_cdc_fifo #(
      .Width(DmaAnswerBits),
      .Depth(HostDepth)
  ) u_dma_answer (
      .clk_i       (host_clk_i),
      .rst_ni      (host_rst_n),
      .push_valid_i(dma_response_i.answer_valid),
      .push_ready_o(dma_request_o.answer_ready),
      .push_data_i ({dma_response_i.answer, dma_answer_data_i}),
      .push_count_o(unused_count),
      .pop_clk_i   (core_clk_i),
      .pop_rst_ni  (core_rst_n),
      .pop_valid_o (dma_response.answer_valid),
      .pop_ready_i (dma_request.answer_ready),
      .pop_data_o  ({dma_response.answer, dma_answer_data})
  );

  // ----- To the host: reads and answers behind the DMA writes before them ----------------------------

  localparam int unsigned ReadBits = $bits(dma_read_t);
  localparam int unsigned BehindBits = AnswerBits > ReadBits ? AnswerBits : ReadBits;

  logic [2:0][BehindBits-1:0] dma_behind;
  velo_cdc_ordered #(
      .LeadWidth  (WriteBits),
      .NumBehind  (3),
      .BehindWidth(BehindBits),
      .Depth      (HostDepth)
  ) u_dma (
      .clk_i(core_clk_i),
      .rst_ni(core_rst_n),
      .lead_valid_i(dma_request.write_valid),
      .lead_ready_o(dma_response.write_ready),
      .lead_data_i({dma_request.write, dma_write_data}),
      .behind_valid_i({
        control_response.answer_valid, host_response.answer_valid, dma_request.read_valid
      }),
      .behind_ready_o({
        control_request.answer_ready, host_request.answer_ready, dma_response.read_ready
      }),
      .behind_data_i({
        BehindBits'({control_response.answer, control_answer_data}),
        BehindBits'({host_response.answer, host_answer_data}),
        BehindBits'(dma_request.read)
      }),
      .pop_clk_i(host_clk_i),
      .pop_rst_ni(host_rst_n),
      .lead_valid_o(dma_request_o.write_valid),
      .lead_ready_i(dma_response_i.write_ready),
      .lead_data_o({dma_request_o.write, dma_write_data_o}),
      .behind_valid_o({
        control_response_o.answer_valid, host_response_o.answer_valid, dma_request_o.read_valid
      }),
      .behind_ready_i({
        control_request_i.answer_ready, host_request_i.answer_ready, dma_response_i.read_ready
      }),
      .behind_data_o(dma_behind)
  );
  assign dma_request_o.read = dma_read_t'(dma_behind[0]);
  assign {host_response_o.answer, host_answer_data_o} = AnswerBits'(dma_behind[1]);
  assign {control_response_o.answer, control_answer_data_o} = AnswerBits'(dma_behind[2]);

  // ----- The node -----------------------------------------------------------------------------------

  logic [7:0] node_id;
  logic id_ready, id_valid;
  logic [NumLinks-1:0] phy_up, phy_pause;
  logic [NumLinks-1:0][1:0] to_wire, from_wire;
  logic [NumLinks-1:0][DataWidth-1:0] word_to_wire, word_from_wire;

  velo_node #(
      .DataWidth    (DataWidth),
      .NumLinks     (NumLinks),
      .NumVcs       (NumVcs),
      .MtuBytes     (MtuBytes),
      .CtxBits      (CtxBits),
      .CustomUnit   (CustomUnit),
      .DimmnetUnit  (DimmnetUnit),
      .WholeRequests(WholeRequests),
      .NumVelo      (NumVelo),
      .VeloWidth    (VeloWidth),
      .Ecc          (Ecc),
      .Multicast    (Multicast),
      .Barrier      (Barrier),
      .Congestion   (Congestion)
  ) u_node (
      .clk_i(core_clk_i),
      .rst_ni(core_rst_n),
      .host_request_i(host_request),
      .host_write_data_i(host_write_data),
      .host_response_o(host_response),
      .host_answer_data_o(host_answer_data),
      .control_request_i(control_request),
      .control_write_data_i(control_write_data),
      .control_response_o(control_response),
      .control_answer_data_o(control_answer_data),
      .dma_request_o(dma_request),
      .dma_write_data_o(dma_write_data),
      .dma_response_i(dma_response),
      .dma_answer_data_i(dma_answer_data),
      .phy_up_i(phy_up),
      .phy_kind_i(from_wire),
      .phy_data_i(word_from_wire),
      .phy_pause_i(phy_pause),
      .phy_kind_o(to_wire),
      .phy_data_o(word_to_wire),
      .node_id_o(node_id)
  );

  velo_cdc_bus #(
      .Width(8)
  ) u_node_id (
      .clk_i      (core_clk_i),
      .rst_ni     (core_rst_n),
      .src_valid_i(1'b1),
      .src_ready_o(id_ready),
      .src_data_i (node_id),
      .dst_clk_i  (host_clk_i),
      .dst_rst_ni (host_rst_n),
      .dst_valid_o(id_valid),
      .dst_data_o (node_id_o)
  );

  // ----- The links ----------------------------------------------------------------------------------

  for (genvar l = 0; l < NumLinks; l++) begin : gen_link
    kind_e kind;
    assign from_wire[l] = kind;

    velo_pcs #(
        .Coding    (Coding),
        .NumLanes  (NumLanes),
        .TxCrossing(1'b1)
    ) u_pcs (
        .clk_i             (core_clk_i),
        .rst_ni            (core_rst_n),
        .link_kind_i       (kind_e'(to_wire[l])),
        .link_data_i       (word_to_wire[l]),
        .link_pause_o      (phy_pause[l]),
        .link_kind_o       (kind),
        .link_data_o       (word_from_wire[l]),
        .up_o              (phy_up[l]),
        .tx_clk_i          (link_clk_i),
        .wire_o            (wire_o[l]),
        .rx_clk_i          (rx_clk_i[l]),
        .signal_i          (signal_i[l]),
        .wire_i            (wire_i[l]),
        .code_errors_o     (pcs_code_errors_o[l]),
        .disparity_errors_o(pcs_disparity_errors_o[l]),
        .skips_o           (pcs_skips_o[l]),
        .lock_losses_o     (pcs_lock_losses_o[l]),
        .lost_words_o      (pcs_lost_words_o[l])
    );
  end
  assign pcs_up_o = phy_up;

  logic unused;
  assign unused = ^{unused_count, id_ready, id_valid, dma_behind};

  `VELO_ASSERT_INIT(LanesCarryTheWord, NumLanes >= 1 && NumLanes * lane_bits(Coding) == DataWidth)

endmodule
