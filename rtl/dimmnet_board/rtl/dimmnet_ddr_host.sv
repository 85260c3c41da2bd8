// SPDX-License-Identifier: Apache-2.0
//
// DDR host interface: the board as the memory slot sees it, a DIMM of 256 MB, of which the lowest 2 MB are
// CoreLogic's slot (dimmnet_slot). Row, bank, column, from the highest bit down, are the address. What lies
// above the slot swallows writes and reads as 0.
//
// Open tools simulate no DDR pads: outside are the registers of the pads. A command is seen in the clock after the edge
// that took it from the bus (clock 0 below). Data of both edges of one clock are side by side, `rise` before
// `fall`. Data to be written are seen in the clock after they were on the bus: from clock 2 on, with
// JEDEC's write latency of one clock. Data read are driven in the clock in which they are on the bus: from clock 2 on,
// CAS latency 2. CoreLogic's output register is that of the pads.
//
// A slot has no way to say "wait": the read that is seen in clock 0 is given to CoreLogic in clock 0 and answered in
// clock 2, always. So all that the host reads is SRAM, and CoreLogic takes a host's read at once
// whatever else it does (`ReadIsTaken`): each of its memories gives the host the first place. Writes may wait,
// in `u_writes`: the bus takes at most one line a clock and CoreLogic is away for a few clocks at most, so the queue is
// never full (`WriteHasRoom`). A read does not wait for them: a host that reads what it wrote does so
// some ten clocks later at the earliest.
//
// Bursts of 2, 4 or 8, as the mode register says; interleaved from any column, as PCs use them, or sequential from an
// even one. A read burst ends early by another read, by a terminate, or by a precharge of its bank. Refreshes have
// nothing to do.

`include "velo_assert.svh"

module dimmnet_ddr_host
  import dimmnet_ddr_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned WriteDepth = 16  // writes that may wait; a power of two
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                        cs_n_i,     // chip select
    input ddr_command_e                command_i,  // {RAS#, CAS#, WE#}
    input logic         [BankBits-1:0] bank_i,
    input logic         [ RowBits-1:0] address_i,  // row, column or mode; A10

    input  logic [63:0] dq_rise_i,  // data to be written
    input  logic [63:0] dq_fall_i,
    input  logic [ 7:0] dm_rise_i,  // bytes that are not
    input  logic [ 7:0] dm_fall_i,
    output logic        dq_oe_o,    // data read are on the bus
    output logic [63:0] dq_rise_o,
    output logic [63:0] dq_fall_o,

    output logic         write_valid_o,    // a line for CoreLogic
    input  logic         write_ready_i,    // it is taken
    output logic [ 20:0] write_address_o,  // its byte in the slot
    output logic [ 15:0] write_be_o,       // which bytes
    output logic [127:0] write_data_o,     // the bytes

    output logic         read_valid_o,      // a line of CoreLogic
    input  logic         read_ready_i,      // it is taken
    output logic [ 20:0] read_address_o,    // its byte in the slot
    input  logic         response_valid_i,  // two clocks later
    input  logic [127:0] response_data_i    // the line
);

  localparam int unsigned SlotBits = 21;
  // Lines of 128 bits of the slot, and of its rows.
  localparam int unsigned LineBits = SlotBits - 4;
  localparam int unsigned LineColumnBits = ColumnBits - 1;
  localparam int unsigned SlotRowBits = LineBits - LineColumnBits - BankBits;

  // A burst's line.
  typedef struct packed {
    logic in_slot;  // of the slot
    logic swap;  // its upper word is first on the bus
    logic [LineBits-1:0] line;
  } beat_t;

  logic [DdrBanks-1:0] open_q;
  logic [RowBits-1:0] rows_q[DdrBanks];
  logic [1:0] last_beat_q;  // lines of a burst, less one
  logic sequential_q, mode_right_q;

  logic selected, is_read, is_write, ends_read;
  beat_t first;
  logic [RowBits-1:0] row;

  assign selected = !cs_n_i;
  assign is_read = selected && command_i == DdrRead;
  assign is_write = selected && command_i == DdrWrite;
  assign row = rows_q[bank_i];
  assign first.in_slot = row[RowBits-1:SlotRowBits] == '0;
  assign first.swap = address_i[0];
  assign first.line = {row[SlotRowBits-1:0], bank_i, address_i[ColumnBits-1:1]};

  // The line of a burst's n-th clock.
  function automatic logic [LineBits-1:0] line_of(logic [LineBits-1:0] line, logic [1:0] beat,
                                                  logic [1:0] last_beat, logic sequential);
    logic [1:0] low;
    low = sequential ? line[1:0] + beat : line[1:0] ^ beat;
    return {line[LineBits-1:2], (line[1:0] & ~last_beat) | (low & last_beat)};
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= '0;
      last_beat_q <= '0;
      sequential_q <= 1'b0;
      mode_right_q <= 1'b0;
    end else if (selected) begin
      case (command_i)
        DdrActivate: open_q[bank_i] <= 1'b1;
        DdrPrecharge:
        if (address_i[10]) open_q <= '0;
        else open_q[bank_i] <= 1'b0;
        DdrRead, DdrWrite: if (address_i[10]) open_q[bank_i] <= 1'b0;
        DdrMode:
        if (bank_i == '0) begin
          // 2, 4, 8 words are 1, 2, 4 lines.
          last_beat_q  <= {address_i[1:0] == 2'd3, address_i[1]};
          sequential_q <= !address_i[3];
          mode_right_q <= address_i[6:4] == 3'(DdrCl) && !address_i[2] && address_i[1:0] != '0;
        end
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (selected && command_i == DdrActivate) rows_q[bank_i] <= address_i;
  end

  // Reads: a line a clock, the first one in the clock of the command.
  logic reading_q;
  logic [BankBits-1:0] reading_bank_q;
  logic [1:0] read_beat_q;
  beat_t read_first_q, read_beat;
  // What becomes of the line that was asked for a clock ago, and two.
  logic [DdrCl-1:0] due_q, due_in_slot_q, due_swap_q;

  assign ends_read = selected && (command_i == DdrTerminate || command_i == DdrRead ||
      (command_i == DdrPrecharge && (address_i[10] || bank_i == reading_bank_q)));
  always_comb begin
    read_beat = is_read ? first : read_first_q;
    if (!is_read) begin
      read_beat.line = line_of(read_first_q.line, read_beat_q, last_beat_q, sequential_q);
    end
  end
  logic read_now;
  assign read_now = is_read || (reading_q && !ends_read);
  assign read_valid_o = read_now && read_beat.in_slot;
  assign read_address_o = {read_beat.line, 4'b0};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reading_q <= 1'b0;
      read_beat_q <= '0;
      due_q <= '0;
    end else begin
      due_q <= {due_q[DdrCl-2:0], read_now};
      if (is_read) begin
        reading_q   <= last_beat_q != '0;
        read_beat_q <= 2'd1;
      end else if (reading_q) begin
        reading_q   <= !ends_read && read_beat_q != last_beat_q;
        read_beat_q <= read_beat_q + 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    due_in_slot_q <= {due_in_slot_q[DdrCl-2:0], read_beat.in_slot};
    due_swap_q <= {due_swap_q[DdrCl-2:0], read_beat.swap};
    if (is_read) begin
      read_first_q   <= first;
      reading_bank_q <= bank_i;
    end
  end

  logic [127:0] answer;
  assign answer = due_in_slot_q[DdrCl-1] ? response_data_i : '0;
  assign dq_oe_o = due_q[DdrCl-1];
  assign {dq_fall_o, dq_rise_o} = due_swap_q[DdrCl-1] ? {answer[63:0], answer[127:64]} : answer;

  // Writes: a line a clock, the first one two clocks after the command.
  localparam int unsigned WriteWait = DdrWl + 1;
  logic [WriteWait-1:0] write_due_q;
  beat_t write_due_beat_q[WriteWait];
  logic writing_q, write_now;
  logic [1:0] write_beat_q;
  beat_t write_first_q, write_beat;

  assign write_now = write_due_q[WriteWait-1] || writing_q;
  always_comb begin
    write_beat = write_due_q[WriteWait-1] ? write_due_beat_q[WriteWait-1] : write_first_q;
    if (!write_due_q[WriteWait-1]) begin
      write_beat.line = line_of(write_first_q.line, write_beat_q, last_beat_q, sequential_q);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_due_q <= '0;
      writing_q <= 1'b0;
      write_beat_q <= '0;
    end else begin
      write_due_q <= {write_due_q[WriteWait-2:0], is_write};
      if (write_due_q[WriteWait-1]) begin
        writing_q <= last_beat_q != '0;
        write_beat_q <= 2'd1;
      end else if (writing_q) begin
        writing_q <= write_beat_q != last_beat_q;
        write_beat_q <= write_beat_q + 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    write_due_beat_q[0] <= first;
    for (int unsigned i = 1; i < WriteWait; ++i) write_due_beat_q[i] <= write_due_beat_q[i-1];
    if (write_due_q[WriteWait-1]) write_first_q <= write_beat;
  end

  // Those that CoreLogic does not take at once wait.
  typedef struct packed {
    logic [LineBits-1:0] line;
    logic [15:0] be;
    logic [127:0] data;
  } write_t;
  write_t arrived, oldest, offered;
  logic arrived_valid, oldest_valid, room;
  logic [$clog2(WriteDepth):0] unused_waiting;

  assign arrived.line = write_beat.line;
  assign arrived.be = write_beat.swap ? ~{dm_rise_i, dm_fall_i} : ~{dm_fall_i, dm_rise_i};
  assign arrived.data = write_beat.swap ? {dq_rise_i, dq_fall_i} : {dq_fall_i, dq_rise_i};
  assign arrived_valid = write_now && write_beat.in_slot && arrived.be != '0;

  velo_fifo #(
      .Width($bits(write_t)),
      .Depth(WriteDepth)
  ) u_writes (
      .clk_i,
      .rst_ni,
      .push_valid_i(arrived_valid && (oldest_valid || !write_ready_i)),
      .push_ready_o(room),
      .push_data_i (arrived),
      .pop_valid_o (oldest_valid),
      .pop_ready_i (write_ready_i),
      .pop_data_o  (oldest),
      .count_o     (unused_waiting)
  );
  assign offered = oldest_valid ? oldest : arrived;
  assign write_valid_o = oldest_valid || arrived_valid;
  assign write_address_o = {offered.line, 4'b0};
  assign write_be_o = offered.be;
  assign write_data_o = offered.data;

  // The slot has no way to say that it is late: CoreLogic's promises.
  `VELO_ASSUME(ReadIsTaken, !read_valid_o || read_ready_i)
  `VELO_ASSUME(ResponseInTime, response_valid_i == (due_q[DdrCl-1] && due_in_slot_q[DdrCl-1]))
  `VELO_ASSERT(WriteHasRoom, !arrived_valid || room || (!oldest_valid && write_ready_i))
  // The host's promises.
  `VELO_ASSUME(RowIsOpen, !(is_read || is_write) || open_q[bank_i])
  `VELO_ASSUME(BankIsClosed, !(selected && command_i == DdrActivate) || !open_q[bank_i])
  `VELO_ASSUME(ModeIsRight, !(is_read || is_write) || mode_right_q)
  `VELO_ASSUME(SequentialFromEven, !(is_read || is_write) || !sequential_q || !address_i[0])
  // So that nobody else drives the bus: one direction at a time.
  `VELO_ASSUME(BusIsFree, !(due_q[0] || due_q[1]) || !write_due_q[WriteWait-1])

endmodule
