// SPDX-License-Identifier: Apache-2.0
//
// Between the host's reads and a unit: no load waits for ever, and none is answered twice.
//
// Kept of each of the host's 256 tags: whether a load waits under it, and since when, in periods of
// `watchdog_i.cycles`, at least 256 cycles. A load that the unit does not take for a period, or that has
// no answer at the end of the first whole period after it was taken, is answered with an error here, and
// `given_up_o` pulses. So it waits one to two periods, and 256 cycles at most while all tags are looked
// at. An answer under a tag that waits for none is swallowed, and `stray_o` pulses: one that comes too
// late, or that a node has made up. The host uses a tag again only when it has been answered. With the
// watchdog off only strays are swallowed.
//
// All streams valid/ready, an answer's header beside it; the answers are passed on without a cycle. After
// reset the tags are cleared, one a cycle; until then no load is taken.
// Errors: none of its own. Source: VELO white paper (a watchdog, so that a core cannot hang the machine).

`include "velo_assert.svh"

module velo_load_guard
  import htax_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned TagBits   = 8,
    parameter int unsigned HostPort  = 0
) (
    input logic clk_i,
    input logic rst_ni,

    input  watchdog_t watchdog_i,
    output logic      given_up_o,  // for one cycle
    output logic      stray_o,     // for one cycle

    input  logic         load_valid_i,       // from the host
    output logic         load_ready_o,
    input  htax_header_t load_header_i,
    output logic         unit_load_valid_o,
    input  logic         unit_load_ready_i,

    input  logic                         unit_answer_valid_i,
    output logic                         unit_answer_ready_o,
    input  logic                         unit_answer_eop_i,
    input  htax_header_t                 unit_answer_header_i,
    input  logic         [DataWidth-1:0] unit_answer_data_i,
    output logic                         answer_valid_o,        // to the host
    input  logic                         answer_ready_i,
    output logic                         answer_eop_o,
    output htax_header_t                 answer_header_o,
    output logic         [DataWidth-1:0] answer_data_o
);

  typedef logic [TagBits-1:0] tag_t;

  // A load waits if the two marks of its tag differ. Each memory has one writer.
  (* ram_style = "distributed" *)
  logic [2:0] begun[2**TagBits];  // mark, and the period in which it was taken
  (* ram_style = "distributed" *)
  logic ended[2**TagBits];  // mark

  logic clearing_q, take, end_answer, end_error, inject_q, open_q, due, refuse_load_q, load_late;
  logic error_of_load_q;  // the error on its way is for the load that was not taken
  tag_t scan_q, load_tag, unit_tag, end_tag, error_tag_q;
  logic [1:0] period_q, age;
  logic unit_waits, pass, pass_q, scan_waits, ended_of_load, mark_end;

  assign load_tag = load_header_i.tag[TagBits-1:0];
  assign unit_tag = unit_answer_header_i.tag[TagBits-1:0];
  assign ended_of_load = ended[load_tag];

  always_ff @(posedge clk_i) begin
    if (clearing_q) begin
      begun[scan_q] <= '0;
    end else if (take) begin
      begun[load_tag] <= {!ended_of_load, period_q};
    end
  end
  // The end of an answer for which nothing waits writes what is there: whether one waits need not be known first.
  assign mark_end = inject_q ? answer_ready_i :
      unit_answer_valid_i && unit_answer_eop_i && answer_ready_i && (!open_q || pass_q);
  always_ff @(posedge clk_i) begin
    if (clearing_q) ended[scan_q] <= 1'b0;
    else if (mark_end) ended[end_tag] <= begun[end_tag][2];
  end

  assign unit_waits = begun[unit_tag][2] != ended[unit_tag];
  assign scan_waits = begun[scan_q][2] != ended[scan_q];
  assign age        = period_q - begun[scan_q][1:0];

  // An answer goes on whole or not at all, whatever becomes of its tag meanwhile.
  assign pass       = open_q ? pass_q : unit_waits;
  always_ff @(posedge clk_i) if (!open_q) pass_q <= unit_waits;

  // ----- loads ----------------------------------------------------------------------------------

  // A load that is not taken is answered like one that was.
  logic load_waiting, refuse_load;
  assign load_waiting = load_valid_i && !clearing_q && !unit_load_ready_i && !refuse_load_q;
  assign refuse_load = load_waiting && load_late;
  assign unit_load_valid_o = load_valid_i && !clearing_q && !refuse_load_q;
  assign take = unit_load_valid_o && unit_load_ready_i;
  assign load_ready_o = take || (end_error && error_of_load_q);

  velo_watchdog u_watchdog (
      .clk_i    (clk_i),
      .rst_ni   (rst_ni),
      .enable_i (watchdog_i.enable),
      .cycles_i (watchdog_i.cycles),
      .waiting_i(load_waiting),
      .expired_o(load_late)
  );

  // ----- loads that have waited too long --------------------------------------------------------

  logic [23:0] left_q;
  logic stop, enable_q;
  assign due  = watchdog_i.enable && !clearing_q && scan_waits && age[1];
  assign stop = due || inject_q || refuse_load_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clearing_q    <= 1'b1;
      scan_q        <= '0;
      period_q      <= '0;
      left_q        <= '0;
      enable_q      <= 1'b0;
      inject_q      <= 1'b0;
      open_q        <= 1'b0;
      refuse_load_q <= 1'b0;
    end else begin
      if (clearing_q || (watchdog_i.enable && !stop)) scan_q <= scan_q + 1'b1;
      if (scan_q == '1) clearing_q <= 1'b0;
      // A period ends only when all tags were looked at, so none is overlooked until its age wraps.
      // Both fields of the register change at once: the count is that of the first cycle in which it is on.
      enable_q <= watchdog_i.enable;
      if (!enable_q) left_q <= watchdog_i.cycles;
      else if (left_q != '0) left_q <= left_q - 1'b1;
      else if (scan_q == '1 && !stop) begin
        left_q   <= watchdog_i.cycles;
        period_q <= period_q + 2'd1;
      end
      if (unit_answer_valid_i && unit_answer_ready_o) open_q <= !unit_answer_eop_i;
      // An error goes out where the unit has no answer under way.
      if (end_error) begin
        inject_q <= 1'b0;
        if (error_of_load_q) refuse_load_q <= 1'b0;
      end else if (!inject_q && !open_q && !unit_answer_valid_i && (due || refuse_load_q)) begin
        inject_q <= 1'b1;
      end
      if (refuse_load) refuse_load_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!inject_q) begin
      error_of_load_q <= refuse_load_q;
      error_tag_q     <= refuse_load_q ? load_tag : scan_q;
    end
  end

  // ----- answers --------------------------------------------------------------------------------

  assign end_error = inject_q && answer_ready_i;
  assign end_answer = !inject_q && unit_answer_valid_i && pass && unit_answer_eop_i &&
                      answer_ready_i;
  assign end_tag = inject_q ? error_tag_q : unit_tag;
  assign unit_answer_ready_o = !inject_q && (answer_ready_i || !pass);
  assign answer_valid_o = inject_q || (unit_answer_valid_i && pass);
  assign answer_eop_o = inject_q || unit_answer_eop_i;
  assign answer_data_o = unit_answer_data_i;
  always_comb begin
    answer_header_o = unit_answer_header_i;
    if (inject_q) begin
      answer_header_o       = '0;
      answer_header_o.port  = PortBits'(HostPort);
      answer_header_o.tag   = 8'(error_tag_q);
      answer_header_o.error = 1'b1;
    end
  end

  assign given_up_o = end_error;
  assign stray_o = unit_answer_valid_i && unit_answer_ready_o && unit_answer_eop_i && !pass;

  logic unused;
  assign unused = ^{load_header_i, age[0]};

  `VELO_ASSERT_INIT(TagFitsHeader, TagBits <= 8)
  `VELO_ASSERT(OneEndATag, !(end_answer && end_error))
  // No load is ended but by its answer or its error.
  `VELO_ASSERT(OnlyWhatEndedIsMarked,
               !mark_end || end_answer || end_error || begun[end_tag][2] == ended[end_tag])

endmodule
