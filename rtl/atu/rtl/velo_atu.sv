// SPDX-License-Identifier: Apache-2.0
//
// Address translation: says for each access of a unit where in host memory it goes, or why it must not
// be made. The unit accesses memory only with such an answer.
//
// Pages are registered by the driver in a table in host memory (spec/velo.toml, `registered_page`;
// base and size come from registers, the table starts at a multiple of its size). An access names a
// page by its place in the table, its owner's context and who wants it. Entries are kept in a cache;
// the table is read, by one non-posted read of 8 bytes, for what is not there. A new setting of the table
// counts from the next access that is judged on; all that the cache holds is forgotten then, which takes a cycle a
// line, also if the setting was another one for a while only.
//
// Clients: `request_*` valid/ready; the answer comes as a pulse `answer_valid_o` that the client takes
// at once; a client has two accesses at most and pulses `release_i` when its oldest is over.
// From the request to the answer: 5 cycles if the page is in the cache. Crossbar side: valid/ready,
// the response is taken always, so translation waits for host memory only.
//
// Deregistration: the driver zeroes the entry, then writes `invalidate_*`. While `invalidating_o`,
// accesses that were granted before may still be under way; after it, none is, and what they wrote
// has left the node (`writes_begun_i` and `writes_done_i` count posted writes, modulo 256). The same
// is done after an entry was changed in another way; a page that was none needs nothing.
//
// Refused, counted by a pulse `refused_o`, no access follows:
//   ErrorUnregistered  translation is off, the address is not in the table, or the page has no right;
//   ErrorRight         the page is another context's, for another peer, or lacks the right;
//   ErrorOversize      the access goes beyond its page;
//   ErrorHost          the host refused to read the table.
//
// Source: EXTOLL, high message rates, section III (ATU: memory accesses from user space are secured,
// registration is one system call); case-for-fpga, section 3.

`include "velo_assert.svh"

module velo_atu
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumClients = 4,
    parameter int unsigned LineBits = 6,  // of the cache
    parameter int unsigned PageBits = 24,  // of a page's place in the table
    parameter bit Ecc = 1'b0,  // check bits in the cache
    localparam int unsigned WriteCountBits = 8
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                enable_i,
    input logic [AddrBits-1:3] table_base_i,
    input logic [         4:0] table_bits_i,  // The table has 2^table_bits entries.

    input  logic                invalidate_valid_i,
    input  logic [PageBits-1:0] invalidate_page_i,
    output logic                invalidating_o,

    input  logic         [NumClients-1:0] request_valid_i,
    output logic         [NumClients-1:0] request_ready_o,
    input  atu_request_t [NumClients-1:0] request_i,
    output logic         [NumClients-1:0] answer_valid_o,
    output atu_answer_t                   answer_o,
    input  logic         [NumClients-1:0] release_i,

    input logic [WriteCountBits-1:0] writes_begun_i,
    input logic [WriteCountBits-1:0] writes_done_i,

    output logic                         nonposted_valid_o,
    input  logic                         nonposted_ready_i,
    output htax_header_t                 nonposted_header_o,
    input  logic                         response_valid_i,
    input  logic                         response_eop_i,
    input  logic                         response_error_i,
    input  logic         [DataWidth-1:0] response_data_i,

    output logic hit_o,
    output logic miss_o,
    output logic refused_o,
    output ecc_t ecc_o  // of the cache; see velo_atu_cache
);

  typedef enum logic [2:0] {
    StIdle,
    StCache,   // the cache's memory is read
    StLine,    // and shows its line
    StJudge,   // is it the entry that is wanted?
    StAsk,     // host memory
    StWait,
    StVerdict  // is it permitted?
  } state_e;

  state_e state_q;
  logic cache_ready, hit, fill, drop;
  registered_page_t cached, entry_q, entry_read;
  logic hit_q, failed_q;

  // ----- whose turn it is -----------------------------------------------------------------------

  logic [NumClients-1:0] grant, client_q;
  atu_request_t chosen, request_q;
  logic start, renew, drop_due, drop_take;

  velo_rr_arb #(
      .NumReq(NumClients)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (request_valid_i),
      .grant_o(grant),
      .take_i (start)
  );

  always_comb begin
    chosen = '0;
    for (int unsigned c = 0; c < NumClients; c++) chosen |= grant[c] ? request_i[c] : '0;
  end

  assign drop_take = state_q == StIdle && cache_ready && !renew && drop_due;
  assign start = state_q == StIdle && cache_ready && !renew && !drop_due && |request_valid_i;
  assign request_ready_o = start ? grant : '0;

  // ----- the table ------------------------------------------------------------------------------

  // The setting as it holds for the access that is judged, and for all that the cache has.
  typedef struct packed {
    logic                enable;
    logic [AddrBits-1:3] base;
    logic [4:0]          bits;
  } table_t;
  table_t table_d, table_q;
  logic differed_q;
  assign table_d = '{enable: enable_i, base: table_base_i, bits: table_bits_i};
  assign renew   = state_q == StIdle && (differed_q || table_d != table_q);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      table_q    <= '0;
      differed_q <= 1'b0;
    end else begin
      if (renew) table_q <= table_d;
      differed_q <= !renew && (differed_q || table_d != table_q);
    end
  end

  logic [PageBits-1:0] page, drop_page_q, table_mask_q;
  assign page = request_q.address.page[PageBits-1:0];

  velo_atu_cache #(
      .PageBits(PageBits),
      .LineBits(LineBits),
      .Ecc     (Ecc)
  ) u_cache (
      .clk_i,
      .rst_ni,
      .clear_i(renew),
      .ready_o(cache_ready),
      .page_i (drop_take ? drop_page_q : page),
      .hit_o  (hit),
      .entry_o(cached),
      .use_i  (state_q == StJudge),
      .ecc_o  (ecc_o),
      .fill_i (fill),
      .drop_i (drop),
      .entry_i(entry_q)
  );

  assign nonposted_valid_o = state_q == StAsk;
  always_comb begin
    nonposted_header_o = '0;
    nonposted_header_o.addr = {table_q.base | (AddrBits - 3)'(page), 3'b0};
    nonposted_header_o.len_bytes = 10'd8;
  end

  // The last beat is the entry's upper end.
  assign entry_read = DataWidth == 32 ? {response_data_i[31:0], entry_q[63:32]} :
      64'(response_data_i);

  // ----- is it permitted? -----------------------------------------------------------------------

  logic in_table, in_page;
  logic [12:0] end_offset;
  error_e verdict;

  // From the request alone, so there before the entry is.
  assign end_offset = {1'b0, request_q.address.offset} + {3'b0, request_q.len_bytes};

  always_comb begin
    verdict = ErrorNone;
    if (!in_table) verdict = ErrorUnregistered;
    else if (failed_q) verdict = ErrorHost;
    else if (entry_q.rights == '0) verdict = ErrorUnregistered;
    else if (!in_page) verdict = ErrorOversize;
    else if (entry_q.ctx != request_q.ctx || (request_q.rights & ~entry_q.rights) != '0 ||
             (entry_q.one_peer && !request_q.own && entry_q.peer != request_q.peer)) begin
      verdict = ErrorRight;
    end
  end

  always_ff @(posedge clk_i) begin
    table_mask_q <= PageBits'((33'd1 << table_q.bits) - 33'd1);
    in_table <= table_q.enable && request_q.address.zero_36 == '0 &&
        (page & ~table_mask_q) == '0 && 24'(page) == request_q.address.page;
    in_page <= end_offset <= 13'd4096;
  end

  // ----- control --------------------------------------------------------------------------------

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:  if (start) state_q <= StCache;
        StCache: state_q <= StLine;
        StLine:  state_q <= StJudge;
        StJudge: state_q <= hit || !in_table ? StVerdict : StAsk;
        StAsk:   if (nonposted_ready_i) state_q <= StWait;
        StWait:  if (response_valid_i && response_eop_i) state_q <= StVerdict;
        default: state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      request_q <= chosen;
      client_q  <= grant;
    end
    if (state_q == StJudge) failed_q <= 1'b0;
    else if (state_q == StWait && response_valid_i) failed_q <= response_error_i;
    if (state_q == StJudge) begin
      entry_q <= cached;
      hit_q   <= hit;
    end else if (state_q == StWait && response_valid_i) begin
      entry_q <= entry_read;
    end
  end

  assign fill = state_q == StVerdict && !hit_q && in_table && !failed_q && entry_q.rights != '0;
  assign drop = drop_take;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) answer_valid_o <= '0;
    else answer_valid_o <= state_q == StVerdict ? client_q : '0;
  end
  always_ff @(posedge clk_i) begin
    answer_o.error <= verdict;
    answer_o.addr  <= {entry_q.frame, request_q.address.offset};
  end

  assign hit_o     = state_q == StVerdict && hit_q && in_table;
  assign miss_o    = state_q == StAsk && nonposted_ready_i;
  assign refused_o = state_q == StVerdict && verdict != ErrorNone;

  // ----- deregistration -------------------------------------------------------------------------

  typedef enum logic [1:0] {
    DropIdle,
    DropDue,     // the entry is still in the cache
    DropAccess,  // accesses that were granted are under way
    DropWrites   // what they wrote is
  } drop_e;

  drop_e drop_q;
  logic [NumClients-1:0] granted, waited;
  logic [NumClients-1:0][1:0] open_q, open_d, waited_q;  // accesses, of all and of those waited for
  logic [WriteCountBits-1:0] mark_q, ahead;

  assign granted        = state_q == StVerdict && verdict == ErrorNone ? client_q : '0;
  assign drop_due       = drop_q == DropDue;
  assign invalidating_o = drop_q != DropIdle;
  assign ahead          = writes_done_i - mark_q;

  always_comb begin
    for (int unsigned c = 0; c < NumClients; c++) begin
      open_d[c] = open_q[c] + 2'(granted[c]) - 2'(release_i[c]);
      waited[c] = waited_q[c] != '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      drop_q <= DropIdle;
      open_q <= '0;
    end else begin
      open_q <= open_d;
      unique case (drop_q)
        DropIdle:   if (invalidate_valid_i) drop_q <= DropDue;
        DropDue:    if (drop_take) drop_q <= DropAccess;
        DropAccess: if (waited == '0) drop_q <= DropWrites;
        // Writes end in order: done as soon as the count has come to the mark.
        default:    if (!ahead[WriteCountBits-1]) drop_q <= DropIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (drop_q == DropIdle) drop_page_q <= invalidate_page_i;
    // Accesses of one client end in their order, so the next to end is one that is waited for.
    for (int unsigned c = 0; c < NumClients; c++) begin
      if (drop_take) waited_q[c] <= open_d[c];
      else if (release_i[c] && waited[c]) waited_q[c] <= waited_q[c] - 2'd1;
    end
    if (drop_q == DropAccess) mark_q <= writes_begun_i;
  end

  logic unused;
  assign unused = ^response_data_i;

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(PageFitsAddress, PageBits <= 24 && PageBits > LineBits)
  for (genvar c = 0; c < NumClients; c++) begin : gen_promise
    // A third request comes only as one of the two accesses is given back.
    `VELO_ASSUME(TwoAccessesAClient, !request_valid_i[c] || !open_q[c][1] || release_i[c])
    `VELO_ASSUME(ReleaseWhatIsHeld, !release_i[c] || open_q[c] != '0)
  end
  // Only what was asked for comes back.
  `VELO_ASSUME(ResponseToARead, !response_valid_i || state_q == StWait)
  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {answer_valid_o, nonposted_valid_o, invalidating_o,
                                               hit_o, miss_o, refused_o})

endmodule
