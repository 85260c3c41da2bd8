// SPDX-License-Identifier: Apache-2.0
//
// Input of the switch: finds each packet's way, keeps it in the shared buffer, sends it out when the
// crossbar grants, cut-through: as soon as it has begun to arrive.
//
// The buffer (block RAM) is made of units of UnitWords words; a packet is a linked list of units, which grows
// when a unit is full. Each channel's share is kept by the credits of whoever sends here, so no channel can take
// another's room. `freed_o` counts, per channel, credits given back.
//
// `in_*`: words of whole packets, no ready. With a packet's last word, `in_poison_i`: it must not be acted
// upon; `in_again_i`: it was cut off and comes once more, see velo_switch_again. `out_*` to the crossbar,
// two cycles after a grant's cycle: one word with the outputs it is for (one-hot), `out_unit_o` on the first
// word of each unit; a cycle later its data and `out_void_o`, see velo_switch_buffer; and `out_over_o`, that the
// word was its packet's last although `out_eop_o` did not say so; `out_poison_o` with either. `grant_i`: one-hot
// or none, `start_i` is its OR; comes only for what was requested and starts the packet picked for that output.
// Idle: nothing is being sent, or its last word is in this cycle. `request_o` is a register that knows of
// it; `going_to_o`, registers: the output that is in use beyond this cycle. A packet once begun goes on to
// its end as its words come.
// Latency: the word of cycle 0 is at `out_*` in cycle 4 if granted at once. Packets follow each other
// without a gap; one of less than four words may take the time of four.
// With Multicast, a packet of a group is sent to one output after the other (velo_switch_copies).
//
// Errors: a packet that leads nowhere is swallowed, its credits given back; `dropped_o` pulses at its end, unless
// it is poisoned. So does it for one that goes on beyond the units of its size, which ends there.
// Source: case-for-fpga, section 3 (VOQ, cut-through); high-message-rates, section 3.A.

`include "velo_assert.svh"

module velo_switch_input
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned NumUnits = 216,
    parameter bit Repeats = 1'b1,  // packets may be cut off and come again: a link
    parameter int unsigned NumNodePorts = NumClasses,
    parameter bit Multicast = 1'b0,
    parameter bit Ecc = 1'b0,  // check bits in the buffer
    localparam int unsigned NumPorts = NumLinks + NumNodePorts,
    parameter bit [NumVcs-1:0] Brings = '1,  // channels that packets come in by
    parameter bit [NumPorts-1:0][NumVcs-1:0] Exists = '1  // queues, see velo_switch_queues
) (
    input logic clk_i,
    input logic rst_ni,

    input logic               table_we_i,
    input logic         [7:0] table_node_i,
    input hop_t               table_hop_i,
    input group_ports_t       table_group_i, // the way of a group

    input  logic                   in_valid_i,
    input  logic                   in_sop_i,
    input  logic                   in_eop_i,
    input  logic                   in_poison_i,
    input  logic                   in_again_i,
    input  vc_t                    in_vc_i,
    input  logic   [DataWidth-1:0] in_data_i,
    output count_t [   NumVcs-1:0] freed_o,

    input  logic [NumPorts-1:0][NumVcs-1:0][NumSizes-1:0] may_send_i,
    output logic [NumPorts-1:0][NumVcs-1:0]               long_o,

    output logic [NumPorts-1:0] request_o,
    input  logic [NumPorts-1:0] hold_i,      // do not ask for that output
    output logic [NumPorts-1:0] going_to_o,
    output logic [NumPorts-1:0] waits_o,     // a packet waits for that output
    output logic [NumPorts-1:0] more_o,      // and another behind it
    input  logic [NumPorts-1:0] grant_i,
    input  logic                start_i,

    output logic [ NumPorts-1:0] out_to_o,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic                 out_unit_o,
    output logic                 out_over_o,
    output logic                 out_poison_o,
    output vc_t                  out_vc_o,
    output logic [DataWidth-1:0] out_data_o,
    output logic                 out_void_o,
    output logic                 dropped_o,
    output ecc_t                 ecc_o          // of the buffer; see velo_switch_buffer
);

  localparam int unsigned UnitBits = $clog2(NumUnits);
  localparam int unsigned OffBits = $clog2(UnitWords);
  localparam logic [OffBits-1:0] LastOff = OffBits'(UnitWords - 1);
  typedef logic [UnitBits-1:0] unit_t;
  typedef logic [OffBits-1:0] off_t;

  // ----- Where to ---------------------------------------------------------------------------------

  logic word_valid, word_first, word_next, word_sop, word_eop, word_poison, word_again, way_drop;
  logic [DataWidth-1:0] word_data;
  logic [NumPorts-1:0] way_to, add_to;
  vc_t word_vc, way_vc, add_vc;
  size_t way_size, queue_size;
  logic way_group, add, add_single, hold;
  logic [NumLinks-1:0] way_dateline;

  velo_switch_route #(
      .DataWidth(DataWidth),
      .NumLinks (NumLinks),
      .NumNodePorts(NumNodePorts),
      .Multicast(Multicast),
      .NumVcs   (NumVcs)
  ) u_route (
      .clk_i,
      .rst_ni,
      .out_valid_o (word_valid),
      .out_first_o (word_first),
      .out_next_o  (word_next),
      .out_sop_o   (word_sop),
      .out_eop_o   (word_eop),
      .out_poison_o(word_poison),
      .out_again_o (word_again),
      .out_in_vc_o (word_vc),
      .out_data_o  (word_data),
      .to_o        (way_to),
      .vc_o        (way_vc),
      .size_o      (way_size),
      .drop_o      (way_drop),
      .group_o     (way_group),
      .dateline_o  (way_dateline),
      .table_we_i,
      .table_node_i,
      .table_hop_i,
      .table_group_i,
      .in_valid_i,
      .in_sop_i,
      .in_eop_i,
      .in_poison_i,
      .in_again_i,
      .in_vc_i,
      .in_data_i
  );

  // ----- Writing ----------------------------------------------------------------------------------

  // The units that the packet's size leaves, for the next hop takes its length at its word.
  logic [CountWidth-1:0] left_q;
  logic [NumSizes-1:0][CountWidth-1:0] most_left;
  for (genvar s = 0; s < int'(NumSizes); s++) begin : gen_size
    assign most_left[s] = CountWidth'(size_units(s, DataWidth, MtuBytes) - 1);
  end

  logic writing_q, dropping_q, drop, write, write_ends, fills, full, cut, take_unit, drop_unit;
  logic take_over, retry, truncate, undo, keep, start_q, give_back, give_again, single_q;
  unit_t write_unit_q, write_unit, last_unit_q, last_unit, fresh_unit, retry_unit, first_unit;
  unit_t add_unit, undo_unit, spare_unit, pool_unit;
  off_t write_off_q, write_off;
  size_t add_size, retry_size;

  assign retry = take_over && !way_group;  // a group's packet is in no queue before its end
  assign drop = word_sop ? way_drop : dropping_q;
  assign write = word_first || (word_next && !dropping_q);
  assign write_unit = !word_sop ? write_unit_q : retry ? retry_unit : fresh_unit;
  assign write_off = word_sop ? '0 : write_off_q;
  assign full = word_next && !dropping_q && write_off_q == LastOff && !word_eop;
  assign cut = full && left_q == '0;
  assign fills = full && left_q != '0;
  assign write_ends = word_eop || cut;
  assign take_unit = (word_first && !retry) || fills;
  assign add_size = retry ? retry_size : way_size;
  assign drop_unit = word_valid && drop && write_off == '0;
  assign dropped_o = word_valid && drop && word_eop && !word_poison;

  // The last cycle's write, if it ended a packet: the tables, read ahead, do not tell yet.
  logic ended_poison_q;
  off_t ended_off_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writing_q  <= 1'b0;
      dropping_q <= 1'b0;
    end else if (word_valid) begin
      writing_q  <= write && !write_ends;
      dropping_q <= (drop || cut) && !word_eop;
    end
  end
  always_ff @(posedge clk_i) begin
    if (word_valid) begin
      write_off_q  <= write_off + 1'b1;
      write_unit_q <= write_off == LastOff ? fresh_unit : write_unit;
    end
    if (word_first) left_q <= most_left[add_size];
    else if (fills) left_q <= left_q - 1'b1;
    last_unit_q    <= last_unit;
    ended_off_q    <= write_off;
    ended_poison_q <= cut || word_poison;
  end

  // A copy that is cut off before it was begun keeps its first unit; its other units are the next to be used.
  logic more_units, spare_valid;
  fill_t write_fill;
  assign last_unit = write ? write_unit : last_unit_q;
  assign more_units = last_unit != retry_unit;
  assign fresh_unit = spare_valid ? spare_unit : pool_unit;
  assign write_fill = '{
          vc: word_vc,
          ends: truncate || write_ends,
          poison: truncate || cut || word_poison,
          again: truncate,
          last: truncate && (more_units || !write) ? LastOff : write_off
      };

  velo_switch_spare #(
      .UnitBits(UnitBits),
      .Repeats (Repeats)
  ) u_spare (
      .clk_i,
      .rst_ni,
      .link_i      (fills),
      .link_first_i(!more_units),
      .link_unit_i (write_unit_q),
      .link_next_i (fresh_unit),
      .truncate_i  (truncate),
      .more_i      (more_units),
      .undo_i      (undo),
      .undo_unit_i (undo_unit),
      .last_unit_i (last_unit),
      .take_i      (take_unit),
      .valid_o     (spare_valid),
      .unit_o      (spare_unit)
  );

  // ----- Reading ----------------------------------------------------------------------------------

  // The next word to send is `off_q` of `unit_q`; in a packet's first cycle, word 0 of `first_unit`.
  // What is known of the unit and of the one after it was read a cycle ago, so it lacks later writes: while the
  // writer is in a unit, that unit does not end the packet; if it just left, velo_switch_chase knows. Nothing was
  // read of a first unit in its second cycle (`known_q`): if the packet ended there with its second word, this is
  // seen a word late (`over`).
  logic idle_q, busy_q, busy, busy_d, known_q, entered_q, first_single, first_watched, last_poison;
  logic writer_here, writer_next, ended_here, ended_next, filled_here, start_arriving, give_back_q;
  logic issue, last, over, enter, last_stay, last_on, last_next, ending_d, idle_d, free_credit;
  logic [NumPorts-1:0] to_q, granted_q;
  vc_t first_vc, vc_q;
  unit_t unit_q, unit, next_q, next, entered_unit, back_unit_q;
  off_t off_q, off;
  fill_t fill_q, next_fill_q, fill_here, fill_next;

  assign unit = start_q ? first_unit : unit_q;
  assign off  = start_q ? '0 : off_q;
  velo_switch_chase #(
      .UnitBits(UnitBits)
  ) u_chase (
      .clk_i,
      .rst_ni,
      .first_i         (word_first),
      .ends_i          (write && write_ends),
      .fills_i         (fills),
      .writing_i       (writing_q),
      .write_unit_i    (write_unit_q),
      .start_i         (start_q),
      .start_arriving_i(start_arriving),
      .enter_i         (enter),
      .next_i          (next_q),
      .here_o          (writer_here),
      .next_o          (writer_next),
      .ended_here_o    (ended_here),
      .ended_next_o    (ended_next),
      .filled_here_o   (filled_here)
  );

  // The memories are asked a cycle earlier, in which a unit that is entered was still the next one.
  assign entered_unit = filled_here ? write_unit_q : next_q;
  velo_switch_fills #(
      .UnitBits(UnitBits)
  ) u_fills (
      .clk_i,
      .write_i     (write || truncate),
      .write_unit_i(truncate ? retry_unit : write_unit),
      .write_fill_i(write_fill),
      .link_i      (fills),
      .link_unit_i (write_unit_q),
      .link_next_i (fresh_unit),
      .unit_i      (unit),
      .fill_o      (fill_here),
      .next_o      (next),
      .next_unit_i (entered_unit),
      .next_fill_o (fill_next)
  );

  // Would this be the packet's last word: the one at hand, the one after it, the next unit's first?
  logic fill_ends, next_ends;  // as far as the tables tell
  assign fill_ends = known_q && !writer_here && fill_q.ends;
  assign next_ends = !writer_next && next_fill_q.ends && next_fill_q.last == '0;
  assign last_stay = (fill_ends && fill_q.last == off_q) || (ended_here && ended_off_q == off_q);
  assign last_on = (fill_ends && fill_q.last == off_t'(off_q + 1'b1)) ||
      (ended_here && ended_off_q == off_t'(off_q + 1'b1));
  assign last_next = !filled_here && (next_ends || (ended_next && ended_off_q == '0));

  // Of a packet of one word is known a cycle late that it is over, which costs a cycle more.
  assign busy = busy_q && !single_q;
  assign over = busy && known_q && off_q == off_t'(2) && fill_q.ends && fill_q.last == off_t'(1);
  assign issue = start_q || (busy && !over && (!writer_here || off_q < write_off_q));
  assign last = start_q ? first_single : last_stay;
  assign enter = issue && !start_q && off_q == LastOff;
  assign last_poison = ended_here ? ended_poison_q : fill_q.poison;
  assign give_again = ((issue && !start_q && last_stay && !ended_here) || over) && fill_q.again;
  assign give_back = ((issue && !start_q && (last_stay || off_q == LastOff)) || over) && !keep;

  // Foresight for the arbiters: the word of the next cycle is there and is the packet's last. That it
  // may miss one that is just arriving costs a cycle and nothing else.
  assign ending_d = busy && (issue ? !last_stay && (off_q == LastOff ? last_next : last_on) :
                               last_stay);
  assign busy_d = start_q || (busy && !(issue && last_stay) && !over);
  assign idle_d = !start_i && !start_q && (!busy_d || ending_d);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      start_q     <= 1'b0;
      busy_q      <= 1'b0;
      idle_q      <= 1'b0;
      single_q    <= 1'b0;
      to_q        <= '0;
      granted_q   <= '0;
      going_to_o  <= '0;
      give_back_q <= 1'b0;
    end else begin
      give_back_q <= give_back;
      start_q   <= start_i;
      single_q  <= start_q && first_single;
      granted_q <= grant_i;
      going_to_o <= idle_q ? grant_i : idle_d ? '0 : to_q;
      idle_q    <= idle_d;
      busy_q    <= busy_d;
      if (idle_q) to_q <= grant_i;
    end
  end
  always_ff @(posedge clk_i) begin
    known_q     <= !start_q;
    entered_q   <= enter;
    unit_q      <= enter ? entered_unit : unit;
    back_unit_q <= unit;
    off_q       <= issue ? off + 1'b1 : off;
    next_q      <= next;
    fill_q      <= enter || entered_q ? fill_next : fill_here;
    next_fill_q <= fill_next;
    if (start_q) vc_q <= first_vc;
  end

  velo_switch_copies #(
      .Multicast(Multicast),
      .NumPorts (NumPorts),
      .NumLinks (NumLinks),
      .UnitBits (UnitBits)
  ) u_copies (
      .clk_i,
      .rst_ni,
      .first_i     (word_first),
      .end_i       (word_valid && word_eop),
      .bad_i       (word_poison || (!word_sop && dropping_q)),
      .again_i     (Repeats && word_again),
      .retry_i     (retry),
      .group_i     (way_group),
      .to_i        (way_to),
      .dateline_i  (way_dateline),
      .vc_i        (way_vc),
      .size_i      (way_size),
      .unit_i      (fresh_unit),
      .add_o       (add),
      .add_to_o    (add_to),
      .add_vc_o    (add_vc),
      .add_unit_o  (add_unit),
      .add_single_o(add_single),
      .add_size_o  (queue_size),
      .start_i     (start_q),
      .start_unit_i(first_unit),
      .keep_o      (keep),
      .hold_o      (hold),
      .undo_o      (undo),
      .undo_unit_o (undo_unit)
  );

  velo_switch_queues #(
      .NumPorts(NumPorts),
      .NumVcs  (NumVcs),
      .NumUnits(NumUnits),
      .Exists  (Exists)
  ) u_queues (
      .clk_i,
      .rst_ni,
      .add_i          (add),
      .add_to_i       (add_to),
      .add_vc_i       (add_vc),
      .add_unit_i     (add_unit),
      .add_single_i   (add_single),
      .add_size_i     (queue_size),
      .remove_to_i    (granted_q),
      .first_vc_o     (first_vc),
      .first_unit_o   (first_unit),
      .watch_unit_i   (retry_unit),
      .first_watched_o(first_watched),
      .first_single_o (first_single),
      .may_ask_i      (idle_d && !hold),
      .asks_o         (request_o),
      .hold_i,
      .waits_o,
      .more_o,
      .may_send_i,
      .long_o
  );

  velo_switch_buffer #(
      .DataWidth(DataWidth),
      .AddrBits (UnitBits + OffBits),
      .Ecc      (Ecc)
  ) u_buffer (
      .clk_i,
      .rst_ni,
      .we_i   (write),
      .waddr_i({write_unit, write_off}),
      .wdata_i(word_data),
      .read_i (issue),
      .first_i(start_q),
      .raddr_i({unit, off}),
      .data_o (out_data_o),
      .void_o (out_void_o),
      .ecc_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) out_to_o <= '0;
    else out_to_o <= issue ? to_q : '0;
  end
  always_ff @(posedge clk_i) begin
    out_sop_o <= start_q;
    out_eop_o <= last;
    out_unit_o <= off == '0;
    out_over_o <= over;
    out_poison_o <= (last && !start_q && last_poison) || (over && fill_q.poison);
    out_vc_o <= start_q ? first_vc : vc_q;
  end

  // ----- Units and credits coming back --------------------------------------------------------------

  count_t release_count;
  velo_switch_again #(
      .UnitBits(UnitBits),
      .Repeats (Repeats)
  ) u_again (
      .clk_i,
      .rst_ni,
      .sop_i           (word_valid && word_sop),
      .add_i           (word_first && !way_group),
      .add_unit_i      (write_unit),
      .add_size_i      (add_size),
      .end_i           (word_valid && word_eop),
      .again_i         (word_again),
      .drop_unit_i     (drop_unit),
      .start_i         (start_q),
      .start_unit_i    (first_unit),
      .start_watched_i (first_watched),
      .give_back_i     (give_back),
      .give_again_i    (give_again),
      .single_i        (single_q && !keep),
      .start_arriving_o(start_arriving),
      .retry_o         (take_over),
      .retry_unit_o    (retry_unit),
      .retry_size_o    (retry_size),
      .truncate_o      (truncate),
      .free_credit_o   (free_credit),
      .release_count_o (release_count)
  );

  velo_switch_units #(
      .NumVcs  (NumVcs),
      .NumUnits(NumUnits),
      .Brings  (Brings)
  ) u_units (
      .clk_i,
      .rst_ni,
      .take_i         (take_unit && !spare_valid),
      .unit_o         (pool_unit),
      .release_count_i(release_count),
      .release_vc_i   (word_vc),
      .free_i         (give_back_q || (single_q && !keep)),
      .free_credit_i  (free_credit),
      .free_unit_i    (back_unit_q),
      .free_vc_i      (fill_here.vc),
      .freed_o        (freed_o)
  );

  logic unused, nears;
  assign unused = ^{fill_q.vc, next_fill_q.vc, next_fill_q.poison, next_fill_q.again, nears};
  assign nears  = writing_q && write_unit_q == next_q;  // for the assertion alone

  `VELO_ASSUME(PacketsWhole, !word_valid || word_sop == !(writing_q || dropping_q))
  `VELO_ASSUME(StartIsAnyGrant, start_i == |grant_i)
  `VELO_ASSERT(GrantOnlyToIdle, !(|grant_i) || (idle_q && (grant_i & ~request_o) == '0))
  `VELO_ASSERT(WriterIsHere, !busy || writer_here == (writing_q && write_unit_q == unit_q))
  `VELO_ASSERT(WriterIsNext, !(enter && !last_stay && !filled_here) || writer_next == nears)
  `VELO_ASSERT(OneOutput, (out_to_o & (out_to_o - 1'b1)) == '0)

endmodule
