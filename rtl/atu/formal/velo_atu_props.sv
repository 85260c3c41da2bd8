// SPDX-License-Identifier: Apache-2.0
//
// The promises of the address translation, for one page of one's choice, two clients, a table of one to eight
// entries and a cache of two lines, whatever the clients ask and whenever the host answers.
//
//   * An access is granted only inside a page that is in the table, with the right, to its owner's
//     context and its peer; and it is told that page's place in host memory.
//   * After a page is taken out of the table and its deregistration has ended, no client holds an
//     access to it, and none is granted.
//   * Each request has one answer.
//   * The setting counts that was offered as the request was taken, whenever it changes: with the table off, or too
//     small for the page, nothing is granted. What the cache held before the table was off is not granted behind it.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_atu_props
  import velo_pkg::*;
  import velo_atu_pkg::*;
  import htax_pkg::*;
(
    input logic                     clk_i,
    input logic                     rst_ni,
    input logic                     enable_i,
    input logic               [1:0] table_bits_i,
    input logic                     invalidate_valid_i,
    input logic               [2:0] invalidate_page_i,
    input logic               [1:0] request_valid_i,
    input atu_request_t       [1:0] request_i,
    input logic               [1:0] release_i,
    input logic               [7:0] writes_begun_i,
    input logic               [7:0] writes_done_i,
    input logic                     nonposted_ready_i,
    input logic                     response_valid_i,
    input logic                     response_error_i,
    input registered_page_t         other_i,
    input logic                     take_out_i
);

  logic invalidating, nonposted_valid, hit, miss, refused;
  logic [1:0] request_ready, answer_valid;
  atu_answer_t answer;
  htax_header_t nonposted_header;
  registered_page_t response_data;

  velo_secded_pkg::ecc_t unused_ecc;
  velo_atu #(
      .DataWidth (64),
      .NumClients(2),
      .LineBits  (1),
      .PageBits  (3)
  ) u_dut (
      .table_base_i      ('0),
      .table_bits_i      ({3'b0, table_bits_i}),
      .invalidating_o    (invalidating),
      .request_ready_o   (request_ready),
      .answer_valid_o    (answer_valid),
      .answer_o          (answer),
      .nonposted_valid_o (nonposted_valid),
      .nonposted_header_o(nonposted_header),
      .response_eop_i    (1'b1),
      .response_data_i   (response_data),
      .hit_o             (hit),
      .miss_o            (miss),
      .refused_o         (refused),
      .ecc_o             (unused_ecc),
      .*
  );

  // ----- the table: one entry of one's choice, which may be taken out; the others are anything -----

  logic past_q, in_table_q, asked_q;
  logic [2:0] page_q, asked_page_q;
  registered_page_t entry_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q  <= 1'b1;
    page_q  <= page_q;
    entry_q <= entry_q;
    if (!rst_ni) in_table_q <= 1'b1;
    else if (take_out_i) in_table_q <= 1'b0;
    if (!rst_ni) asked_q <= 1'b0;
    else if (nonposted_valid && nonposted_ready_i) asked_q <= 1'b1;
    else if (response_valid_i) asked_q <= 1'b0;
    if (nonposted_valid && nonposted_ready_i) asked_page_q <= nonposted_header.addr[5:3];
  end
  assign response_data = asked_page_q != page_q ? other_i : in_table_q ? entry_q : '0;
  // Bits of a field are all treated alike; two of a frame and one of each other say it.
  `VELO_ASSUME(FewBits, {entry_q.frame[35:2], entry_q.ctx[7:1], entry_q.peer[15:1]} == '0)
  `VELO_ASSUME(ResponseIfAsked, !response_valid_i || asked_q)

  // ----- deregistration of that page ------------------------------------------------------------

  // The one that began after the entry was zero, and its end.
  logic ending_q, ended_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ending_q <= 1'b0;
      ended_q  <= 1'b0;
    end else begin
      if (invalidate_valid_i && !invalidating && !in_table_q && invalidate_page_i == page_q) begin
        ending_q <= 1'b1;
      end
      if (ending_q && !invalidating) ended_q <= 1'b1;
    end
  end

  // ----- requests and answers -------------------------------------------------------------------

  atu_request_t request_q;
  logic [1:0] owner_q, granted;
  // By client: how many accesses it has, and whether they are to that page, the oldest in bit 0.
  logic [1:0][1:0] open_q, holds_q, left, held;
  logic chosen;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) owner_q <= '0;
    else if (|(request_valid_i & request_ready)) owner_q <= request_valid_i & request_ready;
    else if (|answer_valid) owner_q <= '0;
    if (request_valid_i[0] && request_ready[0]) request_q <= request_i[0];
    if (request_valid_i[1] && request_ready[1]) request_q <= request_i[1];
    open_q  <= rst_ni ? left : '0;
    holds_q <= rst_ni ? held : '0;
  end

  always_comb begin
    for (int unsigned c = 0; c < 2; c++) begin
      held[c] = holds_q[c];
      if (granted[c]) held[c][open_q[c][0]] = chosen;
      held[c] = held[c] >> release_i[c];
      left[c] = open_q[c] + 2'(granted[c]) - 2'(release_i[c]);
    end
  end

  // Each client has two accesses at most, that which it asks for among them, and gives back only those.
  for (genvar c = 0; c < 2; c++) begin : gen_client
    `VELO_ASSUME(TwoAccessesAClient, !request_valid_i[c] || release_i[c] ||
                 open_q[c] + 2'(owner_q[c]) < 2'd2)
    `VELO_ASSUME(ReleaseWhatIsHeld, !release_i[c] || open_q[c] != '0 || granted[c])
  end

  assign granted = answer.error == ErrorNone ? answer_valid : '0;
  assign chosen  = request_q.address == {28'b0, 21'b0, page_q, request_q.address.offset};
  `VELO_ASSERT(OneAnswer, (answer_valid & ~owner_q) == '0)
  `VELO_ASSERT(InTheTable, granted == '0 || request_q.address[63:15] == '0)
  `VELO_ASSERT(InItsPage, granted == '0 ||
               13'(request_q.address.offset) + 13'(request_q.len_bytes) <= 13'd4096)
  `VELO_ASSERT(WithTheRight, granted == '0 || !chosen ||
               (entry_q.rights != '0 && (request_q.rights & ~entry_q.rights) == '0))
  `VELO_ASSERT(OfItsOwner, granted == '0 || !chosen || entry_q.ctx == request_q.ctx)
  `VELO_ASSERT(ForItsPeer, granted == '0 || !chosen || !entry_q.one_peer || request_q.own ||
               entry_q.peer == request_q.peer)
  `VELO_ASSERT(AtItsPlace, granted == '0 || !chosen ||
               answer.addr == {entry_q.frame, request_q.address.offset})
  `VELO_ASSERT(NobodyHoldsIt, !ended_q || holds_q == '0)
  `VELO_ASSERT(NobodyGetsIt, !ended_q || !chosen || granted == '0)

  // The setting with which the request was taken, and whether the table was off since the page left it.
  logic on_q, off_q, late_q;
  logic [2:0] mask_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) off_q <= 1'b0;
    else if (!in_table_q && !enable_i) off_q <= 1'b1;
    if (|(request_valid_i & request_ready)) begin
      on_q   <= enable_i;
      mask_q <= 3'((4'd1 << table_bits_i) - 4'd1);
      late_q <= off_q;
    end
  end
  `VELO_ASSERT(OnlyWhileOn, granted == '0 || on_q)
  `VELO_ASSERT(OnlyAsLarge, granted == '0 || (request_q.address[14:12] & ~mask_q) == '0)
  `VELO_ASSERT(ForgottenWhileOff, granted == '0 || !chosen || !late_q)

  // After a reset the cache holds nothing, whatever its memory held. Only a look-up while the table is as the reset left
  // it, off and of one page, shows that: with any other setting the cache is emptied anew before anything is granted.
  logic filled_q;
  always_ff @(posedge clk_i) filled_q <= rst_ni && (filled_q || response_valid_i);
  `VELO_ASSERT(EmptyAfterReset, !(u_dut.u_cache.use_i && u_dut.u_cache.hit_o) || filled_q)

  // The host is asked until it takes the request.
  logic asks_q;
  always_ff @(posedge clk_i) asks_q <= rst_ni && nonposted_valid && !nonposted_ready_i;
  `VELO_ASSERT(AskStands, !asks_q || nonposted_valid)

  // Posted writes begin and end one at a time, in order. Those that had begun when the last access to
  // the page was given back have ended when deregistration has.
  logic [7:0] begun_q, done_q, mark_q, left_of_mark;
  always_ff @(posedge clk_i) begin
    begun_q <= writes_begun_i;
    done_q  <= writes_done_i;
    if (!ending_q || holds_q != '0) mark_q <= writes_begun_i;
  end
  assign left_of_mark = mark_q - done_q;
  `VELO_ASSUME(OneWriteAtATime, writes_begun_i - begun_q <= 8'd1 && writes_done_i - done_q <= 8'd1)
  `VELO_ASSUME(EndedAfterBegun, writes_begun_i - writes_done_i <= 8'd64)
  `VELO_ASSERT(WritesHaveLeft, !(ending_q && !ended_q && !invalidating) || left_of_mark == '0 ||
               left_of_mark[7])

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (granted != '0 && chosen && hit == 1'b0);
      cover (ended_q && |answer_valid && chosen);
      cover (miss && asked_page_q == page_q && in_table_q);
      cover (refused && chosen);
      cover (hit && chosen);
      cover (open_q[0] == 2'd2 && ended_q);
      cover (late_q && |answer_valid && chosen && on_q);
    end
  end

endmodule
