// SPDX-License-Identifier: Apache-2.0
//
// The registers: each process's own page and the privileged one. A page's write changes the state of its own process
// and of no other; only the privileged page sets who a process is and which part of SO-DIMM is its.
//
// A register is written whole: a command of which bytes are missing is refused, any other such write is dropped.
// Writing a process's identity begins it anew: commands that wait are gone, all that it counts is zero.
// A command goes to its process's queue (dimmnet_queue). No write has two: those of AOTF lie 16 bytes apart.

`include "velo_assert.svh"

module dimmnet_register
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter int unsigned Processes = 2,
    parameter bit Aotf = 1'b1,
    localparam int unsigned WidBits = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic we_i,  // the host writes a register page
    input dimmnet_slot_t waddr_i,  // where; the process exists unless the page is privileged
    input logic [15:0] be_i,  // bytes
    input logic [127:0] wdata_i,  // the bytes

    input dimmnet_slot_t raddr_i,  // what the host reads
    output logic [127:0] rdata_o,  // a cycle later

    output logic                 push_valid_o,  // a command
    input  logic                 push_ready_i,  // its process's queue has room
    output logic   [WidBits-1:0] push_wid_o,    // the process
    output entry_t               push_entry_o,  // the command

    input logic refuse_valid_i,  // the controller refuses a command
    input logic [WidBits-1:0] refuse_wid_i,  // of this process
    input dimmnet_error_e refuse_error_i,  // why
    input logic done_valid_i,  // it has finished a command
    input logic done_failed_i,  // with it: in vain, and it counts as refused
    input logic [WidBits-1:0] done_wid_i,  // of this process
    input logic sent_i,  // a packet was sent
    input counts_t events_i,  // what became of packets
    input logic status_valid_i,  // a status was written
    input logic [WidBits-1:0] status_wid_i,  // of this process

    output logic [15:0] network_stop_o,  // peers that SWIF stops
    input logic [15:0] network_off_i,  // it has
    input logic [15:0] network_failed_i,  // peers that it gave up
    input logic [8:0][31:0] network_counts_i,  // its counters, from network_crc on

    output logic     [         15:0]       lid_o,           // the board's
    output logic     [         19:0]       patience_o,      // cycles that a status waits
    output process_t [Processes-1:0]       process_o,       // who the processes are
    output logic     [Processes-1:0]       renew_o,         // a process begins anew
    output logic     [Processes-1:0][31:0] status_write_o,  // statuses written
    output logic     [Processes-1:0][31:0] status_read_o    // statuses taken
);

  typedef enum logic [3:0] {
    CountPgid,
    CountMalformed,
    CountBounds,
    CountStatus,
    CountRefused,
    CountReceived,
    CountSent,
    CountBusy
  } count_e;
  localparam int unsigned Counts = 8;

  logic [15:0] lid_q;
  logic [19:0] patience_q;
  process_t [Processes-1:0] process_q;
  logic [Processes-1:0][31:0] status_write_q, status_read_q, done_q;
  shape_t [Processes-1:0] local_q, remote_q;
  logic [Processes-1:0][63:0] command_q;
  dimmnet_error_e [Processes-1:0] error_q;
  logic [Counts-1:0][31:0] counts_q;

  assign lid_o          = lid_q;
  assign patience_o     = patience_q;
  assign process_o      = process_q;
  assign status_write_o = status_write_q;
  assign status_read_o  = status_read_q;

  // ----- what is written ------------------------------------------------------------------------

  logic own, privileged, aotf;
  logic [1:0] whole, some;
  logic [7:0] row;
  logic [1:0][63:0] words;
  logic [WidBits-1:0] wid;

  assign privileged = we_i && waddr_i.privileged;
  assign own        = we_i && !waddr_i.privileged;
  assign wid        = waddr_i.wid[WidBits-1:0];
  assign row        = waddr_i.offset[11:4];
  assign whole      = {&be_i[15:8], &be_i[7:0]};
  assign some       = {|be_i[15:8], |be_i[7:0]};
  assign words      = wdata_i;

  assign aotf       = Aotf && own && row[7] && row[6:5] == '0;

  // ----- commands -------------------------------------------------------------------------------

  logic command, command_whole, refuse;
  always_comb begin
    command                   = 1'b0;
    command_whole             = 1'b0;
    push_entry_o              = '0;
    push_entry_o.local_shape  = local_q[wid];
    push_entry_o.remote_shape = remote_q[wid];
    if (aotf) begin
      command              = some[0];
      command_whole        = whole[0];
      push_entry_o.kind    = EntryAotf;
      push_entry_o.command = {59'b0, row[4:0], words[0]};
    end else if (own && row == 8'(DimmnetRegisterBotf / 2)) begin
      command              = some[0];
      command_whole        = whole[0];
      push_entry_o.kind    = EntryBotf;
      push_entry_o.command = {64'b0, words[0]};
    end else if (own && row == 8'(DimmnetRegisterCommand1 / 2)) begin
      command              = some[1];
      command_whole        = whole[1];
      push_entry_o.kind    = EntryTransfer;
      push_entry_o.command = {words[1], whole[0] ? words[0] : command_q[wid]};
    end
  end
  assign push_valid_o = command && command_whole;
  assign push_wid_o   = wid;
  assign refuse       = command && !(command_whole && push_ready_i);

  // ----- the processes' own ---------------------------------------------------------------------

  for (genvar p = 0; p < Processes; p++) begin : gen_process
    logic mine, table_mine, refuses, late_refuses, finishes;
    assign mine         = own && wid == WidBits'(p);
    assign table_mine   = privileged && row[7:1] == 7'((32'(DimmnetPrivilegedProcess) + 8 * p) / 4);
    assign refuses      = refuse && wid == WidBits'(p);
    assign late_refuses = refuse_valid_i && refuse_wid_i == WidBits'(p);
    assign finishes     = done_valid_i && done_wid_i == WidBits'(p);
    assign renew_o[p]   = table_mine && !row[0] && whole[0];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        process_q[p].enabled <= 1'b0;
        status_write_q[p]    <= '0;
        status_read_q[p]     <= '0;
        done_q[p]            <= '0;
        error_q[p]           <= DimmnetErrorNone;
      end else begin
        if (mine && row == 8'(DimmnetRegisterStatusRead / 2) && whole[1]) begin
          status_read_q[p] <= words[1][31:0];
        end
        if (mine && row == 8'(DimmnetRegisterError / 2) && whole[1]) begin
          error_q[p] <= DimmnetErrorNone;
        end
        if (refuses) error_q[p] <= command_whole ? DimmnetErrorBusy : DimmnetErrorOp;
        if (finishes && done_failed_i) error_q[p] <= DimmnetErrorBounds;
        if (late_refuses) error_q[p] <= refuse_error_i;
        done_q[p] <= done_q[p] + 32'(refuses) + 32'(late_refuses) + 32'(finishes);
        if (status_valid_i && status_wid_i == WidBits'(p)) begin
          status_write_q[p] <= status_write_q[p] + 32'd1;
        end
        if (renew_o[p]) begin
          process_q[p].enabled <= words[0][20];
          status_write_q[p]    <= '0;
          status_read_q[p]     <= '0;
          done_q[p]            <= '0;
          error_q[p]           <= DimmnetErrorNone;
        end
      end
    end
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        process_q[p].pgid   <= '0;
        process_q[p].region <= '0;
        local_q[p]          <= '0;
        remote_q[p]         <= '0;
        command_q[p]        <= '0;
      end else begin
        if (mine && row == 8'(DimmnetRegisterCommand0 / 2) && whole[0]) command_q[p] <= words[0];
        if (mine && row == 8'(DimmnetRegisterPatternLocal / 2)) begin
          if (whole[0]) local_q[p] <= {words[0][63:32], words[0][5:0]};
          if (whole[1]) remote_q[p] <= {words[1][63:32], words[1][5:0]};
        end
        if (renew_o[p]) begin
          process_q[p].pgid <= words[0][15:0];
          local_q[p]        <= '0;
          remote_q[p]       <= '0;
          command_q[p]      <= '0;
        end
        if (table_mine && !row[0] && whole[1]) process_q[p].region.first <= {words[1][31:1], 1'b0};
        if (table_mine && row[0] && whole[0]) process_q[p].region.words <= {words[0][31:1], 1'b0};
      end
    end
  end

  // ----- the board's ----------------------------------------------------------------------------

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lid_q          <= '0;
      patience_q     <= '0;
      counts_q       <= '0;
      network_stop_o <= '0;
    end else begin
      if (privileged && row == 8'(DimmnetPrivilegedPeersStop / 2) && whole[0]) begin
        network_stop_o <= words[0][15:0];
      end
      if (privileged && row == '0 && whole[0]) lid_q <= words[0][15:0];
      if (privileged && row == '0 && whole[1]) patience_q <= words[1][19:0];
      counts_q[CountPgid] <= counts_q[CountPgid] + 32'(events_i.pgid);
      counts_q[CountMalformed] <= counts_q[CountMalformed] + 32'(events_i.malformed);
      counts_q[CountBounds] <= counts_q[CountBounds] + 32'(events_i.bounds);
      counts_q[CountStatus] <= counts_q[CountStatus] + 32'(events_i.status);
      counts_q[CountBusy] <= counts_q[CountBusy] + 32'(events_i.busy);
      counts_q[CountReceived] <= counts_q[CountReceived] + 32'(events_i.received);
      counts_q[CountRefused] <= counts_q[CountRefused] + 32'(refuse) + 32'(refuse_valid_i) +
          32'(done_valid_i && done_failed_i);
      counts_q[CountSent] <= counts_q[CountSent] + 32'(sent_i);
    end
  end

  // ----- what is read ---------------------------------------------------------------------------

  logic [WidBits-1:0] read_wid, table_wid;
  logic [7:0] read_row;
  logic [1:0][63:0] of_process, of_board, of_table;
  process_t table_process;

  assign read_row      = raddr_i.offset[11:4];
  assign read_wid      = raddr_i.wid[WidBits-1:0];
  assign table_wid     = WidBits'(read_row[5:2]);
  assign table_process = process_q[table_wid];

  function automatic dimmnet_pattern_t pattern(shape_t shape);
    return '{step: shape.step, element_words: shape.element_words, default: '0};
  endfunction

  function automatic dimmnet_identity_t identity(logic enabled, logic [15:0] pgid,
                                                 logic [3:0] number, logic [15:0] lid);
    return '{lid: lid, enabled: enabled, wid: number, pgid: pgid, default: '0};
  endfunction

  function automatic logic [1:0][63:0] network_counts(int first);
    return {32'b0, network_counts_i[first+1], 32'b0, network_counts_i[first]};
  endfunction

  always_comb begin
    of_process = '0;
    unique case (read_row)
      8'(DimmnetRegisterPatternLocal / 2): begin
        of_process = {pattern(remote_q[read_wid]), pattern(local_q[read_wid])};
      end
      8'(DimmnetRegisterStatusWrite / 2): begin
        of_process = {32'b0, status_read_q[read_wid], 32'b0, status_write_q[read_wid]};
      end
      8'(DimmnetRegisterDone / 2): begin
        of_process = {60'b0, error_q[read_wid], 32'b0, done_q[read_wid]};
      end
      8'(DimmnetRegisterIdentity / 2): begin
        of_process = {
          64'b0, identity(process_q[read_wid].enabled, process_q[read_wid].pgid, raddr_i.wid, lid_q)
        };
      end
      default: ;
    endcase

    of_board = '0;
    unique case (read_row)
      8'd0: of_board = {44'b0, patience_q, 48'b0, lid_q};
      8'd1: of_board = {32'b0, counts_q[CountMalformed], 32'b0, counts_q[CountPgid]};
      8'd2: of_board = {32'b0, counts_q[CountStatus], 32'b0, counts_q[CountBounds]};
      8'd3: of_board = {32'b0, counts_q[CountReceived], 32'b0, counts_q[CountRefused]};
      8'd4: of_board = {32'b0, counts_q[CountBusy], 32'b0, counts_q[CountSent]};
      8'(DimmnetPrivilegedPeersStop / 2): begin
        of_board = {48'b0, network_off_i, 48'b0, network_stop_o};
      end
      8'(DimmnetPrivilegedPeersFailed / 2): of_board = {112'b0, network_failed_i};
      8'(DimmnetPrivilegedNetworkCrc / 2): of_board = network_counts(0);
      8'(DimmnetPrivilegedNetworkForeign / 2): of_board = network_counts(2);
      8'(DimmnetPrivilegedNetworkDuplicate / 2): of_board = network_counts(4);
      8'(DimmnetPrivilegedNetworkRepeated / 2): of_board = network_counts(6);
      8'(DimmnetPrivilegedNetworkGaveUp / 2): of_board = {96'b0, network_counts_i[8]};
      default: ;
    endcase

    of_table = '0;
    if (32'(read_row[5:2]) < Processes && !read_row[1]) begin
      of_table = read_row[0] ? {96'b0, table_process.region.words} : {
        32'b0, table_process.region.first, identity(table_process.enabled, table_process.pgid,
                                                    read_row[5:2], lid_q)};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!raddr_i.privileged) rdata_o <= 32'(raddr_i.wid) < Processes ? of_process : '0;
    else rdata_o <= read_row[7:6] == 2'd1 ? of_table : of_board;
  end

  logic unused;
  assign unused = ^{waddr_i, raddr_i, table_process};

endmodule
