// SPDX-License-Identifier: Apache-2.0
//
// DDR SO-DIMM interface: CoreLogic's memory port before LiteDRAM's controllers, one a SO-DIMM.
//
// LiteDRAM locks a port to the bank that it asked last, so each bank has a port of its own here, a *lane*, with
// its waiting write data and read responses; `u_order` remembers the order of the reads. Requests of one bank stay in
// order, those of different banks are of different words.
//
// An address counts words of 64 bits: column, then bank, then row, then SO-DIMM. Elements at equal distances of
// less than four rows therefore spread over the banks.
//
// `rsp_*` has no ready: a read goes on only if its lane has room for what comes back. Until the SO-DIMMs
// are set up (200 us), no more than two requests are taken. Errors: none; an address that no SO-DIMM has
// does not happen, since CoreLogic keeps to the regions of its processes.

`include "velo_assert.svh"

module dimmnet_ddr_sodimm
  import dimmnet_ddr_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned NumSodimms = 2,
    parameter int unsigned PowerUp = DdrPowerUp  // clocks before the first command
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic         req_valid_i,  // a request is offered
    output logic         req_ready_o,  // it is taken
    input  logic         req_write_i,  // write, not read
    input  logic [ 31:0] req_addr_i,   // its first word, even
    input  logic [127:0] req_data_i,   // the words to write, the first in the lower half
    input  logic [  1:0] req_mask_i,   // which of them are written

    output logic         rsp_valid_o,  // what a read asked for, in the order of the reads
    output logic [127:0] rsp_data_o,

    output dfi_t [NumSodimms-1:0]        dfi_o,        // to each PHY
    input  logic [NumSodimms-1:0][127:0] dfi_rddata_i  // from each PHY, CL + DdrPhy clocks later
);

  localparam int unsigned NumLanes = NumSodimms * DdrBanks;
  localparam int unsigned LaneBits = $clog2(NumLanes);
  localparam int unsigned LineBits = $clog2(NumSodimms) + BurstBits;
  // More than a lane's requests on the way through LiteDRAM, so that only its queue is ever full.
  localparam int unsigned LaneDepth = 2 * DdrBankDepth;
  localparam int unsigned OrderDepth = 64;

  // The request at the head.
  typedef struct packed {
    logic write;
    logic [LineBits-1:0] line;
    logic [1:0] mask;
    logic [127:0] data;
  } request_t;

  logic [1:0] unused_in;
  request_t head;
  logic head_valid, head_go;
  logic [  LaneBits-1:0] head_lane;
  logic [ColumnBits-2:0] column;

  velo_fifo #(
      .Width($bits(request_t)),
      .Depth(2)
  ) u_in (
      .clk_i,
      .rst_ni,
      .push_valid_i(req_valid_i),
      .push_ready_o(req_ready_o),
      .push_data_i ({req_write_i, req_addr_i[LineBits:1], req_mask_i, req_data_i}),
      .pop_valid_o (head_valid),
      .pop_ready_i (head_go),
      .pop_data_o  (head),
      .count_o     (unused_in)
  );

  // A lane is a SO-DIMM's bank.
  if (NumSodimms == 1) begin : gen_lane_one
    assign head_lane = head.line[ColumnBits-1+:BankBits];
  end else begin : gen_lane_any
    assign head_lane = {head.line[LineBits-1:BurstBits], head.line[ColumnBits-1+:BankBits]};
  end
  assign column = head.line[ColumnBits-2:0];

  // The lanes.
  logic [NumLanes-1:0] lane_valid, lane_ready, lane_room;
  logic [NumLanes-1:0] wdata_ready, wdata_valid, rdata_valid;
  logic [NumLanes-1:0][127:0] wdata;
  logic [NumLanes-1:0][  1:0] wmask;
  logic [NumLanes-1:0] done_valid, done_ready;
  logic [NumLanes-1:0][127:0] rdata, done_data;
  logic [$clog2(OrderDepth):0] unused_order;
  logic order_room, order_valid;
  logic [ LaneBits-1:0] order_lane;
  logic [BurstBits-1:0] address;

  assign address = {head.line[BurstBits-1:ColumnBits-1], column};
  assign head_go = lane_valid[head_lane] && lane_ready[head_lane];

  for (genvar l = 0; l < NumLanes; ++l) begin : gen_lane
    localparam int unsigned CountBits = $clog2(LaneDepth) + 1;
    logic [CountBits-1:0] unused_write, unused_done;
    logic mine, read_go, write_go, write_room;
    logic [CountBits-1:0] reads_q;  // taken, and not yet given back

    assign mine = head_valid && head_lane == LaneBits'(l);
    assign lane_room[l] = head.write ? write_room : order_room && reads_q != CountBits'(LaneDepth);
    assign lane_valid[l] = mine && lane_room[l];
    assign read_go = lane_valid[l] && lane_ready[l] && !head.write;
    assign write_go = lane_valid[l] && lane_ready[l] && head.write;

    velo_fifo #(
        .Width(130),
        .Depth(LaneDepth)
    ) u_write (
        .clk_i,
        .rst_ni,
        .push_valid_i(write_go),
        .push_ready_o(write_room),
        .push_data_i ({head.mask, head.data}),
        .pop_valid_o (wdata_valid[l]),
        .pop_ready_i (wdata_ready[l]),
        .pop_data_o  ({wmask[l], wdata[l]}),
        .count_o     (unused_write)
    );

    logic done_room;
    velo_fifo #(
        .Width(128),
        .Depth(LaneDepth)
    ) u_done (
        .clk_i,
        .rst_ni,
        .push_valid_i(rdata_valid[l]),
        .push_ready_o(done_room),
        .push_data_i (rdata[l]),
        .pop_valid_o (done_valid[l]),
        .pop_ready_i (done_ready[l]),
        .pop_data_o  (done_data[l]),
        .count_o     (unused_done)
    );
    assign done_ready[l] = order_valid && order_lane == LaneBits'(l);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) reads_q <= '0;
      else reads_q <= reads_q + CountBits'(read_go) - CountBits'(done_valid[l] && done_ready[l]);
    end

    // LiteDRAM asks for data of a write that it took, and takes no wait for an answer.
    `VELO_ASSERT(WriteDataIsThere, !wdata_ready[l] || wdata_valid[l])
    // LiteDRAM's read data cannot wait: `reads_q` kept room for it.
    `VELO_ASSERT(ReadDataHasRoom, !rdata_valid[l] || done_room)
  end

  velo_fifo #(
      .Width(LaneBits),
      .Depth(OrderDepth)
  ) u_order (
      .clk_i,
      .rst_ni,
      .push_valid_i(head_go && !head.write),
      .push_ready_o(order_room),
      .push_data_i (head_lane),
      .pop_valid_o (order_valid),
      .pop_ready_i (rsp_valid_o),
      .pop_data_o  (order_lane),
      .count_o     (unused_order)
  );
  assign rsp_valid_o = order_valid && done_valid[order_lane];
  assign rsp_data_o  = done_data[order_lane];

  // Set-up, the same for all SO-DIMMs at the same time.
  dfi_t init_dfi;
  logic init_done, dram_reset_q;
  dimmnet_dram_init #(
      .PowerUp(PowerUp)
  ) u_init (
      .clk_i,
      .rst_ni,
      .dfi_o (init_dfi),
      .done_o(init_done)
  );
  // LiteDRAM has a synchronous reset.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dram_reset_q <= 1'b1;
    else dram_reset_q <= !init_done;
  end

  for (genvar s = 0; s < NumSodimms; ++s) begin : gen_sodimm
    localparam int unsigned First = s * DdrBanks;
    dfi_t dfi;
    logic [2:0] command_n;
    logic [DdrBanks-1:0] ready;

    assign dfi.command = ddr_command_e'(command_n);
    assign dfi_o[s] = dram_reset_q ? init_dfi : dfi;
    assign lane_ready[First+:DdrBanks] = ready & {DdrBanks{!dram_reset_q}};

    dimmnet_dram u_dram (
        .sys_clk        (clk_i),
        .sys_rst        (dram_reset_q),
        .port0_valid    (lane_valid[First]),
        .port0_we       (head.write),
        .port0_addr     (address),
        .port0_ready    (ready[0]),
        .port0_wdata    (wdata[First]),
        .port0_wmask    ({{8{wmask[First][1]}}, {8{wmask[First][0]}}}),
        .port0_wready   (wdata_ready[First]),
        .port0_rvalid   (rdata_valid[First]),
        .port0_rdata    (rdata[First]),
        .port1_valid    (lane_valid[First+1]),
        .port1_we       (head.write),
        .port1_addr     (address),
        .port1_ready    (ready[1]),
        .port1_wdata    (wdata[First+1]),
        .port1_wmask    ({{8{wmask[First+1][1]}}, {8{wmask[First+1][0]}}}),
        .port1_wready   (wdata_ready[First+1]),
        .port1_rvalid   (rdata_valid[First+1]),
        .port1_rdata    (rdata[First+1]),
        .port2_valid    (lane_valid[First+2]),
        .port2_we       (head.write),
        .port2_addr     (address),
        .port2_ready    (ready[2]),
        .port2_wdata    (wdata[First+2]),
        .port2_wmask    ({{8{wmask[First+2][1]}}, {8{wmask[First+2][0]}}}),
        .port2_wready   (wdata_ready[First+2]),
        .port2_rvalid   (rdata_valid[First+2]),
        .port2_rdata    (rdata[First+2]),
        .port3_valid    (lane_valid[First+3]),
        .port3_we       (head.write),
        .port3_addr     (address),
        .port3_ready    (ready[3]),
        .port3_wdata    (wdata[First+3]),
        .port3_wmask    ({{8{wmask[First+3][1]}}, {8{wmask[First+3][0]}}}),
        .port3_wready   (wdata_ready[First+3]),
        .port3_rvalid   (rdata_valid[First+3]),
        .port3_rdata    (rdata[First+3]),
        .dfi_cke        (dfi.cke),
        .dfi_cs_n       (dfi.cs_n),
        .dfi_ras_n      (command_n[2]),
        .dfi_cas_n      (command_n[1]),
        .dfi_we_n       (command_n[0]),
        .dfi_bank       (dfi.bank),
        .dfi_address    (dfi.address),
        .dfi_wrdata     (dfi.wrdata),
        .dfi_wrdata_en  (dfi.wrdata_en),
        .dfi_wrdata_mask(dfi.wrdata_mask),
        .dfi_rddata_en  (dfi.rddata_en),
        .dfi_rddata     (dfi_rddata_i[s])
    );
  end

  `VELO_ASSERT_INIT(PortsForFourBanks, DdrBanks == 4)
  `VELO_ASSUME(AddressIsEven, !req_valid_i || !req_addr_i[0])
  `VELO_ASSUME(AddressIsThere, !req_valid_i || req_addr_i[31:LineBits+1] == '0)

endmodule
