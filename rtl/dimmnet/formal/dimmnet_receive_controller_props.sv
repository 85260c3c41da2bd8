// SPDX-License-Identifier: Apache-2.0
//
// The Receive Controller's promises, for all packets that are whole and of the length that their
// header says: a word goes to a window, to LLCM, to the Write Unit or to the reads only for the
// process that the packet names, on this board, which was enabled and of the packet's group since
// the packet came; inside that process's windows; in LLCM below the status ring; to the Write Unit
// with that process's region. Each packet ends; each that is dropped is counted once, and nothing
// of it was written.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_receive_controller_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*; #(
    parameter int unsigned Processes = 2,
    localparam int unsigned WidBits = $clog2(Processes)
)
(
    input logic clk_i,
    input logic rst_ni,
    input logic [ 15:0] lid_i,
    input process_t [Processes-1:0] process_i,
    input logic head_valid_i,
    input dimmnet_packet_t head_i,
    input logic [63:0] data_i,
    input logic prefetch_ready_i,
    input logic llcm_ready_i,
    input logic job_ready_i,
    input logic write_ready_i,
    input logic list_done_i,
    input logic list_bad_i,
    input logic write_done_i,
    input logic read_ready_i,
    input logic status_done_i
);

  logic pop_o;
  logic [ 5:0] line_o;
  logic prefetch_valid_o;
  logic llcm_valid_o;
  logic [WidBits-1:0] wid_o;
  logic [ 11:0] word_o;
  logic [ 63:0] data_o;
  logic job_valid_o;
  job_t job_o;
  logic write_valid_o;
  logic read_valid_o;
  logic read_last_o;
  dimmnet_packet_t read_o;
  logic status_valid_o;
  dimmnet_status_t status_o;
  events_t events_o;

  // As in the unit.
  typedef enum logic [3:0] {
    StIdle, StJudge, StPattern, StCheck, StDistance, StVerdict, StJob, StList, StWords, StWritten,
      StStatus, StDrop
  } state_e;
  typedef enum logic [1:0] {
    ToPrefetch, ToLlcm, ToSodimm, ToReads
  } target_e;

  dimmnet_receive_controller #(
      .Processes(Processes)
  ) u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // A packet stands until it is done with; its words are anything.
  logic waits_q;
  dimmnet_packet_t head_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && head_valid_i && !pop_o;
    head_q  <= head_i;
  end
  `VELO_ASSUME(PacketStands, !waits_q || (head_valid_i && head_i == head_q))
  `VELO_ASSUME(IntakeKnowsItsLength, !head_valid_i || head_i.words <= 7'd62)
  `VELO_ASSERT(PopsWhatIsThere, !pop_o || head_valid_i)

  // The Write Unit says that a list is there with the list's last word.
  logic [6:0] list_left_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) list_left_q <= '0;
    else if (job_valid_o && job_ready_i) begin
      list_left_q <= job_o.access == DimmnetAccessList ? list_words(job_o.count) : '0;
    end else if (write_valid_o && write_ready_i &&
      list_left_q != '0) list_left_q <= list_left_q - 7'd1;
  end
  `VELO_ASSUME(ListIsThereWithItsLastWord,
               list_done_i == (write_valid_o && write_ready_i && list_left_q == 7'd1))

  // Since the packet came: the process was enabled, of its group, and the board had that name.
  // One region of it.
  logic fit_q, fits;
  process_t owner;
  assign owner = process_i[head_i.dst_wid[WidBits-1:0]];
  assign fits = head_valid_i && 32'(head_i.dst_wid) < Processes && owner.enabled &&
      owner.pgid == head_i.pgid && head_i.dst_lid != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || pop_o) fit_q <= 1'b0;
    else if (fits) fit_q <= 1'b1;
  end
  logic lid_fit_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || pop_o) lid_fit_q <= 1'b0;
    else if (head_valid_i && head_i.dst_lid == lid_i) lid_fit_q <= 1'b1;
  end

  logic touches;
  assign touches = prefetch_valid_o || llcm_valid_o || job_valid_o || write_valid_o ||
      read_valid_o ||
      status_valid_o;
  `VELO_ASSERT(OnlyForItsGroup, !touches || (fit_q && lid_fit_q))
  `VELO_ASSERT(OnlyItsProcess, !touches || 4'(wid_o) == head_i.dst_wid)
  `VELO_ASSERT(InItsWindows, !prefetch_valid_o || word_o < 12'd256)
  `VELO_ASSERT(BelowTheRing, !llcm_valid_o || word_o < 12'd3584)
  `VELO_ASSERT(WhereItSays, !(prefetch_valid_o || llcm_valid_o) ||
               (32'(word_o) >= head_i.address && 32'(word_o) < head_i.address + 32'(head_i.words)))
  `VELO_ASSERT(ToWhatItNames, (!prefetch_valid_o || head_i.memory == DimmnetMemoryPrefetch) &&
               (!llcm_valid_o || head_i.memory == DimmnetMemoryLlcm) &&
               (!job_valid_o || head_i.memory == DimmnetMemorySodimm))
  `VELO_ASSERT(ReadsAreAnsweredNotWritten, !(touches && head_i.kind == DimmnetKindRead) ||
               read_valid_o)

  // The region of a job is one that its process had since the packet came.
  region_t region_q;  // any
  logic region_seen_q;
  always_ff @(posedge clk_i) begin
    region_q <= region_q;
    if (!rst_ni || pop_o) region_seen_q <= 1'b0;
    else if (fits && owner.region == region_q) region_seen_q <= 1'b1;
  end
  `VELO_ASSERT(JobInItsRegion, !(job_valid_o && job_o.region == region_q) || region_seen_q)

  // Dropped once, and whole: what was written of it would have been written already.
  logic written_q, dropped;
  assign dropped = events_o.pgid || events_o.malformed || events_o.bounds || events_o.busy;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || pop_o) written_q <= 1'b0;
    else if (prefetch_valid_o || llcm_valid_o || read_valid_o || status_valid_o) written_q <= 1'b1;
  end
  `VELO_ASSERT(DroppedWhole, !dropped || (!written_q && !touches && pop_o))
  `VELO_ASSERT(OneReason, 3'(events_o.pgid) + 3'(events_o.malformed) + 3'(events_o.bounds) +
               3'(events_o.busy) <= 3'd1)

  // How the unit's state goes with that: what makes the induction close.
  logic early, judged, moves_word;
  assign early = u_dut.state_q inside {StIdle, StJudge, StPattern, StCheck,
                                       StDistance, StVerdict, StJob, StList,
                                       StDrop};
  assign judged = !(u_dut.state_q inside {StIdle, StJudge, StDrop});
  assign moves_word = u_dut.state_q == StWords;
  `VELO_ASSERT(BusyWithAPacket, u_dut.state_q == StIdle || head_valid_i)
  `VELO_ASSERT(SampledAtJudgement, u_dut.state_q != StJudge || !(u_dut.exists_q &&
               u_dut.process_q.enabled && u_dut.process_q.pgid == head_i.pgid) || (fit_q &&
               lid_fit_q))
  `VELO_ASSERT(FitIsOfAProcess, !fit_q || (head_valid_i && 32'(head_i.dst_wid) < Processes))
  `VELO_ASSERT(JudgedFits, !judged || (fit_q && lid_fit_q && !u_dut.malformed))
  `VELO_ASSERT(RegionSampled, u_dut.state_q == StIdle || !fit_q || !u_dut.exists_q ||
               !u_dut.process_q.enabled || u_dut.process_q.pgid != head_i.pgid ||
               u_dut.process_q.region != region_q || region_seen_q)
  `VELO_ASSERT(JudgedAsSampled, !judged || !u_dut.foreign)
  `VELO_ASSERT(InsideWhenJudged, !judged || !u_dut.outside ||
               head_i.memory == DimmnetMemorySodimm)
  `VELO_ASSERT(JobsAreForSodimm, !(u_dut.state_q inside {StPattern, StCheck,
               StDistance, StVerdict, StJob, StList, StWritten}) ||
               u_dut.target == ToSodimm)
  `VELO_ASSERT(PatternsHaveOne, !(u_dut.state_q inside {StPattern, StCheck,
               StDistance, StVerdict, StList}) || !u_dut.contiguous)
  `VELO_ASSERT(WordsAreLeft, !moves_word || u_dut.target == ToSodimm ||
               (u_dut.left_q != '0 && u_dut.left_q <= head_i.words))
  `VELO_ASSERT(PlaceGoesWithThem, !moves_word || u_dut.target == ToSodimm || u_dut.target ==
               ToReads ||
               32'(word_o) + 32'(u_dut.left_q) == head_i.address + 32'(head_i.words))
  `VELO_ASSERT(PlaceAtJudgement, u_dut.state_q != StJudge ||
               (word_o == head_i.address[11:0] && u_dut.left_q == head_i.words))
  `VELO_ASSERT(NothingWrittenEarly, !early || !written_q)
  `VELO_ASSERT(CountsFit, !(u_dut.state_q inside {StDistance, StVerdict, StList} ||
               (u_dut.state_q == StJob && !u_dut.contiguous)) ||
               (u_dut.pattern_q.count != '0 && u_dut.pattern_q.count <= 16'd62))
  `VELO_ASSERT(ListsInStep, (u_dut.state_q == StList) == (list_left_q != '0))
  `VELO_ASSERT(ListsHaveOffsets, u_dut.state_q != StList ||
               (u_dut.listed && 7'(u_dut.list_left_q) == list_left_q))
  `VELO_ASSERT(StatusOfNoRead, u_dut.state_q != StStatus || !u_dut.is_read)

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (prefetch_valid_o && word_o == 12'd255);
      cover (llcm_valid_o && word_o == 12'd3583);
      cover (job_valid_o && job_o.access == DimmnetAccessList);
      cover (pop_o && status_done_i && head_i.words == 7'd3);
      cover (read_last_o);
      cover (events_o.bounds);
    end
  end

endmodule
