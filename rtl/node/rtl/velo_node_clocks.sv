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
  import htax_pkg::*;
  import velo_link_pkg::*;
  import velo_pcs_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit WholeRequests = 1'b1,
    parameter int unsigned HostDepth = 16,  // of the host port's FIFOs, a power of two
    parameter coding_e Coding = Coding8b10b,
    localparam int unsigned NumLanes = DataWidth / lane_bits(Coding),
    localparam int unsigned WireBits = wire_bits(Coding)
) (
    input logic rst_ni,  // asynchronous, of all domains

    input logic host_clk_i,  // of the host port
    input logic core_clk_i,  // of units, switch and link ports
    input logic link_clk_i,  // of the serializers, a word a cycle

    // host clock: stores and messages, as in velo_node.
    input logic host_write_valid_i,
    output logic host_write_ready_o,
    input logic host_write_eop_i,
    input logic [AddrBits-1:0] host_write_addr_i,
    input logic [9:0] host_write_len_bytes_i,
    input logic [DataWidth-1:0] host_write_data_i,

    // host clock: loads.
    input logic host_read_valid_i,
    output logic host_read_ready_o,
    input logic [AddrBits-1:0] host_read_addr_i,
    input logic [9:0] host_read_len_bytes_i,
    input logic [7:0] host_read_tag_i,

    // host clock: their answers.
    output logic host_answer_valid_o,
    input logic host_answer_ready_i,
    output logic host_answer_eop_o,
    output logic host_answer_error_o,
    output logic [7:0] host_answer_tag_o,
    output logic [DataWidth-1:0] host_answer_data_o,

    // host clock: stores to registers.
    input logic control_write_valid_i,
    output logic control_write_ready_o,
    input logic control_write_eop_i,
    input logic [AddrBits-1:0] control_write_addr_i,
    input logic [9:0] control_write_len_bytes_i,
    input logic [DataWidth-1:0] control_write_data_i,

    // host clock: loads of registers.
    input logic control_read_valid_i,
    output logic control_read_ready_o,
    input logic [AddrBits-1:0] control_read_addr_i,
    input logic [9:0] control_read_len_bytes_i,
    input logic [7:0] control_read_tag_i,

    // host clock: their answers.
    output logic control_answer_valid_o,
    input logic control_answer_ready_i,
    output logic control_answer_eop_o,
    output logic control_answer_error_o,
    output logic [7:0] control_answer_tag_o,
    output logic [DataWidth-1:0] control_answer_data_o,

    // host clock: writes to host memory.
    output logic dma_write_valid_o,
    input logic dma_write_ready_i,
    output logic dma_write_eop_o,
    output logic [AddrBits-1:0] dma_write_addr_o,
    output logic [9:0] dma_write_len_bytes_o,
    output logic [DataWidth-1:0] dma_write_data_o,

    // host clock: reads of host memory.
    output logic dma_read_valid_o,
    input logic dma_read_ready_i,
    output logic [AddrBits-1:0] dma_read_addr_o,
    output logic [9:0] dma_read_len_bytes_o,
    output logic [11:0] dma_read_tag_o,

    // host clock: their data.
    input logic dma_answer_valid_i,
    output logic dma_answer_ready_o,
    input logic dma_answer_eop_i,
    input logic dma_answer_error_i,
    input logic [11:0] dma_answer_tag_i,
    input logic [DataWidth-1:0] dma_answer_data_i,

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

  // ----- The host port's streams, in the core clock -------------------------------------------------

  typedef struct packed {
    logic eop;
    logic [AddrBits-1:0] addr;
    logic [9:0] len_bytes;
    logic [DataWidth-1:0] data;
  } write_t;

  typedef struct packed {
    logic [AddrBits-1:0] addr;
    logic [9:0] len_bytes;
    logic [7:0] tag;
  } load_t;

  typedef struct packed {
    logic eop;
    logic error;
    logic [7:0] tag;
    logic [DataWidth-1:0] data;
  } answer_t;

  typedef struct packed {
    logic [AddrBits-1:0] addr;
    logic [9:0] len_bytes;
    logic [11:0] tag;
  } dma_read_t;

  typedef struct packed {
    logic eop;
    logic error;
    logic [11:0] tag;
    logic [DataWidth-1:0] data;
  } dma_answer_t;

  write_t host_write, control_write, dma_write;  // core side
  write_t host_side_host_write, host_side_control_write, host_side_dma_write;
  load_t host_read, control_read;  // core side
  load_t host_side_host_read, host_side_control_read;
  answer_t host_answer, control_answer;  // core side
  answer_t host_side_host_answer, host_side_control_answer;
  dma_read_t   dma_read;  // core side
  dma_read_t   host_side_dma_read;
  dma_answer_t dma_answer;  // core side
  dma_answer_t host_side_dma_answer;
  logic
      host_write_valid,
      host_write_ready,
      host_read_valid,
      host_read_ready,
      host_answer_valid,
      host_answer_ready,
      control_write_valid,
      control_write_ready,
      control_read_valid,
      control_read_ready,
      control_answer_valid,
      control_answer_ready,
      dma_write_valid,
      dma_write_ready,
      dma_read_valid,
      dma_read_ready,
      dma_answer_valid,
      dma_answer_ready;

  assign host_side_host_write = '{
          eop: host_write_eop_i,
          addr: host_write_addr_i,
          len_bytes: host_write_len_bytes_i,
          data: host_write_data_i
      };
  assign host_side_host_read = '{
          addr: host_read_addr_i,
          len_bytes: host_read_len_bytes_i,
          tag: host_read_tag_i
      };
  assign host_answer_eop_o = host_side_host_answer.eop;
  assign host_answer_error_o = host_side_host_answer.error;
  assign {host_answer_tag_o, host_answer_data_o} = host_side_host_answer[DataWidth+7:0];
  assign host_side_control_write = '{
          eop: control_write_eop_i,
          addr: control_write_addr_i,
          len_bytes: control_write_len_bytes_i,
          data: control_write_data_i
      };
  assign host_side_control_read = '{
          addr: control_read_addr_i,
          len_bytes: control_read_len_bytes_i,
          tag: control_read_tag_i
      };
  assign control_answer_eop_o = host_side_control_answer.eop;
  assign control_answer_error_o = host_side_control_answer.error;
  assign control_answer_tag_o = host_side_control_answer.tag;
  assign control_answer_data_o = host_side_control_answer.data;
  assign {dma_write_eop_o, dma_write_addr_o} = {host_side_dma_write.eop, host_side_dma_write.addr};
  assign dma_write_len_bytes_o = host_side_dma_write.len_bytes;
  assign dma_write_data_o = host_side_dma_write.data;
  assign {dma_read_addr_o, dma_read_len_bytes_o, dma_read_tag_o} = host_side_dma_read;
  assign host_side_dma_answer = '{
          eop: dma_answer_eop_i,
          error: dma_answer_error_i,
          tag: dma_answer_tag_i,
          data: dma_answer_data_i
      };

  // ----- From the host: a load behind the stores before it ------------------------------------------

  logic [0:0][$bits(load_t)-1:0] messages_behind;
  velo_cdc_ordered #(
      .LeadWidth  ($bits(write_t)),
      .NumBehind  (1),
      .BehindWidth($bits(load_t)),
      .Depth      (HostDepth)
  ) u_messages (
      .clk_i         (host_clk_i),
      .rst_ni        (host_rst_n),
      .lead_valid_i  (host_write_valid_i),
      .lead_ready_o  (host_write_ready_o),
      .lead_data_i   (host_side_host_write),
      .behind_valid_i(host_read_valid_i),
      .behind_ready_o(host_read_ready_o),
      .behind_data_i ({$bits(load_t)'(host_side_host_read)}),
      .pop_clk_i     (core_clk_i),
      .pop_rst_ni    (core_rst_n),
      .lead_valid_o  (host_write_valid),
      .lead_ready_i  (host_write_ready),
      .lead_data_o   (host_write),
      .behind_valid_o(host_read_valid),
      .behind_ready_i(host_read_ready),
      .behind_data_o (messages_behind)
  );
  assign host_read = load_t'(messages_behind[0]);

  logic [0:0][$bits(load_t)-1:0] control_behind;
  velo_cdc_ordered #(
      .LeadWidth  ($bits(write_t)),
      .NumBehind  (1),
      .BehindWidth($bits(load_t)),
      .Depth      (HostDepth)
  ) u_control (
      .clk_i         (host_clk_i),
      .rst_ni        (host_rst_n),
      .lead_valid_i  (control_write_valid_i),
      .lead_ready_o  (control_write_ready_o),
      .lead_data_i   (host_side_control_write),
      .behind_valid_i(control_read_valid_i),
      .behind_ready_o(control_read_ready_o),
      .behind_data_i ({$bits(load_t)'(host_side_control_read)}),
      .pop_clk_i     (core_clk_i),
      .pop_rst_ni    (core_rst_n),
      .lead_valid_o  (control_write_valid),
      .lead_ready_i  (control_write_ready),
      .lead_data_o   (control_write),
      .behind_valid_o(control_read_valid),
      .behind_ready_i(control_read_ready),
      .behind_data_o (control_behind)
  );
  assign control_read = load_t'(control_behind[0]);

  // Data that the node asked for wait for nobody.
  logic [$clog2(HostDepth):0] unused_count;
  velo_cdc_fifo #(
      .Width($bits(dma_answer_t)),
      .Depth(HostDepth)
  ) u_dma_answer (
      .clk_i       (host_clk_i),
      .rst_ni      (host_rst_n),
      .push_valid_i(dma_answer_valid_i),
      .push_ready_o(dma_answer_ready_o),
      .push_data_i (host_side_dma_answer),
      .push_count_o(unused_count),
      .pop_clk_i   (core_clk_i),
      .pop_rst_ni  (core_rst_n),
      .pop_valid_o (dma_answer_valid),
      .pop_ready_i (dma_answer_ready),
      .pop_data_o  (dma_answer)
  );

  // ----- To the host: reads and answers behind the DMA writes before them ----------------------------

  localparam int unsigned BehindBits = $bits(
      answer_t
  ) > $bits(
      dma_read_t
  ) ? $bits(
      answer_t
  ) : $bits(
      dma_read_t
  );

  logic [2:0][BehindBits-1:0] dma_behind;
  velo_cdc_ordered #(
      .LeadWidth  ($bits(write_t)),
      .NumBehind  (3),
      .BehindWidth(BehindBits),
      .Depth      (HostDepth)
  ) u_dma (
      .clk_i(core_clk_i),
      .rst_ni(core_rst_n),
      .lead_valid_i(dma_write_valid),
      .lead_ready_o(dma_write_ready),
      .lead_data_i(dma_write),
      .behind_valid_i({control_answer_valid, host_answer_valid, dma_read_valid}),
      .behind_ready_o({control_answer_ready, host_answer_ready, dma_read_ready}),
      .behind_data_i({
        BehindBits'(control_answer), BehindBits'(host_answer), BehindBits'(dma_read)
      }),
      .pop_clk_i(host_clk_i),
      .pop_rst_ni(host_rst_n),
      .lead_valid_o(dma_write_valid_o),
      .lead_ready_i(dma_write_ready_i),
      .lead_data_o(host_side_dma_write),
      .behind_valid_o({control_answer_valid_o, host_answer_valid_o, dma_read_valid_o}),
      .behind_ready_i({control_answer_ready_i, host_answer_ready_i, dma_read_ready_i}),
      .behind_data_o(dma_behind)
  );
  assign host_side_dma_read = dma_read_t'(dma_behind[0]);
  assign host_side_host_answer = answer_t'(dma_behind[1]);
  assign host_side_control_answer = answer_t'(dma_behind[2]);

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
      .WholeRequests(WholeRequests)
  ) u_node (
      .clk_i(core_clk_i),
      .rst_ni(core_rst_n),
      .host_write_valid_i(host_write_valid),
      .host_write_ready_o(host_write_ready),
      .host_write_eop_i(host_write.eop),
      .host_write_addr_i(host_write.addr),
      .host_write_len_bytes_i(host_write.len_bytes),
      .host_write_data_i(host_write.data),
      .host_read_valid_i(host_read_valid),
      .host_read_ready_o(host_read_ready),
      .host_read_addr_i(host_read.addr),
      .host_read_len_bytes_i(host_read.len_bytes),
      .host_read_tag_i(host_read.tag),
      .host_answer_valid_o(host_answer_valid),
      .host_answer_ready_i(host_answer_ready),
      .host_answer_eop_o(host_answer.eop),
      .host_answer_error_o(host_answer.error),
      .host_answer_tag_o(host_answer.tag),
      .host_answer_data_o(host_answer.data),
      .control_write_valid_i(control_write_valid),
      .control_write_ready_o(control_write_ready),
      .control_write_eop_i(control_write.eop),
      .control_write_addr_i(control_write.addr),
      .control_write_len_bytes_i(control_write.len_bytes),
      .control_write_data_i(control_write.data),
      .control_read_valid_i(control_read_valid),
      .control_read_ready_o(control_read_ready),
      .control_read_addr_i(control_read.addr),
      .control_read_len_bytes_i(control_read.len_bytes),
      .control_read_tag_i(control_read.tag),
      .control_answer_valid_o(control_answer_valid),
      .control_answer_ready_i(control_answer_ready),
      .control_answer_eop_o(control_answer.eop),
      .control_answer_error_o(control_answer.error),
      .control_answer_tag_o(control_answer.tag),
      .control_answer_data_o(control_answer.data),
      .dma_write_valid_o(dma_write_valid),
      .dma_write_ready_i(dma_write_ready),
      .dma_write_eop_o(dma_write.eop),
      .dma_write_addr_o(dma_write.addr),
      .dma_write_len_bytes_o(dma_write.len_bytes),
      .dma_write_data_o(dma_write.data),
      .dma_read_valid_o(dma_read_valid),
      .dma_read_ready_i(dma_read_ready),
      .dma_read_addr_o(dma_read.addr),
      .dma_read_len_bytes_o(dma_read.len_bytes),
      .dma_read_tag_o(dma_read.tag),
      .dma_answer_valid_i(dma_answer_valid),
      .dma_answer_ready_o(dma_answer_ready),
      .dma_answer_eop_i(dma_answer.eop),
      .dma_answer_error_i(dma_answer.error),
      .dma_answer_tag_i(dma_answer.tag),
      .dma_answer_data_i(dma_answer.data),
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
