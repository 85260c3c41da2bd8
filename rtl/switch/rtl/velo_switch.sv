// SPDX-License-Identifier: Apache-2.0
//
// The switch: NumLinks link ports and one node port for each traffic class (request, response,
// completion), virtual output queues, cut-through, round robin, virtual channels with credits, routes
// in the packet or from a table. Port p: link p, or node port p - NumLinks. More node ports than classes
// (NumNodePorts) are more ports of the request class, one for each further VELO unit: see
// velo_switch_route for which of them a message leaves by.
//
// Virtual channel = class * (NumVcs / 3) + dateline bit. A class never changes and channels share no
// buffer, so classes cannot block each other; within a class the dateline bit makes tori free of
// deadlock (velo_switch_pkg). Without tori NumVcs = 3 does.
//
// `in_*`, `out_*`: words with valid and no ready. A sender to `in_*` keeps BufferUnits credits for each
// channel (`in_freed_o`; see velo_credit) and begins a packet only with size_credits() of them. This
// switch does the same on `out_*` (`out_credits_i`, `out_freed_i`). A node port uses the first channel
// of its class, whatever `in_vc_i` says. `out_stop_i`: no packet begins later than three cycles after; one
// that has begun goes on.
//
// Multicast = 1: a message to one of the last NumGroups node numbers leaves by each output of its group's
// mask, see velo_switch_copies. Of a message of a group that comes in poisoned one copy leaves, poisoned.
//
// A packet may end poisoned (`in_poison_i`, `out_poison_o`, with its last word): whoever takes it in must not
// act upon it. One that ends with `in_again_i` was cut off by its link; the same packet comes next from that
// link, for the same credits. If the link knows that its first 64 bits are the same, `in_again_i` is high with its
// first word, too. The switch itself poisons what it cuts.
//
// `out_waited_o`: packets wait to leave by the port. `out_sink_i`: it leads nowhere. Its packets are swallowed, each
// whole and without credits; `out_sunk_o` pulses for each that does not end poisoned. One that had begun to leave before
// goes on. It falls only when `out_stop_i` has been high for four cycles: from the first of those on, packets ask for
// credits.
//
// Latency: 5 cycles from a first word in to the first word out. `out_data_o` and `out_eop_o` come from
// multiplexers, all else of `out_*` from registers.
//
// With `mark_enable_i` packets of the request class that leave by a congested node port get a mark, after
// `mark_cycles_i` of congestion (velo_switch_pressure); links mark none. Congestion = 0 leaves that out.
//
// With `Ecc` the buffers are protected: a packet of which a word cannot be read leaves poisoned, and nothing is
// routed by that word (velo_switch_buffer); `ecc_o[p]` pulses for each such word, and for each put right, of port p.
//
// Errors: `dropped_o[p]` pulses for each packet from port p that leads nowhere; it is swallowed. So does it
// for one that is longer than its header says by so much that its credits would not do: it is cut. Poisoned
// packets are not counted: they come again, or were counted where they were lost.
// `out_avail_o`: credits left, for registers. Source: case-for-fpga, section 3.

`include "velo_assert.svh"

module velo_switch
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned BufferUnits = 30,
    parameter int unsigned NumNodePorts = NumClasses,
    parameter bit Multicast = 1'b0,
    parameter bit Congestion = 1'b0,
    parameter bit Ecc = 1'b0,
    localparam int unsigned NumPorts = NumLinks + NumNodePorts
) (
    input logic clk_i,
    input logic rst_ni,

    // The routing table, the same in all ports.
    input logic               table_we_i,    // write this entry
    input logic         [7:0] table_node_i,  // number of a node or group
    input hop_t               table_hop_i,   // the way, if the number is a node's
    input group_ports_t       table_group_i, // the way, if the number is a group's

    // Congestion management, for all node ports of the request class.
    input logic        mark_enable_i,  // mark packets at all
    input logic [15:0] mark_cycles_i,  // that congestion must have lasted

    // Packets in, by port; no ready: the sender keeps credits. Side signals hold as the header says.
    input logic [NumPorts-1:0] in_valid_i,  // there is a word
    input logic [NumPorts-1:0] in_sop_i,  // it is its packet's first
    input logic [NumPorts-1:0] in_eop_i,  // it is the last
    input logic [NumPorts-1:0] in_poison_i,  // with the last: not to be acted upon
    input logic [NumPorts-1:0] in_again_i,  // with the last: cut off, comes again
    input vc_t [NumPorts-1:0] in_vc_i,  // channel, on every word
    input logic [NumPorts-1:0][DataWidth-1:0] in_data_i,  // the word
    output count_t [NumPorts-1:0][NumVcs-1:0] in_freed_o,  // units freed, by channel, modulo

    // Packets out, by port; no ready: this switch keeps credits.
    output logic [NumPorts-1:0] out_valid_o,  // there is a word
    output logic [NumPorts-1:0] out_sop_o,  // it is its packet's first
    output logic [NumPorts-1:0] out_eop_o,  // it is the last
    output logic [NumPorts-1:0] out_poison_o,  // with the last: not to be acted upon
    output vc_t [NumPorts-1:0] out_vc_o,  // channel, on every word
    output logic [NumPorts-1:0][DataWidth-1:0] out_data_o,  // the word
    input logic [NumPorts-1:0] out_stop_i,  // begin no packet
    input count_t [NumPorts-1:0] out_credits_i,  // capacity there; 0: not known yet
    input count_t [NumPorts-1:0][NumVcs-1:0] out_freed_i,  // units freed there, modulo
    output count_t [NumPorts-1:0][NumVcs-1:0] out_avail_o,  // credits left, for registers
    output logic [NumPorts-1:0] out_waited_o,  // packets wait for this port
    input logic [NumPorts-1:0] out_sink_i,  // swallow what is for this port
    output logic [NumPorts-1:0] out_sunk_o,  // pulse: one was

    output logic [NumPorts-1:0] dropped_o,  // pulse: a packet of this port led nowhere
    output ecc_t [NumPorts-1:0] ecc_o       // words of this port's buffer, see velo_switch_buffer
);

  logic [NumPorts-1:0][NumPorts-1:0] request, accept, hold, going_to, to, to_output;
  logic [NumPorts-1:0][NumPorts-1:0] waits, more, waits_for, more_for;  // by input, by output
  logic [NumPorts-1:0] start, busy_outputs, mark, sop, eop, poison, unit, over, lost;
  vc_t [NumPorts-1:0] vc;
  logic [NumPorts-1:0][DataWidth-1:0] data;
  logic [NumPorts-1:0][NumVcs-1:0][NumSizes-1:0] may_send;
  logic [NumPorts-1:0][NumPorts-1:0][NumVcs-1:0] long;  // [input][output]
  logic [NumPorts-1:0][NumVcs-1:0] any_long;

  // Besides what credits stand for, a link's input holds copies of packets that come again, see
  // velo_switch_again: two packets' units, and some for copies that wait though they were no packet's. A power
  // of two, as the block RAM is.
  localparam int unsigned MoreUnits = 2 * (need_credits(DataWidth, MtuBytes) - 2) + 4;
  localparam int unsigned LinkUnits = 2 ** $clog2(NumVcs * BufferUnits + MoreUnits);

  // The class of a node port.
  function automatic int class_of(int port);
    return port < int'(NumLinks + NumClasses) ? port - int'(NumLinks) : 0;
  endfunction
  // Which queues an input needs: a node port brings one class and takes its first channel.
  typedef bit [NumPorts-1:0][NumVcs-1:0] queues_t;
  localparam int unsigned VcsPerClass = NumVcs / NumClasses;
  function automatic queues_t queues_of(int input_port);
    int tc;
    for (int o = 0; o < int'(NumPorts); o++) begin
      for (int v = 0; v < int'(NumVcs); v++) begin
        tc = v / int'(VcsPerClass);
        queues_of[o][v] = (input_port < int'(NumLinks) || class_of(input_port) == tc) &&
            (o < int'(NumLinks) || v == class_of(o) * int'(VcsPerClass));
      end
    end
  endfunction
  // Channels that come and go by a port.
  function automatic bit [NumVcs-1:0] channels_of(int port);
    for (int v = 0; v < int'(NumVcs); v++) begin
      channels_of[v] = port < int'(NumLinks) || v == class_of(port) * int'(VcsPerClass);
    end
  endfunction

  always_comb begin
    busy_outputs = '0;
    any_long = '0;
    out_waited_o = '0;
    for (int i = 0; i < int'(NumPorts); i++) begin
      busy_outputs |= going_to[i];
      any_long |= long[i];
      out_waited_o |= waits[i];
    end
    for (int i = 0; i < int'(NumPorts); i++) begin
      for (int o = 0; o < int'(NumPorts); o++) begin
        to_output[o][i] = to[i][o];
        waits_for[o][i] = waits[i][o];
        more_for[o][i]  = more[i][o];
      end
    end
  end

  velo_switch_match #(
      .NumPorts(NumPorts)
  ) u_match (
      .clk_i,
      .rst_ni,
      .request_i    (request),
      .output_free_i(~busy_outputs & ~out_stop_i),
      .accept_o     (accept),
      .any_o        (start),
      .hold_o       (hold)
  );

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    // A node port brings one channel, a link all of them.
    velo_switch_input #(
        .DataWidth   (DataWidth),
        .NumLinks    (NumLinks),
        .NumNodePorts(NumNodePorts),
        .Multicast   (Multicast),
        .Ecc         (Ecc),
        .NumVcs      (NumVcs),
        .MtuBytes    (MtuBytes),
        .NumUnits    (p < int'(NumLinks) ? LinkUnits : BufferUnits),
        .Repeats     (p < int'(NumLinks)),
        .Brings      (channels_of(p)),
        .Exists      (queues_of(p))
    ) u_input (
        .clk_i,
        .rst_ni,
        .in_valid_i(in_valid_i[p]),
        .in_sop_i(in_sop_i[p]),
        .in_eop_i(in_eop_i[p]),
        .in_poison_i(in_poison_i[p]),
        .in_again_i(in_again_i[p]),
        .in_vc_i(p < int'(NumLinks) ? in_vc_i[p] : vc_t'(class_of(p) * int'(VcsPerClass))),
        .in_data_i(in_data_i[p]),
        .freed_o(in_freed_o[p]),
        .may_send_i(may_send),
        .long_o(long[p]),
        .request_o(request[p]),
        .hold_i(hold[p]),
        .going_to_o(going_to[p]),
        .waits_o(waits[p]),
        .more_o(more[p]),
        .grant_i(accept[p]),
        .start_i(start[p]),
        .out_to_o(to[p]),
        .out_sop_o(sop[p]),
        .out_eop_o(eop[p]),
        .out_unit_o(unit[p]),
        .out_over_o(over[p]),
        .out_poison_o(poison[p]),
        .out_vc_o(vc[p]),
        .out_data_o(data[p]),
        .out_void_o(lost[p]),
        .dropped_o(dropped_o[p]),
        .ecc_o(ecc_o[p]),
        .table_we_i,
        .table_node_i,
        .table_hop_i,
        .table_group_i
    );

    // Only a node's own port marks: a link with packets waiting is busy, which is no fault of theirs.
    if (Congestion && p >= int'(NumLinks) && class_of(p) == 0) begin : gen_marks
      velo_switch_pressure #(
          .NumPorts(NumPorts)
      ) u_pressure (
          .clk_i,
          .rst_ni,
          .enable_i(mark_enable_i),
          .cycles_i(mark_cycles_i),
          .waits_i (waits_for[p]),
          .more_i  (more_for[p]),
          .mark_o  (mark[p])
      );
    end else begin : gen_no_marks
      logic unused;
      assign unused  = ^{waits_for[p], more_for[p]};
      assign mark[p] = 1'b0;
    end

    velo_switch_output #(
        .DataWidth(DataWidth),
        .NumPorts (NumPorts),
        .NumVcs   (NumVcs),
        .MtuBytes (MtuBytes),
        .Exists   (channels_of(p))
    ) u_output (
        .clk_i,
        .rst_ni,
        .to_i        (to_output[p]),
        .sop_i       (sop),
        .eop_i       (eop),
        .unit_i      (unit),
        .over_i      (over),
        .poison_i    (poison),
        .vc_i        (vc),
        .data_i      (data),
        .void_i      (lost),
        .mark_i      (mark[p]),
        .sink_i      (out_sink_i[p]),
        .any_i       (out_sink_i[p] && !out_stop_i[p]),
        .sunk_o      (out_sunk_o[p]),
        .out_valid_o (out_valid_o[p]),
        .out_sop_o   (out_sop_o[p]),
        .out_eop_o   (out_eop_o[p]),
        .out_poison_o(out_poison_o[p]),
        .out_vc_o    (out_vc_o[p]),
        .out_data_o  (out_data_o[p]),
        .credits_i   (out_credits_i[p]),
        .freed_i     (out_freed_i[p]),
        .avail_o     (out_avail_o[p]),
        .long_i      (any_long[p]),
        .may_send_o  (may_send[p])
    );
  end

  logic unused;
  assign unused = ^{in_vc_i, mark_enable_i, mark_cycles_i};  // node ports' part; Congestion = 0

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(NodePortsAreClassesAndUnits, NumNodePorts - NumClasses + 1 inside {1, 2, 4})
  `VELO_ASSERT_INIT(BufferHoldsAPacket, BufferUnits >= need_credits(DataWidth, MtuBytes))
  `VELO_ASSERT_INIT(BufferFitsCount, BufferUnits < 2 ** (CountWidth - 1))
  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {out_valid_o, dropped_o, in_freed_o})

endmodule
