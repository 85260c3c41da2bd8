// SPDX-License-Identifier: Apache-2.0
//
// Network port of one traffic class, towards the network: a FIFO between the units' stream and the
// switch.
//
// A packet is passed on only when it is whole (WholePackets), so that a unit that stops in the middle
// cannot hold a switch output that others need, and only when the switch has room for it by its size (the
// longest, while the word with its length is not there). A unit that never stops inside a packet may be
// passed on at once (WholePackets = 0).
// `in_room_o`: a packet of up to `RoomBytes`, VELO's longest, that begins now is taken without a wait.
// `in_*` valid/ready stream; `out_*` words to the switch's node port. Latency: a packet's length plus
// one cycle, or one cycle. Errors: none. Source: case-for-fpga, section 3, "Network Ports".

`include "velo_assert.svh"

module velo_netport_tx
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned BufferUnits = 30,  // that the switch has for this port
    parameter bit WholePackets = 1'b1,
    parameter int unsigned RoomBytes = 64,  // payload of the packet that `in_room_o` speaks of
    localparam int unsigned FifoWords = 2 ** $clog2(packet_words(DataWidth, MtuBytes) + UnitWords)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 in_valid_i,
    output logic                 in_ready_o,
    output logic                 in_room_o,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic                   out_valid_o,
    output logic                   out_sop_o,
    output logic                   out_eop_o,
    output logic   [DataWidth-1:0] out_data_o,
    input  count_t                 freed_i
);

  localparam int unsigned CountBits = $clog2(FifoWords) + 1;
  // Header, payload, and the word that may come in while the flag is worked out.
  localparam int unsigned HeaderWords = DataWidth == 32 ? 2 : 1;
  localparam int unsigned RoomWords = HeaderWords + RoomBytes * 8 / DataWidth + 1;
  typedef logic [$clog2(UnitWords)-1:0] off_t;

  logic room, size_ready, size_free, tells_size, valid, open_q, may_send, whole, end_in, end_out;
  logic [CountBits-1:0] count, ends_q;  // ends: whole packets inside
  count_t avail;
  off_t off_q, off;

  velo_fifo #(
      .Width(DataWidth + 2),
      .Depth(FifoWords)
  ) u_fifo (
      .clk_i,
      .rst_ni,
      .push_valid_i(in_valid_i && size_free),
      .push_ready_o(room),
      .push_data_i ({in_sop_i, in_eop_i, in_data_i}),
      .pop_valid_o (valid),
      .pop_ready_i (out_valid_o),
      .pop_data_o  ({out_sop_o, out_eop_o, out_data_o}),
      .count_o     (count)
  );

  // Only the word that tells a packet's size needs a place among the sizes: a packet that was begun is
  // not stopped by its own.
  assign size_free = size_ready || !tells_size;
  assign in_ready_o = room && size_free;
  assign whole = !WholePackets || ends_q != '0;
  assign out_valid_o = valid && (open_q || (whole && may_send));
  assign end_in = in_valid_i && in_ready_o && in_eop_i;
  assign end_out = out_valid_o && out_eop_o;
  assign off = out_sop_o ? '0 : off_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= 1'b0;
      ends_q <= '0;
    end else begin
      if (out_valid_o) open_q <= !out_eop_o;
      ends_q <= ends_q + CountBits'(end_in) - CountBits'(end_out);
    end
  end
  always_ff @(posedge clk_i) begin
    if (out_valid_o) off_q <= off + 1'b1;
  end

  // Sizes of the packets inside, in order; a packet's is known when its header is in.
  localparam int unsigned MostPackets = 16;
  logic header_in, size_valid;
  logic [9:0] len;
  logic [$clog2(MostPackets):0] sizes;
  size_t size_in, size_head, size;
  logic [NumSizes-1:0] fits;

  if (DataWidth == 32) begin : gen_narrow
    logic first_q, routed_q;
    logic [5:0] len_low_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) first_q <= 1'b0;
      else if (in_valid_i && in_ready_o) first_q <= in_sop_i && !in_eop_i;
    end
    always_ff @(posedge clk_i) begin
      if (in_valid_i && in_ready_o && in_sop_i) begin
        routed_q  <= in_data_i[0];
        len_low_q <= in_data_i[31:26];
      end
    end

    assign tells_size = first_q || (in_sop_i && in_eop_i);
    assign len = {in_data_i[3:0], len_low_q};
    assign size_in = !first_q ? size_t'(0) : routed_q ? SizeLongest : size_of(len);
  end else begin : gen_wide
    assign tells_size = in_sop_i;
    assign len = in_data_i[35:26];
    assign size_in = in_data_i[0] ? SizeLongest : size_of(len);
  end

  assign header_in = in_valid_i && in_ready_o && tells_size;

  velo_fifo #(
      .Width($bits(size_t)),
      .Depth(MostPackets)
  ) u_sizes (
      .clk_i,
      .rst_ni,
      .push_valid_i(header_in),
      .push_ready_o(size_ready),
      .push_data_i (size_in),
      .pop_valid_o (size_valid),
      .pop_ready_i (end_out),
      .pop_data_o  (size_head),
      .count_o     (sizes)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_room_o <= 1'b0;
    else in_room_o <= count <= CountBits'(FifoWords - RoomWords) && 32'(sizes) <= MostPackets - 2;
  end

  assign size = size_valid ? size_head : SizeLongest;
  assign may_send = fits[size];

  velo_credit #(
      .Width(CountWidth),
      .NumSizes(NumSizes),
      .Thresholds(thresholds(DataWidth, MtuBytes))
  ) u_credit (
      .clk_i,
      .rst_ni,
      .total_i(count_t'(BufferUnits)),
      .freed_i(freed_i),
      .take_i (out_valid_o && off == '0),
      .avail_o(avail),
      .ok_o   (fits)
  );

  logic unused;
  assign unused = &{1'b0, count, avail, len};

  `VELO_ASSERT_INIT(RoomIsInside, RoomWords < FifoWords)

endmodule
