// SPDX-License-Identifier: Apache-2.0
//
// The host side of the RMA unit, which its parts share: address translation, notification queues, and
// one stream each of posted writes and reads towards the crossbar.
//
// Parts: `atu_*` see velo_atu; `write_*` and `read_*` valid/ready, a transaction at a time; a read's data
// are shown to its part by `read_response_o`. Writes leave in the order in which they are taken here,
// a cycle later or more; `writes_begun_o` counts those, `writes_done_o` those that have left the node,
// modulo 256. Writes wait when 64 are under way. Notifications: see velo_rma_notifier; it writes through here, too.
// Crossbar: see velo_rma. Errors: none of its own.

`include "velo_assert.svh"

module velo_rma_host
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned PageBits = 24,
    parameter int unsigned LineBits = 6,
    parameter int unsigned NumClients = 4,
    parameter int unsigned NumWriters = 3,
    parameter int unsigned NumReaders = 2,
    parameter int unsigned NumSources = 5,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                table_enable_i,
    input  logic [AddrBits-1:3] table_base_i,
    input  logic [         4:0] table_bits_i,
    input  logic                invalidate_valid_i,
    input  logic [PageBits-1:0] invalidate_page_i,
    output logic                invalidating_o,

    input  logic                watchdog_enable_i,
    input  logic [        19:0] watchdog_cycles_i,
    input  logic                queue_valid_i,
    output logic                queue_ready_o,
    input  logic [ CtxBits-1:0] queue_ctx_i,
    input  logic                queue_enabled_i,
    input  logic [AddrBits-1:4] queue_base_i,
    input  logic [        14:0] queue_last_entry_i,
    input  logic                read_pointer_valid_i,
    input  logic [ CtxBits-1:0] read_pointer_ctx_i,
    input  logic [        15:0] read_pointer_i,

    input  logic         [NumClients-1:0] atu_valid_i,
    output logic         [NumClients-1:0] atu_ready_o,
    input  atu_request_t [NumClients-1:0] atu_request_i,
    output logic         [NumClients-1:0] atu_answer_valid_o,
    output atu_answer_t                   atu_answer_o,
    input  logic         [NumClients-1:0] atu_release_i,

    input  logic         [NumWriters-1:0]                write_valid_i,
    output logic         [NumWriters-1:0]                write_ready_o,
    input  logic         [NumWriters-1:0]                write_eop_i,
    input  logic         [NumWriters-1:0][ AddrBits-1:0] write_addr_i,
    input  logic         [NumWriters-1:0][          9:0] write_len_bytes_i,
    input  logic         [NumWriters-1:0][DataWidth-1:0] write_data_i,
    output write_count_t                                 writes_begun_o,
    output write_count_t                                 writes_done_o,

    input  logic [NumReaders-1:0]               read_valid_i,
    output logic [NumReaders-1:0]               read_ready_o,
    input  logic [NumReaders-1:0][AddrBits-1:0] read_addr_i,
    input  logic [NumReaders-1:0][         9:0] read_len_bytes_i,
    output logic [NumReaders-1:0]               read_response_o,

    input  logic    [NumSources-1:0] notify_valid_i,
    output logic    [NumSources-1:0] notify_ready_o,
    input  notify_t [NumSources-1:0] notify_i,
    output error_e                   notify_error_o,

    output logic                         posted_valid_o,
    input  logic                         posted_ready_i,
    output logic                         posted_eop_o,
    output htax_header_t                 posted_header_o,
    output logic         [DataWidth-1:0] posted_data_o,
    input  logic                         write_done_i,
    output logic                         nonposted_valid_o,
    input  logic                         nonposted_ready_i,
    output htax_header_t                 nonposted_header_o,
    input  logic                         response_valid_i,
    input  logic                         response_eop_i,
    input  logic         [          7:0] response_tag_i,
    input  logic                         response_error_i,
    input  logic         [DataWidth-1:0] response_data_i,

    output logic         hit_o,
    output logic         miss_o,
    output logic         refused_o,
    output logic         stalled_o,
    output logic   [7:0] stall_ctx_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o,
    output ecc_t   [1:0] ecc_o           // of the translation cache and of the table of queues
);

  // ----- translation ----------------------------------------------------------------------------

  logic table_valid, table_response;
  logic [NumReaders:0] read_valid, read_ready;
  htax_header_t table_header;

  velo_atu #(
      .DataWidth (DataWidth),
      .NumClients(NumClients),
      .LineBits  (LineBits),
      .PageBits  (PageBits),
      .Ecc       (Ecc)
  ) u_atu (
      .clk_i,
      .rst_ni,
      .enable_i          (table_enable_i),
      .request_valid_i   (atu_valid_i),
      .request_ready_o   (atu_ready_o),
      .request_i         (atu_request_i),
      .answer_valid_o    (atu_answer_valid_o),
      .answer_o          (atu_answer_o),
      .release_i         (atu_release_i),
      .writes_begun_i    (writes_begun_o),
      .writes_done_i     (writes_done_o),
      .nonposted_valid_o (table_valid),
      .nonposted_ready_i (read_ready[NumReaders]),
      .nonposted_header_o(table_header),
      .response_valid_i  (table_response),
      .ecc_o             (ecc_o[0]),
      .table_base_i,
      .table_bits_i,
      .invalidate_valid_i,
      .invalidate_page_i,
      .invalidating_o,
      .response_eop_i,
      .response_error_i,
      .response_data_i,
      .hit_o,
      .miss_o,
      .refused_o
  );

  // ----- reads; their tag says whose ------------------------------------------------------------

  logic [NumReaders:0][$bits(htax_header_t)-1:0] read_header;
  logic unused_read_eop;

  assign read_valid   = {table_valid, read_valid_i};
  assign read_ready_o = read_ready[NumReaders-1:0];

  for (genvar r = 0; r <= NumReaders; r++) begin : gen_reader
    htax_header_t header;
    if (r == NumReaders) begin : gen_table
      always_comb begin
        header     = table_header;
        header.tag = 8'(r);
      end
      assign table_response = response_valid_i && response_tag_i == 8'(r);
    end else begin : gen_part
      always_comb begin
        header           = '0;
        header.addr      = read_addr_i[r];
        header.len_bytes = read_len_bytes_i[r];
        header.tag       = 8'(r);
      end
      assign read_response_o[r] = response_valid_i && response_tag_i == 8'(r);
    end
    assign read_header[r] = header;
  end

  velo_rma_mux #(
      .NumIn(NumReaders + 1),
      .Width($bits(htax_header_t))
  ) u_reads (
      .clk_i,
      .rst_ni,
      .stop_i     (1'b0),
      .in_valid_i (read_valid),
      .in_ready_o (read_ready),
      .in_eop_i   ('1),
      .in_data_i  (read_header),
      .out_valid_o(nonposted_valid_o),
      .out_ready_i(nonposted_ready_i),
      .out_eop_o  (unused_read_eop),
      .out_data_o (nonposted_header_o)
  );

  // ----- notifications --------------------------------------------------------------------------

  localparam int unsigned WriteBits = AddrBits + 10 + DataWidth;

  logic notify_refused;
  logic [NumWriters:0] write_valid, write_ready, write_eop;
  logic [NumWriters:0][WriteBits-1:0] write;
  logic [AddrBits-1:0] notify_addr;
  logic [9:0] notify_len;
  logic [DataWidth-1:0] notify_data;

  velo_rma_notifier #(
      .DataWidth (DataWidth),
      .CtxBits   (CtxBits),
      .NumSources(NumSources),
      .Ecc       (Ecc)
  ) u_notifier (
      .clk_i,
      .rst_ni,
      .cfg_valid_i       (queue_valid_i),
      .cfg_ready_o       (queue_ready_o),
      .cfg_ctx_i         (queue_ctx_i),
      .cfg_enabled_i     (queue_enabled_i),
      .cfg_base_i        (queue_base_i),
      .cfg_last_entry_i  (queue_last_entry_i),
      .refused_o         (notify_refused),
      .ecc_o             (ecc_o[1]),
      .posted_valid_o    (write_valid[NumWriters]),
      .posted_ready_i    (write_ready[NumWriters]),
      .posted_eop_o      (write_eop[NumWriters]),
      .posted_addr_o     (notify_addr),
      .posted_len_bytes_o(notify_len),
      .posted_data_o     (notify_data),
      .watchdog_enable_i,
      .watchdog_cycles_i,
      .read_pointer_valid_i,
      .read_pointer_ctx_i,
      .read_pointer_i,
      .notify_valid_i,
      .notify_ready_o,
      .notify_i,
      .stalled_o,
      .stall_ctx_o,
      .error_valid_o,
      .error_code_o,
      .error_ctx_o
  );

  assign notify_error_o = notify_refused ? error_code_o : ErrorNone;

  // ----- writes ---------------------------------------------------------------------------------

  write_count_t writes_open;

  assign write[NumWriters]           = {notify_addr, notify_len, notify_data};
  assign write_valid[NumWriters-1:0] = write_valid_i;
  assign write_eop[NumWriters-1:0]   = write_eop_i;
  assign write_ready_o               = write_ready[NumWriters-1:0];
  for (genvar w = 0; w < NumWriters; w++) begin : gen_writer
    assign write[w] = {write_addr_i[w], write_len_bytes_i[w], write_data_i[w]};
  end

  logic leave_valid, leave_ready, leave_eop;
  logic [WriteBits-1:0] leave;

  velo_rma_mux #(
      .NumIn(NumWriters + 1),
      .Width(WriteBits)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .stop_i     (|writes_open[7:6]),
      .in_valid_i (write_valid),
      .in_ready_o (write_ready),
      .in_eop_i   (write_eop),
      .in_data_i  (write),
      .out_valid_o(leave_valid),
      .out_ready_i(leave_ready),
      .out_eop_o  (leave_eop),
      .out_data_o (leave)
  );

  // If the crossbar takes a beat, the parts see that only in the next cycle.
  logic [AddrBits-1:0] posted_addr;
  logic [9:0] posted_len;
  logic [1:0] unused_leave_count;
  velo_fifo #(
      .Width(WriteBits + 1),
      .Depth(2)
  ) u_leave (
      .clk_i,
      .rst_ni,
      .push_valid_i(leave_valid),
      .push_ready_o(leave_ready),
      .push_data_i ({leave_eop, leave}),
      .pop_valid_o (posted_valid_o),
      .pop_ready_i (posted_ready_i),
      .pop_data_o  ({posted_eop_o, posted_addr, posted_len, posted_data_o}),
      .count_o     (unused_leave_count)
  );

  always_comb begin
    posted_header_o           = '0;
    posted_header_o.addr      = posted_addr;
    posted_header_o.len_bytes = posted_len;
  end

  assign writes_open = writes_begun_o - writes_done_o;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_begun_o <= '0;
      writes_done_o  <= '0;
    end else begin
      if (leave_valid && leave_ready && leave_eop) writes_begun_o <= writes_begun_o + 8'd1;
      if (write_done_i) writes_done_o <= writes_done_o + 8'd1;
    end
  end

  // Nothing leaves the node that has not left here.
  `VELO_ASSUME(DoneAfterBegun, !write_done_i || writes_open != '0)

endmodule
