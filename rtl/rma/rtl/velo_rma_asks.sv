// SPDX-License-Identifier: Apache-2.0
//
// Queue of the gets and updates that wait for the responder, so that none of them holds up what comes
// behind it in the class of requests: messages, puts, notifications.
//
// `beat_*` are the beats of every packet of the class as velo_rma_take takes them. The queue writes them
// to its next slot as they come, and keeps the slot at the pulse `keep_i`, which is given once for a packet, with
// or behind its last beat that matters, while `ready_o`. `keep_node_i`, who sent it, stands from the cycle before.
// `room_o`, with that pulse: it is kept. If not, the giver of `keep_i` reports that.
// `job_valid_o` holds with header, command and operands (of a get they mean nothing) until the pulse `done_i`.
// In order. A slot is three rows of 128 bits, of which a get uses two. A row is read at once, and the next one's first
// row while a request is served: the responder has a get 4 cycles after it was kept, or 3 after the last one was
// done, an update one later.
//
// Each node has a share of PerNode requests that wait to be shown, counted here; what it sends beyond that is not kept.
// So no node takes another's slots, whatever it sends, and with a slot for the packet that comes the queue is never
// full. A node that keeps to the rule is never refused: velo_rma_pending sends no more than AsksPerNode before it has
// an answer's first packet, and what is answered has been shown.
//
// With `Ecc` the memory is protected (velo_ram). A request of which a beat cannot be read is passed over, since
// neither who asks nor for what is certain: a pulse on `void_o`. It counts for its node until the queue is empty. Then,
// and after the reset, the counts are cleared, in a cycle a node; `ready_o` is low meanwhile.
//
// Source: case-for-fpga, section 3 (units that do not stop each other).

`include "velo_assert.svh"

module velo_rma_asks
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_rma_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned PerNode = AsksPerNode,
    parameter int unsigned NodeBits = 8,  // of node numbers in use
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 beat_valid_i,
    input  logic                 beat_sop_i,
    input  logic [DataWidth-1:0] beat_data_i,
    input  logic                 keep_i,
    input  logic [          7:0] keep_node_i,
    output logic                 ready_o,
    output logic                 room_o,

    output logic          job_valid_o,
    output packet_t       header_o,
    output rma_command_t  command_o,
    output rma_operands_t operands_o,
    input  logic          done_i,

    output logic void_o,
    output ecc_t ecc_o    // of the memory; see velo_ram
);

  localparam int unsigned HeadBits = 64 + $bits(rma_command_t);
  // On a path of 128 bits header, and command, and operands begin beats of their own: velo_rma_pack.
  localparam bit WidePath = DataWidth == 128;
  localparam int unsigned HeadBeats = WidePath ? 3 : HeadBits / DataWidth;
  localparam int unsigned OperandBeats = $bits(rma_operands_t) / DataWidth;
  localparam int unsigned BankWidth = WidePath ? 64 : DataWidth;
  localparam int unsigned Banks = 128 / BankWidth;
  localparam int unsigned Nodes = 2 ** NodeBits;
  localparam int unsigned Slots = PerNode * Nodes + 1;
  localparam int unsigned Rows = 3 * Slots;
  typedef logic [NodeBits-1:0] node_t;
  typedef logic [$clog2(PerNode + 1)-1:0] share_t;
  typedef logic [$clog2(HeadBeats + OperandBeats)-1:0] beat_t;
  typedef logic [$clog2(Rows)-1:0] row_t;
  typedef logic [$clog2(Slots + 1)-1:0] count_t;
  localparam beat_t LastBeat = beat_t'(HeadBeats + OperandBeats - 1);

  // A slot is named by its first row.
  function automatic row_t after(row_t slot);
    return slot == row_t'(Rows - 3) ? '0 : slot + row_t'(3);
  endfunction

  // ----- whose slots they are -------------------------------------------------------------------

  // By node: its requests that wait to be shown.
  (* ram_style = "distributed" *) share_t waits_mem[Nodes];
  share_t waits, shown_waits;
  node_t shown_node, clear_node_q;
  logic keep, shown, shown_q, clearing_q, stale_q, empty;

  assign waits       = waits_mem[node_t'(keep_node_i)];
  assign shown_waits = waits_mem[shown_node];
  assign keep        = keep_i && room_o;
  assign ready_o     = !clearing_q;

  always_ff @(posedge clk_i) begin
    if (clearing_q) waits_mem[clear_node_q] <= '0;
    else if (keep) waits_mem[node_t'(keep_node_i)] <= waits + 1'b1;
    else if (shown_q) waits_mem[shown_node] <= shown_waits - 1'b1;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      room_o       <= 1'b0;
      shown_q      <= 1'b0;
      stale_q      <= 1'b0;
      clearing_q   <= 1'b1;
      clear_node_q <= '0;
    end else begin
      room_o  <= waits != share_t'(PerNode);
      // A request that is kept is counted before one that is shown; none is kept in two cycles in a row.
      shown_q <= shown || (shown_q && keep);
      stale_q <= void_o || (stale_q && !clearing_q);
      if (clearing_q) begin
        clear_node_q <= clear_node_q + 1'b1;
        clearing_q   <= clear_node_q != '1;
      end else if (stale_q && empty && !keep) begin
        clearing_q <= 1'b1;
      end
    end
  end

  // ----- in -------------------------------------------------------------------------------------

  row_t write_q, read_q, next_q;  // slots: to be written, shown, and the one after that
  count_t count_q;  // requests that were kept and are not over
  beat_t in_beat_q, in_beat;
  logic past_q, past, write, over;
  logic [Banks-1:0] bank_write;
  row_t [Banks-1:0] bank_place;
  logic [127:0] row_in;

  assign empty   = count_q == '0;
  assign in_beat = beat_sop_i ? '0 : in_beat_q;
  assign past    = !beat_sop_i && past_q;
  // A slot that was kept is full: what is left of its packet goes nowhere.
  assign write   = beat_valid_i && !past;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_q <= '0;
      count_q <= '0;
    end else begin
      if (keep) write_q <= after(write_q);
      if (keep && !over) count_q <= count_q + 1'b1;
      else if (over && !keep) count_q <= count_q - 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (beat_valid_i) in_beat_q <= in_beat + 1'b1;
    if (beat_valid_i || keep_i) past_q <= keep_i || past || in_beat == LastBeat;
  end

  // Each bank's next row.
  if (WidePath) begin : gen_wide
    row_t [1:0] place_q;
    assign bank_place = beat_sop_i ? {2{write_q}} : place_q;
    assign bank_write = !write ? 2'b00 : in_beat == 2'd0 ? 2'b01 : in_beat == 2'd2 ? 2'b10 : 2'b11;
    assign row_in = {
      in_beat == LastBeat ? beat_data_i[127:64] : beat_data_i[63:0],
      in_beat == 2'd1 ? beat_data_i[127:64] : beat_data_i[63:0]
    };
    always_ff @(posedge clk_i) begin
      for (int unsigned b = 0; b < 2; b++) begin
        if (beat_valid_i) place_q[b] <= bank_place[b] + row_t'(bank_write[b]);
      end
    end
  end else begin : gen_narrow
    row_t place_q, place;
    logic [$clog2(Banks)-1:0] bank;
    assign bank       = in_beat[$clog2(Banks)-1:0];
    assign place      = beat_sop_i ? write_q : place_q;
    assign bank_place = {Banks{place}};
    assign bank_write = Banks'(write) << bank;
    assign row_in     = {Banks{beat_data_i}};
    always_ff @(posedge clk_i) begin
      if (beat_valid_i) place_q <= place + row_t'(bank == '1);
    end
  end

  // ----- out ------------------------------------------------------------------------------------

  typedef enum logic [1:0] {
    StIdle,
    StLoad,
    StVoid,  // a beat of it cannot be read
    StJob
  } state_e;

  state_e state_q;
  row_t ask_q, ask;  // the row that is asked for
  logic [1:0] got_q;  // the slot's row that the memory shows
  logic update_q, load, last;
  logic [127:0] data;
  logic [HeadBits-1:0] head_q;
  ecc_t [Banks-1:0] bank_ecc;

  assign load  = state_q == StLoad;
  assign last  = got_q == (update_q ? 2'd2 : 2'd1);
  assign over  = state_q == StVoid || (state_q == StJob && done_i);
  assign shown = load && last && !ecc_o.broken;
  // While one is shown, the next one's first row is read.
  assign ask   = load ? ask_q : state_q == StIdle ? read_q : next_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      read_q  <= '0;
      next_q  <= row_t'(3);
    end else begin
      if (over) begin
        read_q <= next_q;
        next_q <= after(next_q);
      end
      unique case (state_q)
        StIdle:  if (!empty) state_q <= StLoad;
        StLoad: begin
          if (ecc_o.broken) state_q <= StVoid;
          else if (last) state_q <= StJob;
        end
        default: if (over) state_q <= count_q != count_t'(1) ? StLoad : StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    ask_q <= ask + 1'b1;
    got_q <= load ? got_q + 2'd1 : 2'd0;
    // The packet's kind is in its first beat.
    if (load && got_q == 2'd0) update_q <= data[7:4] == PacketKindFetchCompareAddRequest;
    if (load && got_q == 2'd0) head_q[127:0] <= data;
    if (load && got_q == 2'd1) head_q[255:128] <= data;
    if (load && got_q == 2'd2) operands_o <= data;
  end

  assign {command_o, header_o} = head_q;
  assign shown_node            = node_t'(header_o.src_node);
  assign job_valid_o           = state_q == StJob;
  assign void_o                = state_q == StVoid;

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    velo_ram #(
        .Width(BankWidth),
        .Depth(Rows),
        .Ecc  (Ecc)
    ) u_ram (
        .clk_i,
        .we_i       (bank_write[b]),
        .waddr_i    (bank_place[b]),
        .wdata_i    (row_in[BankWidth*b+:BankWidth]),
        .raddr_i    (ask),
        .rdata_o    (data[BankWidth*b+:BankWidth]),
        .corrected_o(bank_ecc[b].corrected),
        .broken_o   (bank_ecc[b].broken)
    );
  end

  always_comb begin
    ecc_o = '0;
    for (int unsigned b = 0; b < Banks; b++) ecc_o |= load ? bank_ecc[b] : '0;
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(ShareCounts, PerNode >= 1 && NodeBits <= 8)
  `VELO_ASSERT(NextIsNext, next_q == after(read_q))
  // A request that is shown needs its slot no more.
  `VELO_ASSERT(
      NothingOverWhatWaits,
      !write || count_q < count_t'(Slots) || (count_q == count_t'(Slots) && state_q == StJob))
  `VELO_ASSERT(WithinItsShare, !keep || waits != share_t'(PerNode))
  `VELO_ASSERT(ShownWasCounted, !shown_q || shown_waits != '0)
  for (genvar b = 0; b < Banks; b++) begin : gen_place
    `VELO_ASSERT(InItsSlot, !bank_write[b] || row_t'(bank_place[b] - write_q) <= row_t'(2))
  end
  `VELO_ASSERT(NoneIsOverThatWasNotKept, !over || !empty)
  `VELO_ASSUME(DoneWithAJob, !done_i || job_valid_o)
  `VELO_ASSUME(KeptWhenReady, !keep_i || ready_o)

endmodule
