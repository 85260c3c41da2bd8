// SPDX-License-Identifier: Apache-2.0
//
// The register file behind a port of the on-chip crossbar.
//
// The registers themselves come from spec/velo_regs.rdl (module velo_regs). This unit takes posted
// writes and non-posted reads of one aligned 64-bit word each, valid/ready, and answers reads on the
// response channel. It is also the crossbar's default port: what belongs to no unit ends here.
//
// Settings and state that pass through others on their way are packed structs, see velo_regfile_pkg.
//
// Errors: an access to another unit's part of the window, or not of one aligned word, changes
// nothing and is counted (register `unmapped`); a read is answered with `error` and no data.
// A read that is not taken does not delay writes. No read changes anything, so each is done, and only its answer
// depends on where it led: the crossbar's choice and this judgement would be too much for one cycle.

`include "velo_assert.svh"

module velo_regfile
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_secded_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    // From and to the crossbar: writes, reads, and what was read. Data are the beat's.
    input  htax_stream_t                 posted_i,
    input  logic         [DataWidth-1:0] posted_data_i,
    output logic                         posted_ready_o,
    input  htax_read_t                   nonposted_i,
    output logic                         nonposted_ready_o,
    output htax_stream_t                 response_o,
    output logic         [DataWidth-1:0] response_data_o,
    input  logic                         response_ready_i,

    output logic [7:0] node_id_o,

    output velo_setting_t velo_setting_o,
    input  velo_report_t  velo_report_i,

    output rma_setting_t rma_setting_o,
    input  rma_report_t  rma_report_i,

    output network_setting_t network_setting_o,
    input  network_state_t   network_state_i,

    output logic [63:0] custom_setting_o,
    input  logic [63:0] custom_status_i,

    output watchdog_t        watchdog_setting_o,
    input  watchdog_report_t watchdog_report_i,

    output congestion_t        congestion_setting_o,
    input  congestion_report_t congestion_report_i,

    output barrier_access_t barrier_access_o,
    input  barrier_report_t barrier_report_i,

    input logic stray_response_i,
    input logic stray_completion_i,
    input logic host_stalled_i,
    input logic network_stalled_i
);

  localparam bit NarrowPath = DataWidth == 32;

  // `place` is the window address above its `source`, which is of no interest here.
  typedef logic [AddrBits-1:WindowUnitLsb] place_t;
  localparam place_t RegistersPlace = place_t'(UnitRegisters);

  function automatic logic is_register(logic window, logic [AddrBits-1:WindowUnitLsb] place,
                                       logic [2:0] low, logic [9:0] len_bytes);
    return window && place == RegistersPlace && low == '0 && len_bytes == 10'd8;
  endfunction

  logic write_is_register;
  assign write_is_register = is_register(
      posted_i.header.window,
      posted_i.header.addr[AddrBits-1:WindowUnitLsb],
      posted_i.header.addr[2:0],
      posted_i.header.len_bytes
  );

  // ----- writes: gathered, then offered to the registers ----------------------------------------

  logic write_pending_q, write_take, write_misplaced;
  logic [27:0] write_addr_q;
  logic [63:0] write_data_q;

  assign posted_ready_o  = !write_pending_q;
  assign write_take      = posted_i.valid && posted_ready_o;
  assign write_misplaced = write_take && posted_i.eop && !write_is_register;

  logic write_done;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) write_pending_q <= 1'b0;
    else if (write_take && posted_i.eop) write_pending_q <= write_is_register;
    else if (write_done) write_pending_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (write_take) begin
      write_addr_q <= posted_i.header.addr[27:0];
      write_data_q <= NarrowPath ? {posted_data_i[31:0], write_data_q[63:32]} : 64'(posted_data_i);
    end
  end

  // ----- reads ----------------------------------------------------------------------------------

  typedef enum logic [1:0] {
    StIdle,
    StRead,
    StAnswer,
    StAnswerHigh
  } state_e;

  state_e read_q;
  htax_header_t read_header_q;
  logic [63:0] read_data_q, read_data;
  logic read_done, read_is_register;

  assign nonposted_ready_o = read_q == StIdle;
  assign read_is_register = is_register(
      read_header_q.window,
      read_header_q.addr[AddrBits-1:WindowUnitLsb],
      read_header_q.addr[2:0],
      read_header_q.len_bytes
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      read_q <= StIdle;
    end else begin
      unique case (read_q)
        StIdle:  if (nonposted_i.valid) read_q <= StRead;
        StRead:  if (read_done) read_q <= StAnswer;
        StAnswer: begin
          if (response_ready_i) read_q <= response_o.eop ? StIdle : StAnswerHigh;
        end
        default: if (response_ready_i) read_q <= StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (nonposted_ready_o) read_header_q <= nonposted_i.header;
    else if (read_done) read_header_q.error <= !read_is_register;
    if (read_done) read_data_q <= read_data;
    else if (NarrowPath && read_q == StAnswer && response_ready_i) read_data_q <= read_data_q >> 32;
  end

  assign response_o.valid  = read_q == StAnswer || read_q == StAnswerHigh;
  assign response_o.eop    = !NarrowPath || read_header_q.error || read_q == StAnswerHigh;
  assign response_o.header = read_header_q;
  // Withheld here: where the read led is known later than what is there.
  assign response_data_o   = read_header_q.error ? '0 : DataWidth'(read_data_q);

  // Counted a cycle later, as a counter's carry takes as long as what is told here.
  logic [1:0] misplaced_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) misplaced_q <= '0;
    else misplaced_q <= 2'(write_misplaced) + 2'(read_done && !read_is_register);
  end

  // ----- the registers: one access at a time, writes first --------------------------------------

  logic write_waits_q;  // for who keeps its table
  logic request, request_is_write, stall_write, stall_read, write_ack, read_ack;
  logic unused_read_error, unused_write_error;
  velo_regs_pkg::velo_regs__in_t  to_registers;
  velo_regs_pkg::velo_regs__out_t from_registers;

  assign request_is_write = write_pending_q;
  assign request          = !write_waits_q &&
      (write_pending_q ? !stall_write : (read_q == StRead && !stall_read));
  // The registers may answer in the cycle of the request. To a read they always do: so that it is done need not wait
  // for its address to be decoded.
  assign write_done = write_ack;
  assign read_done = request && !request_is_write;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) write_waits_q <= 1'b0;
    else write_waits_q <= !write_ack && (write_waits_q || (request && request_is_write));
  end

  velo_regs u_registers (
      .clk                 (clk_i),
      .arst_n              (rst_ni),
      .s_cpuif_req         (request),
      .s_cpuif_req_is_wr   (request_is_write),
      .s_cpuif_addr        (request_is_write ? write_addr_q : read_header_q.addr[27:0]),
      .s_cpuif_wr_data     (write_data_q),
      .s_cpuif_wr_biten    ('1),
      .s_cpuif_req_stall_wr(stall_write),
      .s_cpuif_req_stall_rd(stall_read),
      .s_cpuif_rd_ack      (read_ack),
      .s_cpuif_rd_err      (unused_read_error),
      .s_cpuif_rd_data     (read_data),
      .s_cpuif_wr_ack      (write_ack),
      .s_cpuif_wr_err      (unused_write_error),
      .hwif_in             (to_registers),
      .hwif_out            (from_registers)
  );

  // ----- tables of contexts ---------------------------------------------------------------------

  // The request is there for one cycle; who keeps the table may take it later. The data stays.
  logic ring_write, queue_write, ring_wait_q, queue_wait_q;
  logic [ 7:0] table_ctx;
  logic [14:0] table_last;
  assign ring_write  = from_registers.rings.req && from_registers.rings.req_is_wr;
  assign queue_write = from_registers.queues.req && from_registers.queues.req_is_wr;
  assign table_ctx   = write_addr_q[19:12];
  assign table_last  = 15'((16'd1 << write_data_q[51:48]) - 16'd1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ring_wait_q  <= 1'b0;
      queue_wait_q <= 1'b0;
    end else begin
      ring_wait_q  <= velo_setting_o.cfg_valid && !velo_report_i.cfg_ready;
      queue_wait_q <= rma_setting_o.queue_valid && !rma_report_i.queue_ready;
    end
  end

  assign velo_setting_o = '{
          watchdog_enable: from_registers.watchdog.enable.value,
          watchdog_cycles: from_registers.watchdog.cycles.value,
          cfg_valid: ring_wait_q || ring_write,
          cfg_ctx: table_ctx,
          cfg_enabled: write_data_q[0],
          cfg_base: write_data_q[AddrBits-1:6],
          cfg_last_slot: table_last,
          read_pointer_valid:
          from_registers.read_pointers.req
          &&
          from_registers.read_pointers.req_is_wr,
          read_pointer_ctx: table_ctx,
          read_pointer: write_data_q[15:0]
      };

  // The page is in its register a cycle after the write.
  logic invalidate_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) invalidate_q <= 1'b0;
    else invalidate_q <= from_registers.invalidate.page.swmod;
  end

  assign watchdog_setting_o = '{
          enable: from_registers.access_watchdog.enable.value,
          cycles: from_registers.access_watchdog.cycles.value
      };

  // A page has words for all groups, and then none.
  logic barrier_write;
  assign barrier_write = from_registers.barrier_arrivals.req &&
      from_registers.barrier_arrivals.req_is_wr;
  assign barrier_access_o = '{
          set: from_registers.barriers.req && from_registers.barriers.req_is_wr,
          arrive: barrier_write && write_addr_q[11:8] == '0,
          read: from_registers.barriers.req && !from_registers.barriers.req_is_wr,
          group:
          from_registers.barriers.req
          && !
          from_registers.barriers.req_is_wr
          ?
          read_header_q.addr[7:3]
          :
          write_addr_q[7:3],
          ctx: table_ctx,
          setting: barrier_setting_t'(write_data_q),
          watchdog: '{
              enable: from_registers.barrier_watchdog.enable.value,
              cycles: from_registers.barrier_watchdog.cycles.value
          }
      };

  assign congestion_setting_o = '{
          enable: from_registers.congestion.enable.value,
          increase: from_registers.congestion.increase.value,
          notice_cycles: from_registers.congestion.notice_cycles.value,
          recover_cycles: from_registers.congestion.recover_cycles.value
      };

  // The routes' tables are far away, at each input of the switch: a write leaves for them from registers.
  logic route_we_q;
  logic [7:0] route_node_q;
  logic [12:0] route_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) route_we_q <= 1'b0;
    else route_we_q <= from_registers.routes.req && from_registers.routes.req_is_wr;
  end
  always_ff @(posedge clk_i) begin
    route_node_q <= write_addr_q[10:3];
    route_q      <= write_data_q[12:0];
  end

  assign network_setting_o = '{
          route_we: route_we_q,
          route_node: route_node_q,
          route_hop: route_q[3:0],
          route_group: route_q,
          link_enable: from_registers.links.enable.value,
          link_restart: from_registers.links.restart.value,
          link_forget: from_registers.links.forget.value,
          dead_enable: from_registers.access_watchdog.enable.value,
          dead_cycles: from_registers.access_watchdog.cycles.value >> 2,
          mark_enable: from_registers.congestion.enable.value,
          mark_cycles: from_registers.congestion.mark_cycles.value
      };

  always_comb begin
    rma_setting_o.watchdog_enable = from_registers.watchdog.enable.value;
    rma_setting_o.watchdog_cycles = from_registers.watchdog.cycles.value;
    rma_setting_o.answer_enable = from_registers.answer_watchdog.enable.value;
    rma_setting_o.answer_cycles = from_registers.answer_watchdog.cycles.value;
    rma_setting_o.table_enable = from_registers.pages.enable.value;
    rma_setting_o.table_base = from_registers.pages.base.value;
    rma_setting_o.table_bits = from_registers.pages.entries.value;
    rma_setting_o.invalidate = invalidate_q;
    rma_setting_o.invalidate_page = from_registers.invalidate.page.value;
    rma_setting_o.queue_valid = queue_wait_q || queue_write;
    rma_setting_o.queue_ctx = table_ctx;
    rma_setting_o.queue_enabled = write_data_q[0];
    rma_setting_o.queue_base = write_data_q[AddrBits-1:4];
    rma_setting_o.queue_last_entry = table_last;
    rma_setting_o.read_pointer_valid = from_registers.queue_read_pointers.req &&
        from_registers.queue_read_pointers.req_is_wr;
    rma_setting_o.read_pointer_ctx = table_ctx;
    rma_setting_o.read_pointer = write_data_q[15:0];
  end

  // At most 29 tell in a cycle: four VELO units, seven memories of the RMA unit, six links and twelve inputs.
  ecc_count_t ecc;
  assign ecc.corrected = velo_report_i.ecc.corrected + rma_report_i.ecc.corrected +
      network_state_i.ecc.corrected;
  assign ecc.broken = velo_report_i.ecc.broken + rma_report_i.ecc.broken +
      network_state_i.ecc.broken;

  always_comb begin
    to_registers = '{default: '0};
    // A counter adds what comes in each cycle, most often zero: nothing has to choose between old and new.
    to_registers.sent.count.incr = 1'b1;
    to_registers.sent.count.incrvalue = velo_report_i.sent;
    to_registers.refused.count.incr = 1'b1;
    to_registers.refused.count.incrvalue = velo_report_i.refused;
    to_registers.undelivered.count.incr = 1'b1;
    to_registers.undelivered.count.incrvalue = velo_report_i.undelivered;
    to_registers.given_up.count.incr = 1'b1;
    to_registers.given_up.count.incrvalue = 3'($countones(watchdog_report_i.given_up));
    to_registers.unanswered.count.incr = 1'b1;
    to_registers.unanswered.count.incrvalue = 3'($countones(watchdog_report_i.unanswered));
    to_registers.host_stalls.count.incr = 1'b1;
    to_registers.host_stalls.count.incrvalue = watchdog_report_i.host_stall;
    to_registers.received.count.incr = 1'b1;
    to_registers.received.count.incrvalue = velo_report_i.received;
    to_registers.dropped.count.incr = 1'b1;
    to_registers.dropped.count.incrvalue = velo_report_i.dropped;
    to_registers.ecc_corrected.count.incr = 1'b1;
    to_registers.ecc_corrected.count.incrvalue = ecc.corrected;
    to_registers.ecc_uncorrectable.count.incr = 1'b1;
    to_registers.ecc_uncorrectable.count.incrvalue = ecc.broken;
    to_registers.unmapped.count.incr = 1'b1;
    to_registers.unmapped.count.incrvalue = 3'(misplaced_q);
    to_registers.stray_responses.count.incr = 1'b1;
    to_registers.stray_responses.count.incrvalue = stray_response_i;
    to_registers.stray_completions.count.incr = 1'b1;
    to_registers.stray_completions.count.incrvalue = stray_completion_i;
    to_registers.stall.stalled.next = velo_report_i.stalled;
    to_registers.stall.ctx.next = velo_report_i.stall_ctx;
    to_registers.stall.host.next = host_stalled_i;
    to_registers.stall.network.next = network_stalled_i;
    to_registers.requester_error.code.we = |velo_report_i.refused || |velo_report_i.undelivered;
    to_registers.requester_error.code.next = velo_report_i.refused_code;
    to_registers.requester_error.source.we = |velo_report_i.refused || |velo_report_i.undelivered;
    to_registers.requester_error.source.next = velo_report_i.refused_source;
    to_registers.completer_error.code.we = |velo_report_i.dropped;
    to_registers.completer_error.code.next = velo_report_i.dropped_code;
    to_registers.completer_error.ctx.we = |velo_report_i.dropped;
    to_registers.completer_error.ctx.next = velo_report_i.dropped_ctx;
    to_registers.completer_error.node.we = |velo_report_i.dropped;
    to_registers.completer_error.node.next = velo_report_i.dropped_node;
    to_registers.custom_status.value.next = custom_status_i;
    to_registers.invalidate.busy.next = rma_report_i.invalidating || invalidate_q;
    to_registers.rma_stall.stalled.next = rma_report_i.stalled;
    to_registers.rma_stall.descriptors.next = rma_report_i.descriptors_wait;
    to_registers.rma_stall.ctx.next = rma_report_i.stall_ctx;
    to_registers.rma_posted.count.incr = 1'b1;
    to_registers.rma_posted.count.incrvalue = rma_report_i.posted;
    to_registers.rma_completed.count.incr = 1'b1;
    to_registers.rma_completed.count.incrvalue = 3'(rma_report_i.completed);
    to_registers.rma_served.count.incr = 1'b1;
    to_registers.rma_served.count.incrvalue = rma_report_i.served;
    to_registers.rma_refused.count.incr = 1'b1;
    to_registers.rma_refused.count.incrvalue = rma_report_i.refused;
    to_registers.rma_errors.count.incr = 1'b1;
    to_registers.rma_errors.count.incrvalue = rma_report_i.errors;
    to_registers.atu_hits.count.incr = 1'b1;
    to_registers.atu_hits.count.incrvalue = rma_report_i.atu_hit;
    to_registers.atu_misses.count.incr = 1'b1;
    to_registers.atu_misses.count.incrvalue = rma_report_i.atu_miss;
    to_registers.atu_refused.count.incr = 1'b1;
    to_registers.atu_refused.count.incrvalue = rma_report_i.atu_refused;
    to_registers.rma_error.code.we = |rma_report_i.errors;
    to_registers.rma_error.code.next = rma_report_i.error_code;
    to_registers.rma_error.ctx.we = |rma_report_i.errors;
    to_registers.rma_error.ctx.next = rma_report_i.error_ctx;
    to_registers.rma_error.node.we = |rma_report_i.errors;
    to_registers.rma_error.node.next = rma_report_i.error_node;
    to_registers.rma_requester_error.code.we = rma_report_i.refused;
    to_registers.rma_requester_error.code.next = rma_report_i.refused_code;
    to_registers.rma_requester_error.source.we = rma_report_i.refused;
    to_registers.rma_requester_error.source.next = rma_report_i.refused_source;
    to_registers.barrier_watchdog.present.next = barrier_report_i.present;
    to_registers.barrier_late.missing.we = barrier_report_i.late;
    to_registers.barrier_late.missing.next = barrier_report_i.late_missing;
    to_registers.barrier_late.group.we = barrier_report_i.late;
    to_registers.barrier_late.group.next = 8'(GroupNodeMin) | 8'(barrier_report_i.late_group);
    to_registers.barrier_late.barrier.we = barrier_report_i.late;
    to_registers.barrier_late.barrier.next = barrier_report_i.late_number;
    to_registers.barrier_counts.complete.next = barrier_report_i.complete;
    to_registers.barrier_counts.refused.next = barrier_report_i.refused;
    to_registers.barrier_counts.late.next = barrier_report_i.lates;
    to_registers.barriers.rd_ack = barrier_access_o.read;
    to_registers.barriers.rd_data = barrier_report_i.state;
    to_registers.barriers.wr_ack = barrier_access_o.set;
    to_registers.congestion.present.next = congestion_report_i.present;
    to_registers.congestion_notices.marked.next = congestion_report_i.marked;
    to_registers.congestion_notices.sent.next = congestion_report_i.sent;
    to_registers.congestion_notices.suppressed.next = congestion_report_i.suppressed;
    to_registers.congestion_notices.received.next = congestion_report_i.received;
    to_registers.congestion_held.cycles.next = congestion_report_i.held;
    // Write-only tables: read as zero.
    to_registers.rings.rd_ack = from_registers.rings.req && !from_registers.rings.req_is_wr;
    to_registers.rings.wr_ack = velo_setting_o.cfg_valid && velo_report_i.cfg_ready;
    to_registers.read_pointers.rd_ack = from_registers.read_pointers.req &&
        !from_registers.read_pointers.req_is_wr;
    to_registers.read_pointers.wr_ack = velo_setting_o.read_pointer_valid;
    to_registers.queues.rd_ack = from_registers.queues.req && !from_registers.queues.req_is_wr;
    to_registers.queues.wr_ack = rma_setting_o.queue_valid && rma_report_i.queue_ready;
    to_registers.queue_read_pointers.rd_ack = from_registers.queue_read_pointers.req &&
        !from_registers.queue_read_pointers.req_is_wr;
    to_registers.queue_read_pointers.wr_ack = rma_setting_o.read_pointer_valid;
    to_registers.barrier_arrivals.rd_ack = from_registers.barrier_arrivals.req &&
        !from_registers.barrier_arrivals.req_is_wr;
    to_registers.barrier_arrivals.wr_ack = barrier_write;
    to_registers.routes.rd_ack = from_registers.routes.req && !from_registers.routes.req_is_wr;
    to_registers.routes.wr_ack = network_setting_o.route_we;
    for (int unsigned l = 0; l < 8; l++) begin
      to_registers.link_status[l].up.next = network_state_i.link[l].up;
      to_registers.link_status[l].dead.next = network_state_i.link[l].dead;
      to_registers.link_status[l].refuse.next = network_state_i.link[l].refuse;
      to_registers.link_status[l].crc_errors.next = network_state_i.link[l].crc_errors;
      to_registers.link_status[l].replays.next = network_state_i.link[l].replays;
      to_registers.link_status[l].timeouts.next = network_state_i.link[l].timeouts;
      to_registers.link_status[l].dropped.next = network_state_i.link[l].dropped;
      to_registers.link_status[l].in_doubt.next = network_state_i.link[l].in_doubt;
      to_registers.link_status[l].restarts.next = network_state_i.link[l].restarts;
      to_registers.link_status[l].undelivered.next = network_state_i.link[l].undelivered;
      to_registers.link_credits[l].credits.next = network_state_i.link[l].credits;
    end
    for (int unsigned c = 0; c < 3; c++) begin
      to_registers.node_port_dropped[c].dropped.next  = network_state_i.node_port_dropped[c];
      to_registers.node_port_dropped[c].poisoned.next = network_state_i.node_port_poisoned[c];
    end
  end

  assign node_id_o = from_registers.setup.node_id.value;
  assign custom_setting_o = from_registers.custom_setting.value.value;

  logic unused;
  assign unused = ^{posted_i.header, posted_data_i,
                    from_registers.rings.addr, from_registers.rings.wr_data,
                    from_registers.rings.wr_biten, from_registers.read_pointers.addr,
                    from_registers.read_pointers.wr_data, from_registers.read_pointers.wr_biten,
                    from_registers.queues.addr, from_registers.queues.wr_data,
                    from_registers.queues.wr_biten, from_registers.queue_read_pointers.addr,
                    from_registers.queue_read_pointers.wr_data,
                    from_registers.queue_read_pointers.wr_biten, from_registers.routes.addr,
                    from_registers.routes.wr_data, from_registers.routes.wr_biten,
                    from_registers.barriers.addr, from_registers.barriers.wr_data,
                    from_registers.barriers.wr_biten, from_registers.barrier_arrivals.addr,
                    from_registers.barrier_arrivals.wr_data,
                    from_registers.barrier_arrivals.wr_biten};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT(ReadIsAnsweredAtOnce, read_ack == read_done)
  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {response_o.valid, posted_ready_o, nonposted_ready_o})

endmodule
