// SPDX-License-Identifier: Apache-2.0
//
// The structures that the parts of the RMA unit hand one another.

package velo_rma_pkg;
  import velo_pkg::*;

  parameter logic [2:0] RightRead = 3'd1;
  parameter logic [2:0] RightWrite = 3'd2;
  parameter logic [2:0] RightAtomic = 3'd4;

  // The sides that a command can ask for a notification, by their bit in it.
  parameter int unsigned NotifyRequester = 0;
  parameter int unsigned NotifyResponder = 1;
  parameter int unsigned NotifyCompleter = 2;

  parameter int unsigned CommandBytes = 24;

  // Gets and updates that a node may have sent to another and not seen begun; the target has a slot for each, of all
  // nodes (velo_rma_pending, velo_rma_asks).
  parameter int unsigned AsksPerNode = 5;

  // The upper bits of the local address in the packets of a get or an update (velo_rma_pending).
  parameter int unsigned EpochBits = 16;
  function automatic logic [63:0] local_address(logic [63:0] field);
    return field & (64'('1) >> EpochBits);
  endfunction

  // Posted writes that have begun or ended, modulo 2^8; fewer than half of that are ever under way.
  typedef logic [7:0] write_count_t;

  function automatic logic is_behind(write_count_t count, write_count_t mark);
    return count - mark >= 8'd128;
  endfunction

  typedef struct packed {
    // The context whose queue gets it.
    logic [7:0]        ctx;
    rma_notification_t entry;
  } notify_t;

  // Header of an answer to a packet: everything of the other side's is ours, and the reverse.
  function automatic packet_t answer_header(logic [15:0] us, logic [15:0] them, logic [7:0] tag,
                                            traffic_class_e tc, packet_kind_e kind,
                                            logic [9:0] len);
    packet_t header;
    header = '0;
    header.tc = tc;
    header.kind = kind;
    {header.src_node, header.src_ctx} = us;
    {header.dst_node, header.dst_ctx} = them;
    header.tag = tag;
    header.len = len;
    return header;
  endfunction

  // Notification of an operation with `them`; no bytes have moved if there is an error.
  function automatic notify_t notification(logic [7:0] ctx, logic [15:0] them, logic [3:0] op,
                                           logic [7:0] cookie, logic [22:0] len, rma_place_e place,
                                           error_e error, logic [63:0] address);
    notify_t notify;
    notify = '0;
    notify.ctx = ctx;
    notify.entry.valid = 1'b1;
    notify.entry.place = place;
    notify.entry.op = op;
    notify.entry.error = error;
    {notify.entry.node, notify.entry.ctx} = them;
    notify.entry.len = error == ErrorNone ? len : '0;
    notify.entry.cookie = cookie;
    notify.entry.address = address;
    return notify;
  endfunction

endpackage
