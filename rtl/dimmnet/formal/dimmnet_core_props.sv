// SPDX-License-Identifier: Apache-2.0
//
// Protection over CoreLogic as a whole, from host and network to memories and network, for all packets, commands and
// windows: each unit's proof is of that unit alone, this one is of how they are joined.
//
//   a  A word or status of a packet reaches Prefetch Windows, LLCM, ring, SO-DIMM or the reads only if the packet names
//      this board and a process that was enabled and of the packet's group when the packet came to its turn; it goes
//      to that process, in its windows, below its ring, in the region that it had then.
//   b  A packet leaves with the board's name and with number and group of the process whose command or read it is, as
//      they were when the command was looked at, enabled; and is as long as it says. What stands in window, LLCM and
//      command may be anything.
//   c  What a process's commands and pages read and write is in windows, LLCM and region of that process.
//
// Granted, where memories, queues, lists, walks and products are left open (dimmnet_core_abstract): a header stands
// until it is popped and says at most 62 words (dimmnet_intake has a proof of that length); reads give back headers that
// went in; whole elements of some words are at least one (dimmnet_divide's proof); a walk gives rows only for a job that
// began.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_core_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic             clk_i,
    input logic             rst_ni,
    input logic             write_valid_i,
    input logic [20:0]      write_address_i,
    input logic [15:0]      write_be_i,
    input logic [127:0]     write_data_i,
    input logic             read_valid_i,
    input logic [20:0]      read_address_i,
    input logic [15:0]      network_off_i,
    input logic [15:0]      network_failed_i,
    input logic [8:0][31:0] network_counts_i,
    input logic             tx_ready_i,
    input logic             rx_valid_i,
    input logic [1:0]       rx_ident_i,
    input logic [63:0]      rx_line_i,
    input logic             sodimm_ready_i,
    input logic             sodimm_response_valid_i,
    input logic [127:0]     sodimm_response_i
);

  logic write_ready_o, read_ready_o, response_valid_o, tx_valid_o, rx_ready_o;
  logic [127:0] response_data_o;
  logic [15:0] lid_o, network_stop_o;
  logic [1:0] tx_ident_o;
  logic [63:0] tx_line_o;
  logic sodimm_valid_o, sodimm_write_o;
  logic [31:0] sodimm_address_o;
  logic [1:0] sodimm_mask_o;
  logic [127:0] sodimm_data_o;

  dimmnet_core u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  function automatic logic lies_in(region_t region, logic [31:1] at);
    logic [32:0] first, behind;
    first  = {1'b0, region.first};
    behind = {1'b0, region.first} + {1'b0, region.words};
    return {1'b0, at, 1'b0} >= first && {1'b0, at, 1'b1} < behind;
  endfunction
  function automatic logic even(region_t region);
    return !region.first[0] && !region.words[0];
  endfunction
  for (genvar p = 0; p < 2; p++) begin : gen_even
    `VELO_ASSERT(RegionIsEven, even(u_dut.processes[p].region))
  end

  // ----- a: what comes in ----------------------------------------------------------------------

  // As in dimmnet_receive_controller.
  localparam logic [3:0] RxIdle = 0, RxJudge = 1, RxPattern = 2, RxJob = 6, RxList = 7, RxWords = 8,
      RxWritten = 9, RxStatus = 10, RxDrop = 11;
  dimmnet_packet_t head, head_q;
  logic head_stays_q, came_q, fit;
  logic [15:0] came_lid_q;
  process_t came_process_q, owner;
  logic [3:0] rx;
  assign head  = u_dut.head;
  assign rx    = u_dut.u_receive_controller.state_q;
  assign owner = u_dut.processes[head.dst_wid[0]];
  always_ff @(posedge clk_i) begin
    head_stays_q <= rst_ni && u_dut.head_valid && !u_dut.head_pop;
    head_q       <= head;
    // A packet's turn begins when it is first there.
    if (!rst_ni) came_q <= 1'b0;
    else came_q <= u_dut.head_valid && !u_dut.head_pop;
    if (!came_q) {came_process_q, came_lid_q} <= {owner, u_dut.lid};
  end
  `VELO_ASSUME(PacketStands, !head_stays_q || (u_dut.head_valid && head == head_q))
  `VELO_ASSUME(IntakeKnowsItsLength, !u_dut.head_valid || head.words <= 7'd62)
  assign fit = came_q && head.dst_wid < 4'd2 && head.dst_lid == came_lid_q && came_lid_q != '0 &&
      came_process_q.enabled && came_process_q.pgid == head.pgid;

  // What the Window Controller's or sender's segment is of: see below.
  logic sends_q, seg_wid_q, pick_wid_q;
  region_t seg_region_q;

  logic pw_we, pw_load, ll_we, ll_host, ll_packet, ll_status, ring_load;
  logic [7:0] pw_row;
  logic [11:0] ll_row;
  assign pw_we     = u_dut.u_prefetch_window.u_ram.we_i;
  assign pw_load   = u_dut.u_prefetch_window.load_goes;
  assign pw_row    = u_dut.u_prefetch_window.u_ram.waddr_i;
  assign ll_we     = u_dut.u_llcm.u_ram.we_i;
  assign ll_host   = u_dut.u_llcm.host_we_i;
  assign ll_packet = u_dut.u_llcm.write_grant[0];
  assign ll_status = u_dut.u_llcm.write_grant[1];
  assign ll_row    = u_dut.u_llcm.u_ram.waddr_i;
  assign ring_load = u_dut.u_status_write_unit.load;

  `VELO_ASSERT(PrefetchWindowOfItsGroup, !pw_we || pw_load || (fit &&
               head.memory == DimmnetMemoryPrefetch && head.kind != DimmnetKindRead &&
               pw_row[7] == head.dst_wid[0] && 32'(u_dut.receive_word) >= head.address &&
               32'(u_dut.receive_word) < head.address + 32'(head.words) &&
               u_dut.receive_word < 12'd256 && pw_row[6:0] == u_dut.receive_word[7:1]))
  `VELO_ASSERT(LlcmOfItsGroup, !(ll_we && ll_packet) || (!ll_host && fit &&
               head.memory == DimmnetMemoryLlcm && head.kind != DimmnetKindRead &&
               ll_row[11] == head.dst_wid[0] && ll_row[10:0] < 11'd1792 &&
               32'(u_dut.receive_word) >= head.address &&
               32'(u_dut.receive_word) < head.address + 32'(head.words)))
  `VELO_ASSERT(RingOfItsGroup, !(ll_we && ll_status) || (!ll_host && ll_row[10:0] >= 11'd1792 &&
               (ring_load ? sends_q && ll_row[11] == seg_wid_q :
                fit && ll_row[11] == head.dst_wid[0] && head.kind != DimmnetKindRead)))
  `VELO_ASSERT(CountedForItsRing, !u_dut.status_written || u_dut.status_wid == ll_row[11])
  `VELO_ASSERT(ReadsOfItsGroup, !u_dut.read_in_valid || (fit && u_dut.read_in == head &&
               head.kind == DimmnetKindRead))

  `VELO_ASSERT(CameIsBusy, came_q == (rx != RxIdle))
  logic judged;
  assign judged = !(rx inside {RxIdle, RxJudge, RxDrop});
  `VELO_ASSERT(SampledWhenItCame, !came_q || (u_dut.head_valid &&
               u_dut.u_receive_controller.process_q == came_process_q &&
               u_dut.u_receive_controller.exists_q == (head.dst_wid < 4'd2 &&
               head.dst_lid == came_lid_q && came_lid_q != '0)))
  `VELO_ASSERT(CameEven, !came_q || even(came_process_q.region))
  `VELO_ASSERT(JudgedFits, !judged || (!u_dut.u_receive_controller.malformed &&
               !u_dut.u_receive_controller.foreign && (!u_dut.u_receive_controller.outside ||
               head.memory == DimmnetMemorySodimm)))
  `VELO_ASSERT(JobsAreForSodimm, !(rx inside {[RxPattern:RxList], RxWritten}) ||
               u_dut.u_receive_controller.target == 2'd2)
  `VELO_ASSERT(StatusOfNoRead, rx != RxStatus || head.kind != DimmnetKindRead)
  `VELO_ASSERT(WordsAreLeft, rx != RxWords || u_dut.u_receive_controller.target == 2'd2 ||
               (u_dut.u_receive_controller.left_q != '0 &&
               u_dut.u_receive_controller.left_q <= head.words))
  `VELO_ASSERT(PlaceGoesWithThem, rx != RxWords || u_dut.u_receive_controller.target >= 2'd2 ||
               32'(u_dut.receive_word) + 32'(u_dut.u_receive_controller.left_q) ==
               head.address + 32'(head.words))
  `VELO_ASSERT(PlaceAtJudgement, rx != RxJudge || (u_dut.receive_word == head.address[11:0] &&
               u_dut.u_receive_controller.left_q == head.words))

  // ----- a, c: SO-DIMM is written ---------------------------------------------------------------

  logic job_store_q, job_wid_q, mine_q;
  region_t job_region_q, next_region_q, walks_region_q, row_region_q, port_region_q;
  logic [1:0] wu;  // as in dimmnet_write_unit: idle, list, words, drain
  assign wu = u_dut.u_write_share.u_write_unit.state_q;
  always_ff @(posedge clk_i) begin
    if (u_dut.u_write_share.receive_taken_o) begin
      {job_store_q, job_wid_q, job_region_q} <= {1'b0, head.dst_wid[0], came_process_q.region};
    end else if (u_dut.u_write_share.store_taken_o) begin
      {job_store_q, job_wid_q, job_region_q} <= {1'b1, seg_wid_q, seg_region_q};
    end
    // The packet whose turn it is has a job.
    if (!rst_ni || u_dut.head_pop) mine_q <= 1'b0;
    else if (u_dut.u_write_share.receive_taken_o) mine_q <= 1'b1;
  end
  `VELO_ASSERT(JobOfItsGroup, !u_dut.u_write_share.receive_taken_o || (fit && rx == RxJob &&
               head.memory == DimmnetMemorySodimm && head.kind != DimmnetKindRead))
  `VELO_ASSERT(JobOfAStore, !u_dut.u_write_share.store_taken_o || (sends_q &&
               u_dut.u_send.u_sender.s.kind == SegmentStore))
  `VELO_ASSERT(WordsOfItsJob, !(u_dut.receive_write && u_dut.receive_write_ready) || (fit &&
               mine_q && !job_store_q && job_wid_q == head.dst_wid[0] &&
               job_region_q == came_process_q.region))
  `VELO_ASSERT(WordsOfItsStore, !(u_dut.store_write && u_dut.store_write_ready) || (sends_q &&
               job_store_q))
  `VELO_ASSERT(NeverWordsOfBoth, !(u_dut.receive_write_ready && u_dut.store_write_ready))
  `VELO_ASSERT(WhatTheUnitTakes, !u_dut.u_write_share.data_ready ||
               u_dut.u_write_share.u_write_unit.data_i ==
               (job_store_q ? u_dut.store_data : u_dut.receive_data))
  `VELO_ASSERT(HasAJob, !(rx inside {RxList, RxWritten} || (rx == RxWords &&
               u_dut.u_receive_controller.target == 2'd2)) || mine_q)
  `VELO_ASSERT(JobOfThisPacket, !mine_q || job_store_q || (came_q && fit &&
               job_wid_q == head.dst_wid[0] && job_region_q == came_process_q.region))
  `VELO_ASSERT(UnitHasThatJob, wu == 2'd0 ||
               (u_dut.u_write_share.u_write_unit.job_q.region == job_region_q &&
               u_dut.u_write_share.store_q == job_store_q && even(job_region_q)))
  `VELO_ASSERT(NoRequestWithoutWords, !u_dut.row_write || wu >= 2'd2)
  `VELO_ASSERT(RowInTheRegion, !u_dut.row_write || lies_in(job_region_q, u_dut.row_write_at))

  // ----- c: SO-DIMM is read ----------------------------------------------------------------------

  logic walks_there_q;
  always_ff @(posedge clk_i) begin
    if (u_dut.fetch_valid && u_dut.fetch_ready) begin
      next_region_q <= u_dut.processes[pick_wid_q].region;
    end
    if (!rst_ni) walks_there_q <= 1'b0;
    else if (u_dut.u_prefetch_unit.start) walks_there_q <= 1'b1;
    if (u_dut.u_prefetch_unit.start) walks_region_q <= next_region_q;
    if (u_dut.u_prefetch_unit.room) row_region_q <= walks_region_q;
    if (u_dut.u_sodimm.room) port_region_q <= u_dut.u_sodimm.write ? job_region_q : row_region_q;
  end
  `VELO_ASSUME(WalksOnlyAJob, !u_dut.u_prefetch_unit.row_valid || walks_there_q)
  `VELO_ASSERT(FetchOfItsProcess, !u_dut.fetch_valid ||
               u_dut.fetch_job.region == u_dut.processes[pick_wid_q].region)
  `VELO_ASSERT(NextIsThat, !u_dut.u_prefetch_unit.next_there_q ||
               (u_dut.u_prefetch_unit.next_q.region == next_region_q && even(next_region_q)))
  `VELO_ASSERT(WalksThat, !walks_there_q || (u_dut.u_prefetch_unit.walks_q.region ==
               walks_region_q && even(walks_region_q)))
  `VELO_ASSERT(ReadInTheRegion, !u_dut.row_read || lies_in(row_region_q, u_dut.row_read_at))
  `VELO_ASSERT(RequestInTheRegion, !sodimm_valid_o ||
               (lies_in(port_region_q, sodimm_address_o[31:1]) && !sodimm_address_o[0]))

  // ----- b: commands and reads become segments ---------------------------------------------------

  // As in dimmnet_window_controller.
  localparam logic [3:0] WcPick = 0, WcStart = 1, WcReply = 2, WcFields = 6, WcDivide = 7,
      WcVerdict = 9, WcSegment = 10, WcJob = 11, WcList = 12, WcPush = 13, WcRefuse = 14;
  logic [3:0] wc;
  logic able, pick_read_q, look_enabled_q, sized;
  logic [15:0] look_lid_q, look_pgid_q;
  segment_t segment;
  logic segment_goes;
  transfer_t t;
  assign wc = u_dut.u_send.u_window_controller.state_q;
  assign t = u_dut.u_send.u_window_controller.t;
  assign segment = u_dut.u_send.segment;
  assign segment_goes = u_dut.u_send.segment_valid && u_dut.u_send.segment_ready;
  assign able = wc inside {[WcDivide:WcPush]};
  always_ff @(posedge clk_i) begin
    if (u_dut.u_send.u_window_controller.picks) begin
      pick_read_q <= u_dut.u_send.u_window_controller.grant[2];
      pick_wid_q  <= u_dut.u_send.u_window_controller.grant[2] ?
          u_dut.u_send.read_head.dst_wid[0] : u_dut.u_send.u_queue.head_wid_i;
    end
    // The process as it is when its command or read is looked at.
    if (wc inside {WcStart, WcFields}) begin
      {look_enabled_q, look_lid_q, look_pgid_q} <= {u_dut.processes[pick_wid_q].enabled, u_dut.lid,
                                                    u_dut.processes[pick_wid_q].pgid};
    end
  end

  logic read_stays_q;
  dimmnet_packet_t read_q;
  always_ff @(posedge clk_i) begin
    read_stays_q <= rst_ni && u_dut.u_send.read_waits && !u_dut.u_send.read_pop;
    read_q       <= u_dut.u_send.read_head;
  end
  `VELO_ASSUME(ReadStands, !read_stays_q || (u_dut.u_send.read_waits &&
               u_dut.u_send.read_head == read_q))
  `VELO_ASSUME(ReadsWentInSo, !u_dut.u_send.read_waits || (u_dut.u_send.read_head.dst_wid < 4'd2 &&
               u_dut.u_send.read_head.access != 2'd3))
  `VELO_ASSUME(KnownEntry, u_dut.u_send.queue_head.kind <= EntryTransfer)
  `VELO_ASSUME(SomeElements, wc != WcVerdict ||
               !u_dut.u_send.u_window_controller.u_judge.exact || t.words == '0 ||
               u_dut.u_send.u_window_controller.u_judge.count != '0)

  // A host's page gives commands to the queue of its process.
  `VELO_ASSERT(CommandOfItsPage, !u_dut.push_valid || (!write_address_i[20] &&
               4'(u_dut.push_wid) == write_address_i[19:16]))
  `VELO_ASSERT(PicksWhatItLooksAt, !u_dut.u_send.u_window_controller.picks ||
               u_dut.u_send.u_window_controller.grant[2] ||
               u_dut.u_send.u_window_controller.grant[u_dut.u_send.u_queue.head_wid_i])
  `VELO_ASSERT(PopsItsOwn, !u_dut.u_send.queue_pop || (!pick_read_q &&
               u_dut.u_send.u_queue.pop_wid_i == pick_wid_q))
  `VELO_ASSERT(RefusesItsOwn, !u_dut.refuse_valid || (!pick_read_q &&
               u_dut.refuse_wid == pick_wid_q))
  `VELO_ASSERT(OfThePicked, wc == WcPick ||
               (u_dut.u_send.u_window_controller.wid_q == pick_wid_q &&
               u_dut.u_send.u_window_controller.is_read_q == pick_read_q &&
               u_dut.u_send.u_window_controller.context_q == (pick_read_q ? 2'd2 :
               {1'b0, pick_wid_q}) && u_dut.u_send.u_window_controller.entry_q.kind <=
               EntryTransfer && (!pick_read_q || u_dut.u_send.read_waits)))
  `VELO_ASSERT(NameAsLookedAt, !able || (look_enabled_q &&
               u_dut.u_send.u_window_controller.lid_q == look_lid_q &&
               u_dut.u_send.u_window_controller.pgid_q == look_pgid_q))
  `VELO_ASSERT(AReadIsOfItsGroup, !able || !pick_read_q ||
               look_pgid_q == u_dut.u_send.read_head.pgid)

  // Lengths: a segment's is the sum of its parts.
  logic of_transfer, locals, remotes, gets;
  logic [5:0] element;
  assign of_transfer = pick_read_q ||
      u_dut.u_send.u_window_controller.entry_q.kind == EntryTransfer;
  assign locals  = t.local_access != DimmnetAccessContiguous;
  assign remotes = t.remote_access != DimmnetAccessContiguous;
  assign gets    = t.op == DimmnetOpGet;
  assign element = u_dut.u_send.u_window_controller.element_words;
  `VELO_ASSERT(ParsesReads, !(wc inside {[WcReply:WcFields]}) || pick_read_q)
  `VELO_ASSERT(OnlyTransfersTakeLong, !(wc inside {[WcDivide:WcList]}) || of_transfer)
  `VELO_ASSERT(RightFields, !able || !of_transfer ||
               (t.op inside {DimmnetOpPut, DimmnetOpGet, DimmnetOpLoad, DimmnetOpStore} &&
               t.local_access != 2'd3 && t.remote_access != 2'd3 && !t.local_memory[1] &&
               (!locals || t.local_memory == DimmnetMemorySodimm) &&
               (!remotes || t.remote_memory == DimmnetMemorySodimm) &&
               !(gets && t.local_access == DimmnetAccessList) &&
               !(pick_read_q && t.remote_access == DimmnetAccessList) &&
               t.words != '0 && element != '0 && element <= 6'd32))
  for (genvar i = 0; i < 3; i++) begin : gen_left
    `VELO_ASSERT(SomeIsLeft, !u_dut.u_send.u_window_controller.started_q[i] ||
                 u_dut.u_send.u_window_controller.progress_q[i].left != '0)
  end
  `VELO_ASSERT(NotYetStarted, !(wc inside {[WcReply:WcVerdict]}) ||
               !u_dut.u_send.u_window_controller.started)
  `VELO_ASSERT(SomeIsLeftNow, !(wc inside {[WcSegment:WcPush]}) || !of_transfer ||
               u_dut.u_send.u_window_controller.progress.left != '0)
  assign sized = wc inside {[WcJob:WcPush]} && of_transfer;
  logic [19:0] now, product;
  assign now = u_dut.u_send.u_window_controller.u_segment.now_q;
  assign product = 20'(now[6:0] * element);
  `VELO_ASSERT(AsManyAsFit, !sized || (now != '0 &&
               now <= u_dut.u_send.u_window_controller.u_segment.most_now &&
               now <= u_dut.u_send.u_window_controller.progress.left))
  `VELO_ASSERT(ThatManyWords, !sized || u_dut.u_send.u_window_controller.u_segment.words_q ==
               (gets && t.remote_access != DimmnetAccessList ? t.words : product))
  `VELO_ASSERT(BotfIsInItsWindow, wc != WcPush || of_transfer ||
               u_dut.u_send.u_window_controller.entry_q.kind != EntryBotf ||
               (u_dut.u_send.u_window_controller.u_judge.botf.words >= 7'd2 &&
                8'(u_dut.u_send.u_window_controller.u_judge.botf.first) +
                8'(u_dut.u_send.u_window_controller.u_judge.botf.words) <= 8'd64))

  function automatic logic [7:0] parts_of(segment_t of);
    logic [7:0] parts;
    parts = 8'(of.data_words);
    if (of.kind == SegmentRead) parts = 8'd1 + 8'(of.reply_patterned);
    if (of.kind inside {SegmentRead, SegmentPacket}) begin
      parts = parts + 8'(of.patterned) + (of.listed ? 8'(list_words(of.job.count)) : '0);
    end
    return parts;
  endfunction
  function automatic logic right(segment_t of);
    return 8'(of.header.words) == parts_of(of) && of.header.words <= 7'd62 &&
        of.kind <= SegmentStore &&
        (!of.listed || (of.job.count != '0 && of.job.count <= 7'd64 &&
         (of.kind == SegmentStore || (of.patterned &&
          of.kind inside {SegmentPacket, SegmentRead})))) &&
        (!(of.kind inside {SegmentBotf, SegmentAotf}) || of.from_window) &&
        (of.data_words != '0 || of.kind inside {SegmentBotf, SegmentRead});
  endfunction
  `VELO_ASSERT(SegmentIsRight, !u_dut.u_send.segment_valid || right(segment))
  `VELO_ASSERT(SegmentOfThePicked, !u_dut.u_send.segment_valid || (
               segment.wid == 4'(pick_wid_q) && segment.header.src_wid == 4'(pick_wid_q) &&
               segment.header.src_lid == look_lid_q && segment.header.pgid == look_pgid_q &&
               segment.own == !pick_read_q))
  `VELO_ASSERT(NamedIfItLeaves, !u_dut.u_send.segment_valid || segment.header.src_lid != '0 ||
               segment.kind inside {SegmentLoad, SegmentStore})
  `VELO_ASSERT(NamedIfItSends, !able || look_lid_q != '0 || (!pick_read_q &&
               t.op inside {DimmnetOpLoad, DimmnetOpStore} && of_transfer))

  // ----- b: segments become packets --------------------------------------------------------------

  // As in dimmnet_sender.
  localparam logic [3:0] TxIdle = 0, TxHead0 = 1, TxHead1 = 2, TxReply = 3, TxPattern = 4,
      TxList = 5, TxReplyPattern = 6, TxData = 7, TxJob = 8, TxOffsets = 9, TxStored = 10,
      TxStatus = 11;
  logic [3:0] tx;
  segment_t s;
  logic [15:0] seg_lid_q, seg_pgid_q;
  logic tx_take, open_q, packet;
  logic [6:0] lines_q, said_q;
  dimmnet_packet_t low, high;
  assign tx = u_dut.u_send.u_sender.state_q;
  assign s = u_dut.u_send.u_sender.s;
  assign packet = !(s.kind inside {SegmentLoad, SegmentStore});
  assign tx_take = tx_valid_o && tx_ready_i;
  assign low  = {64'b0, tx_line_o};
  assign high = {tx_line_o, 64'b0};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) sends_q <= 1'b0;
    else if (segment_goes) sends_q <= 1'b1;
    if (segment_goes) begin
      {seg_wid_q, seg_lid_q, seg_pgid_q} <= {pick_wid_q, look_lid_q, look_pgid_q};
      seg_region_q <= u_dut.processes[pick_wid_q].region;
    end
    if (!rst_ni) open_q <= 1'b0;
    else if (tx_take) open_q <= tx_ident_o != DimmnetLineLast;
    if (tx_take) lines_q <= open_q ? lines_q + 7'd1 : 7'd1;
    if (tx_take && !open_q) said_q <= low.words;
  end
  `VELO_ASSERT(TrueSender, !(tx_valid_o && !open_q) || (low.src_wid == 4'(seg_wid_q) &&
               low.src_lid == seg_lid_q && seg_lid_q != '0))
  `VELO_ASSERT(TrueGroup, !(tx_valid_o && open_q && lines_q == 7'd1) || high.pgid == seg_pgid_q)
  `VELO_ASSERT(FirstIsNamed, !tx_valid_o || (tx_ident_o == DimmnetLineFirst) == !open_q)
  `VELO_ASSERT(AsLongAsItSays, !(tx_valid_o && open_q) ||
               (tx_ident_o == DimmnetLineLast) == (lines_q == said_q + 7'd1))
  `VELO_ASSERT(AtMostAWindow, !open_q || said_q <= 7'd62)

  logic busy;
  logic [7:0] parts, due;
  assign busy  = tx != TxIdle;
  assign parts = parts_of(s);
  always_comb begin
    due = '0;
    unique case (tx)
      TxHead0: due = parts + 8'd1;
      TxHead1: due = parts;
      TxReply: due = parts - 8'd1;
      TxPattern: due = parts - 8'd1 - 8'(s.kind == SegmentRead);
      TxList: begin
        due = 8'(u_dut.u_send.u_sender.offsets_left_q) - 8'd1 +
            (s.kind == SegmentRead ? 8'(s.reply_patterned) : 8'(s.data_words));
      end
      TxData: due = 8'(u_dut.u_send.u_sender.left_q) - 8'd1;
      default: ;
    endcase
  end
  `VELO_ASSERT(SegmentStays, !busy || (sends_q && right(s) && s.wid == 4'(seg_wid_q) &&
               s.header.src_wid == 4'(seg_wid_q) && s.header.src_lid == seg_lid_q &&
               s.header.pgid == seg_pgid_q && (seg_lid_q != '0 || !packet)))
  `VELO_ASSERT(StoreInItsRegion, !busy || s.kind != SegmentStore || (s.job.region ==
               seg_region_q && even(seg_region_q)))
  `VELO_ASSERT(LinesAreDue, !(busy && packet) || 8'(u_dut.u_send.u_sender.lines_q) == due)
  `VELO_ASSERT(LinesGone, !(busy && packet && tx != TxHead0) || (said_q == s.header.words &&
               8'(lines_q) + 8'(u_dut.u_send.u_sender.lines_q) == 8'(s.header.words) + 8'd1))
  `VELO_ASSERT(OpenInside, open_q == (busy && packet && tx != TxHead0))
  `VELO_ASSERT(HeadIsTheSecond, tx != TxHead1 || lines_q == 7'd1)
  `VELO_ASSERT(LaterIsLater, !(busy && packet && tx > TxHead1) || lines_q >= 7'd2)
  `VELO_ASSERT(StatesOfKinds, !busy ||
               ((packet || tx inside {TxData, TxJob, TxOffsets, TxStored, TxStatus}) &&
                (!packet || tx <= TxData) &&
                (s.kind == SegmentStore || !(tx inside {TxJob, TxOffsets, TxStored})) &&
                (s.kind == SegmentRead || !(tx inside {TxReply, TxReplyPattern})) &&
                (tx != TxReplyPattern || s.reply_patterned) &&
                (tx != TxPattern || (s.patterned && s.kind inside {SegmentRead, SegmentPacket})) &&
                (!(tx inside {TxList, TxOffsets}) || s.listed) &&
                (tx != TxData || s.kind != SegmentRead)))
  `VELO_ASSERT(DataIsLeft, tx != TxData || (u_dut.u_send.u_sender.left_q <= s.data_words &&
               u_dut.u_send.u_sender.left_q != '0))
  `VELO_ASSERT(AllDataAtFirst, !(tx inside {[TxHead0:TxList], TxJob, TxOffsets}) ||
               u_dut.u_send.u_sender.left_q == s.data_words)
  `VELO_ASSERT(OffsetsAreLeft, tx != TxList || (u_dut.u_send.u_sender.offsets_left_q != '0 &&
               u_dut.u_send.u_sender.offsets_left_q <= list_words(s.job.count)))
  `VELO_ASSERT(AllOffsetsAtFirst, !(tx inside {[TxHead0:TxPattern]}) ||
               u_dut.u_send.u_sender.offsets_left_q == list_words(s.job.count))

  // ----- c: windows and LLCM ---------------------------------------------------------------------

  logic [7:0] pr_row;
  logic [6:0] ww_row;
  logic [11:0] lr_row;
  assign ww_row = u_dut.u_write_window.u_ram.raddr_i;
  assign lr_row = u_dut.u_llcm.u_ram.raddr_i;
  assign pr_row = u_dut.u_prefetch_window.u_ram.raddr_i;
  `VELO_ASSERT(WindowOfItsProcess, busy ? ww_row[6] == seg_wid_q :
               !segment_goes || ww_row[6] == pick_wid_q)
  `VELO_ASSERT(HostFillsItsWindow, !u_dut.u_write_window.u_ram.we_i || (write_valid_i &&
               u_dut.u_write_window.u_ram.waddr_i == {write_address_i[16], write_address_i[9:4]} &&
               write_address_i[20:17] == '0 && write_address_i[15:10] == '0))
  `VELO_ASSERT(HostWritesItsLlcm, !(ll_we && ll_host) || (write_valid_i &&
               ll_row == {write_address_i[16], write_address_i[14:4]} &&
               write_address_i[20:17] == '0 && write_address_i[15]))
  `VELO_ASSERT(HostReadsItsLlcm, !u_dut.read_llcm ||
               (lr_row == {read_address_i[16], read_address_i[14:4]} &&
               read_address_i[20:17] == '0 && read_address_i[15]))
  `VELO_ASSERT(HostReadsItsWindow, pr_row == {read_address_i[16], read_address_i[10:4]})
  `VELO_ASSERT(ListOfItsProcess, !(u_dut.list_valid && u_dut.list_ready) || (!pick_read_q &&
               lr_row[11] == pick_wid_q))
  `VELO_ASSERT(OffsetsOfItsProcess, !(u_dut.send_valid && u_dut.send_ready) ||
               (sends_q && lr_row[11] == seg_wid_q))
  `VELO_ASSERT(LoadOfItsProcess, !(pw_we && pw_load) || (busy && s.kind == SegmentLoad &&
               pw_row[7] == seg_wid_q))
  `VELO_ASSERT(DoneForItsProcess, !u_dut.done_valid || u_dut.done_wid == seg_wid_q)

  // ----- the proof is not empty -------------------------------------------------------------------

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (pw_we && !pw_load && pw_row == 8'hff);
      cover (ll_we && ll_packet && ll_row == {1'b1, 11'd1791});
      cover (ll_we && ll_status && !ring_load && ll_row[11]);
      cover (sodimm_valid_o && sodimm_write_o && !job_store_q);
      cover (u_dut.read_in_valid);
      cover (u_dut.receive_events.pgid);
      cover (tx_take && tx_ident_o == DimmnetLineLast && s.kind == SegmentBotf &&
             said_q == 7'd3 && seg_wid_q);
      cover (tx_take && tx_ident_o == DimmnetLineFirst && !s.own);
    end
  end

  logic unused;
  assign unused = ^{write_ready_o, read_ready_o, response_valid_o, rx_ready_o, response_data_o,
                    lid_o, network_stop_o, sodimm_mask_o, sodimm_data_o};

endmodule
