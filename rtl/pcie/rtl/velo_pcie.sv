// SPDX-License-Identifier: Apache-2.0
//
// A PCI Express endpoint function around a node: between the transaction-layer packets of a hard block, or of
// LitePCIe, and the node's host port.
//
// Packets: `rx_*`, `tx_*`, AXI streams of 64 bits (velo_pcie_pkg, tlp_beat_t: raw headers and data, `keep` by dwords).
// `rx_bar_i` tells which base address register a request came by. `rx_hold_o`: deliver no requests that want an
// answer, but for two that may be on their way; the others must go on coming. `tx_nonposted_ok_i`: the hard block has
// room for a read; the stream never waits for a read's credits. Configuration space and link are the hard block's;
// what it knows comes in with `config_i`, errors go to it as pulses with `event_o`, for its AER registers.
//
//   BAR0  2^Bar0Bits bytes: the node's registers.
//   BAR2  2^Bar2Bits bytes: the node's window; a store of 8 to 64 bytes is one message or a part of one.
//   BAR4  2^Bar4Bits bytes: MSI-X table, the function's own registers (spec/pcie.toml).
//
// A store is taken if its context has fewer under way than its share (velo_pcie_shares), else dropped at once.
// Writes to BAR0 do not wait for stores to BAR2 before them, which may stand for as long as the network does: see
// velo_pcie_receive. A load of BAR2 waits for them. To the host all writes go in order, and no packet with data for
// the host is let past by another that announces it (velo_pcie_writes).
//
// Reset: `rst_ni` for all; `function_rst_no` is the node's, low after `rst_ni` and in a function-level reset.
// Errors: see the parts; each is counted in BAR4.
// Source: PCI Express Base Specification 3.0; VELO paper, section 3; white paper (function-level reset, MSI-X).

`include "velo_assert.svh"

module velo_pcie
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_host_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Vectors = 8,
    parameter int unsigned StoreLines = 16,
    parameter int unsigned ReadSlots = 8,
    parameter int unsigned Bar0Bits = 28,
    parameter int unsigned Bar2Bits = WindowUnitLsb + 2,
    parameter int unsigned Bar4Bits = PcieBar4Bits
) (
    input logic clk_i,
    input logic rst_ni,

    // Packets from the link.
    input  logic        rx_valid_i,
    output logic        rx_ready_o,
    input  logic        rx_last_i,
    input  logic [ 1:0] rx_keep_i,
    input  logic [63:0] rx_data_i,
    input  bar_t        rx_bar_i,    // of a request
    output logic        rx_hold_o,   // no requests that want an answer

    // Packets to the link.
    output logic        tx_valid_o,
    input  logic        tx_ready_i,
    output logic        tx_last_o,
    output logic [ 1:0] tx_keep_o,
    output logic [63:0] tx_data_o,
    input  logic        tx_nonposted_ok_i, // there is room for a read

    input  config_t        config_i,
    output receive_event_t event_o,
    output logic           unexpected_o,    // a completion that answers nothing
    output logic           timeout_o,       // a read was not answered in time
    input  logic           flr_i,           // function-level reset is wanted
    output logic           flr_done_o,
    output logic           function_rst_no,

    // The node's host port; see velo_node_core.
    output host_request_t         host_request_o,
    output logic           [63:0] host_write_data_o,
    input  host_response_t        host_response_i,
    input  logic           [63:0] host_answer_data_i,
    output host_request_t         control_request_o,
    output logic           [63:0] control_write_data_o,
    input  host_response_t        control_response_i,
    input  logic           [63:0] control_answer_data_i,
    input  dma_request_t          dma_request_i,
    input  logic           [63:0] dma_write_data_i,
    output dma_response_t         dma_response_o,
    output logic           [63:0] dma_answer_data_o
);

  localparam int unsigned IdBits = 16, SourceBits = 8;  // of a context's number
  localparam int unsigned SendAnswers = 0, SendWrites = 1, SendInterrupts = 2, SendReads = 3;

  logic open, idle, discard, restart;
  pcie_setting_t setting;

  typedef struct packed {
    logic                valid;
    logic [Bar4Bits-1:0] addr;
    logic [63:0]         data;
    logic [7:0]          be;
  } own_write_t;
  own_write_t own;

  // ----- in -------------------------------------------------------------------------------------

  logic store_look, store_room, store_word, store_commit, dropped;
  logic [7:0] store_source, share_lines;
  logic [2:0] store_index;
  logic [63:0] store_data;
  logic [Bar2Bits-1:0] store_addr;
  logic [3:0] store_words;
  pcie_stores_t stores;
  logic control_write_valid, own_write, request_room, request_valid;
  logic [Bar0Bits-1:0] control_addr;
  logic [Bar4Bits-1:0] own_write_addr, own_addr;
  logic [63:0] own_write_data, own_data, msix_data, regs_data, share_word;
  logic [7:0] own_write_be;
  request_t request;
  answer_t answer;

  velo_pcie_receive #(
      .Bar0Bits(Bar0Bits),
      .Bar2Bits(Bar2Bits),
      .Bar4Bits(Bar4Bits)
  ) u_receive (
      .clk_i,
      .rst_ni,
      .open_i         (open),
      .restart_i      (restart),
      .id_i           (config_i.id),
      .rx_i           ('{rx_valid_i, rx_last_i, rx_keep_i, rx_data_i}),
      .rx_bar_i,
      .rx_ready_o,
      .store_look_o   (store_look),
      .store_source_o (store_source),
      .store_room_i   (store_room),
      .store_word_o   (store_word),
      .store_index_o  (store_index),
      .store_data_o   (store_data),
      .store_commit_o (store_commit),
      .store_addr_o   (store_addr),
      .store_words_o  (store_words),
      .dropped_o      (dropped),
      .stores_i       (stores.accepted),
      .control_valid_o(control_write_valid),
      .control_ready_i(control_response_i.write_ready),
      .control_addr_o (control_addr),
      .control_data_o (control_write_data_o),
      .own_write_o    (own.valid),
      .own_addr_o     (own.addr),
      .own_data_o     (own.data),
      .own_be_o       (own.be),
      .request_room_i (request_room),
      .request_valid_o(request_valid),
      .request_o      (request),
      .answer_o       (answer),
      .event_o
  );

  // A write to the function's own registers is told a cycle later, for the sake of the clock.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) own_write <= 1'b0;
    else own_write <= own.valid;
  end
  always_ff @(posedge clk_i) begin
    own_write_addr <= own.addr;
    own_write_data <= own.data;
    own_write_be   <= own.be;
  end

  velo_pcie_shares #(
      .Bar4Bits  (Bar4Bits),
      .SourceBits(SourceBits)
  ) u_shares (
      .clk_i,
      .rst_ni,
      .clear_i         (restart),
      .own_write_i     (own_write),
      .own_write_addr_i(own_write_addr),
      .own_write_data_i(own_write_data),
      .own_write_be_i  (own_write_be),
      .own_addr_i      (own_addr),
      .own_word_o      (share_word),
      .look_i          (store_look),
      .source_i        (store_source),
      .lines_o         (share_lines),
      .dropped_i       (dropped)
  );

  logic host_write_valid;
  host_write_t host_write;
  velo_pcie_stores #(
      .Lines(StoreLines)
  ) u_stores (
      .clk_i,
      .rst_ni       (function_rst_no),
      .source_i     (window_source(64'(store_addr))),
      .share_i      (share_lines),
      .room_o       (store_room),
      .word_i       (store_word),
      .index_i      (store_index),
      .data_i       (store_data),
      .commit_i     (store_commit),
      .addr_i       (AddrBits'(store_addr)),
      .words_i      (store_words),
      .write_valid_o(host_write_valid),
      .write_o      (host_write),
      .write_data_o (host_write_data_o),
      .write_ready_i(host_response_i.write_ready),
      .accepted_o   (stores.accepted),
      .taken_o      (stores.taken)
  );

  // ----- loads ----------------------------------------------------------------------------------

  tlp_beat_t [3:0] send;
  logic [3:0] sent;
  logic host_read_valid, control_read_valid, loads_idle;
  host_read_t read;

  velo_pcie_loads #(
      .Bar0Bits(Bar0Bits),
      .Bar2Bits(Bar2Bits),
      .Bar4Bits(Bar4Bits)
  ) u_loads (
      .clk_i,
      .rst_ni                (function_rst_no),
      .id_i                  (config_i.id),
      .patience_i            (setting.patience),
      .taken_i               (stores.taken),
      .request_room_o        (request_room),
      .request_hold_o        (rx_hold_o),
      .request_valid_i       (request_valid),
      .request_i             (request),
      .host_valid_o          (host_read_valid),
      .control_valid_o       (control_read_valid),
      .read_o                (read),
      .host_ready_i          (host_response_i.read_ready),
      .control_ready_i       (control_response_i.read_ready),
      .host_answer_valid_i   (host_response_i.answer_valid),
      .host_answer_i         (host_response_i.answer),
      .host_answer_data_i,
      .control_answer_valid_i(control_response_i.answer_valid),
      .control_answer_i      (control_response_i.answer),
      .control_answer_data_i,
      .own_addr_o            (own_addr),
      .own_data_i            (own_data),
      .tx_o                  (send[SendAnswers]),
      .tx_ready_i            (sent[SendAnswers]),
      .idle_o                (loads_idle)
  );

  assign host_request_o = '{
          write_valid: host_write_valid,
          write: host_write,
          read_valid: host_read_valid,
          read: read,
          answer_ready: 1'b1
      };
  assign control_request_o = '{
          write_valid: control_write_valid,
          write: '{
              eop: 1'b1,
              addr: AddrBits'(UnitRegisters) << WindowUnitLsb | AddrBits'(control_addr),
              len_bytes: 10'd8
          },
          read_valid: control_read_valid,
          read: read,
          answer_ready: 1'b1
      };

  // ----- writes and reads of host memory ----------------------------------------------------------

  logic write_valid, write_ready, word_valid, word_ready, word_last, write_done, writes_idle;
  logic [63:0] word;
  logic [AddrBits-1:0] done_addr;
  logic [IdBits-1:0] unused_awid;
  logic [AddrBits-1:0] unused_awaddr;
  logic [7:0] unused_awlen, unused_wstrb;
  logic [2:0] unused_awsize, unused_arsize;
  logic [1:0] unused_awburst, unused_arburst;
  logic unused_write, unused_read;
  assign discard = !open || !config_i.bus_master;

  velo_axi_dma_write #(
      .DataWidth(64),
      .AddrBits (AddrBits),
      .IdBits   (IdBits)
  ) u_lanes_out (
      .clk_i,
      .rst_ni               (function_rst_no),
      .hold_i               (1'b0),
      .dma_write_valid_i    (dma_request_i.write_valid),
      .dma_write_ready_o    (dma_response_o.write_ready),
      .dma_write_eop_i      (dma_request_i.write.eop),
      .dma_write_addr_i     (dma_request_i.write.addr),
      .dma_write_len_bytes_i(dma_request_i.write.len_bytes),
      .dma_write_data_i,
      .awvalid_o            (write_valid),
      .awready_i            (write_ready),
      .awid_o               (unused_awid),
      .awaddr_o             (unused_awaddr),
      .awlen_o              (unused_awlen),
      .awsize_o             (unused_awsize),
      .awburst_o            (unused_awburst),
      .wvalid_o             (word_valid),
      .wready_i             (word_ready),
      .wlast_o              (word_last),
      .wdata_o              (word),
      .wstrb_o              (unused_wstrb)
  );

  velo_pcie_writes u_writes (
      .clk_i,
      .rst_ni           (function_rst_no),
      .config_i,
      .discard_i        (discard),
      .write_valid_i    (write_valid),
      .write_ready_o    (write_ready),
      .write_addr_i     (dma_request_i.write.addr),
      .write_len_bytes_i(dma_request_i.write.len_bytes),
      .word_valid_i     (word_valid),
      .word_ready_o     (word_ready),
      .word_last_i      (word_last),
      .word_data_i      (word),
      .tx_o             (send[SendWrites]),
      .tx_ready_i       (sent[SendWrites]),
      .done_o           (write_done),
      .done_addr_o      (done_addr),
      .idle_o           (writes_idle)
  );

  logic read_valid, read_ready, answer_valid, answer_ready, answer_last, answer_error;
  logic [IdBits-1:0] read_id, answer_id;
  logic [AddrBits-1:0] read_addr;
  logic [7:0] read_beats;
  logic [63:0] answer_data;
  logic [ReadSlots-1:0] lost;
  logic failed, reads_idle, reads_sent;
  tlp_beat_t reads_send;

  velo_axi_dma_read #(
      .DataWidth(64),
      .AddrBits (AddrBits),
      .IdBits   (IdBits)
  ) u_lanes_in (
      .clk_i,
      .rst_ni              (function_rst_no),
      .dma_read_valid_i    (dma_request_i.read_valid),
      .dma_read_ready_o    (dma_response_o.read_ready),
      .dma_read_addr_i     (dma_request_i.read.addr),
      .dma_read_len_bytes_i(dma_request_i.read.len_bytes),
      .dma_read_tag_i      (dma_request_i.read.tag),
      .dma_answer_valid_o  (dma_response_o.answer_valid),
      .dma_answer_ready_i  (dma_request_i.answer_ready),
      .dma_answer_eop_o    (dma_response_o.answer.eop),
      .dma_answer_error_o  (dma_response_o.answer.error),
      .dma_answer_tag_o    (dma_response_o.answer.tag),
      .dma_answer_data_o,
      .arvalid_o           (read_valid),
      .arready_i           (read_ready),
      .arid_o              (read_id),
      .araddr_o            (read_addr),
      .arlen_o             (read_beats),
      .arsize_o            (unused_arsize),
      .arburst_o           (unused_arburst),
      .rvalid_i            (answer_valid),
      .rready_o            (answer_ready),
      .rid_i               (answer_id),
      .rlast_i             (answer_last),
      .rresp_i             ({answer_error, 1'b0}),
      .rdata_i             (answer_data)
  );

  velo_pcie_reads #(
      .Slots (ReadSlots),
      .IdBits(IdBits)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .config_i,
      .discard_i     (discard),
      .forget_i      (restart),
      .timeout_i     (setting.timeout),
      .read_valid_i  (read_valid && !restart),
      .read_ready_o  (read_ready),
      .read_id_i     (read_id),
      .read_addr_i   (read_addr),
      .read_beats_i  (read_beats),
      .answer_valid_o(answer_valid),
      .answer_ready_i(answer_ready),
      .answer_id_o   (answer_id),
      .answer_last_o (answer_last),
      .answer_error_o(answer_error),
      .answer_data_o (answer_data),
      .answer_i      (answer),
      .tx_o          (reads_send),
      .tx_ready_i    (reads_sent),
      .lost_o        (lost),
      .unexpected_o,
      .failed_o      (failed),
      .timeout_o,
      .idle_o        (reads_idle)
  );
  // A read that has begun goes on: the hard block has room for it.
  logic reads_open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) reads_open_q <= 1'b0;
    else if (reads_sent) reads_open_q <= !reads_send.last;
  end
  assign send[SendReads] = '{
          valid: reads_send.valid && (tx_nonposted_ok_i || reads_open_q),
          last: reads_send.last,
          keep: reads_send.keep,
          data: reads_send.data
      };
  assign reads_sent = sent[SendReads] && send[SendReads].valid;

  // ----- interrupts, registers of the function, out -------------------------------------------------

  logic interrupts_idle;
  velo_pcie_msix #(
      .Vectors (Vectors),
      .Bar4Bits(Bar4Bits)
  ) u_msix (
      .clk_i,
      .rst_ni          (function_rst_no),
      .config_i,
      .open_i          (open),
      .moderation_i    (setting.moderation),
      .own_write_i     (own_write),
      .own_write_addr_i(own_write_addr),
      .own_write_data_i(own_write_data),
      .own_write_be_i  (own_write_be),
      .own_addr_i      (own_addr),
      .own_data_o      (msix_data),
      .event_valid_i   (write_done),
      .event_addr_i    (done_addr),
      .tx_o            (send[SendInterrupts]),
      .tx_ready_i      (sent[SendInterrupts]),
      .idle_o          (interrupts_idle)
  );

  velo_pcie_regs #(
      .Vectors (Vectors),
      .Lines   (StoreLines),
      .Slots   (ReadSlots),
      .Bar2Bits(Bar2Bits),
      .Bar4Bits(Bar4Bits)
  ) u_regs (
      .clk_i,
      .rst_ni          (function_rst_no),
      .own_write_i     (own_write),
      .own_write_addr_i(own_write_addr),
      .own_write_data_i(own_write_data),
      .own_write_be_i  (own_write_be),
      .own_addr_i      ({own_addr[Bar4Bits-1:3], 3'b0}),
      .own_data_o      (regs_data),
      .setting_o       (setting),
      .stores_i        (stores),
      .dropped_i       (dropped),
      .dropped_addr_i  (store_addr),
      .event_i         (event_o),
      .unexpected_i    (unexpected_o),
      .failed_i        (failed),
      .timeout_i       (timeout_o),
      .lost_i          (lost)
  );
  assign own_data = msix_data | regs_data | share_word;

  tlp_beat_t tx;
  velo_pcie_send #(
      .NumSources(4)
  ) u_send (
      .clk_i,
      .rst_ni,
      .from_i (send),
      .ready_o(sent),
      .tx_o   (tx),
      .tx_ready_i
  );
  assign {tx_valid_o, tx_last_o, tx_keep_o, tx_data_o} = tx;

  assign idle = loads_idle && writes_idle && reads_idle && interrupts_idle && !tx_valid_o;
  velo_pcie_reset #(
      .Cycles(2 ** SourceBits)
  ) u_reset (
      .clk_i,
      .rst_ni,
      .flr_i,
      .idle_i(idle),
      .open_o(open),
      .function_rst_no,
      .restart_o(restart),
      .flr_done_o
  );

  assign unused_write = ^{unused_awid, unused_awaddr, unused_awlen, unused_awsize, unused_awburst,
                          unused_wstrb};
  assign unused_read = ^{unused_arsize, unused_arburst, setting};

  // Nothing of the function leaves while it is reset.
  `VELO_ASSERT(SilentInReset, function_rst_no || !tx_valid_o)
  `VELO_ASSERT_INIT(VectorsEndBeforePba, 16 * Vectors <= PcieMsixPba)

endmodule
