// SPDX-License-Identifier: Apache-2.0
//
// What dimmnet_unit_memory promises, for a host that takes writes and reads when it likes and answers reads in any order,
// in part at a time, with errors and of wrong length: each write of CoreLogic becomes one write of the same words,
// each read one read; the responses come in the order of the reads, each once, with what was answered, or zeros if that was
// an error. Granted: a request stands until it is taken, and is of a row; only what was asked for is answered (velo_read_guard).
//
// `at_i` is any read, by the count of reads: what comes for it is followed.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_unit_memory_props
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [AddrBits-1:0] base_i,
    input logic sodimm_valid_i,
    input logic sodimm_write_i,
    input logic [31:0] sodimm_address_i,
    input logic [1:0] sodimm_mask_i,
    input logic [127:0] sodimm_data_i,
    input logic write_ready_i,
    input logic read_ready_i,
    input htax_stream_t answer_i,
    input logic [DataWidth-1:0] answer_data_i,
    input logic [2:0] at_i  // the same in all cycles
);

  localparam int unsigned Beats = 128 / DataWidth;

  logic failed_o, sodimm_ready_o, sodimm_response_valid_o, answer_ready_o;
  logic [127:0] sodimm_response_o;
  htax_stream_t write_o;
  htax_read_t read_o;
  logic [DataWidth-1:0] write_data_o;

  dimmnet_unit_memory #(
      .DataWidth(DataWidth)
  ) u_dut (
      .*
  );

  logic past_q, stands_q;
  logic [2:0] at_q;
  logic [AddrBits+162:0] request_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    at_q <= at_i;
    stands_q <= rst_ni && sodimm_valid_i && !sodimm_ready_o;
    request_q <= {base_i, sodimm_write_i, sodimm_address_i, sodimm_mask_i, sodimm_data_i};
  end
  always_comb begin
    assume (past_q || !rst_ni);
    assume (!past_q || at_q == at_i);
  end
  `VELO_ASSUME(RequestStands, !stands_q || (sodimm_valid_i &&
               request_q == {base_i, sodimm_write_i, sodimm_address_i, sodimm_mask_i,
                             sodimm_data_i}))

  `VELO_ASSUME(Rows, base_i[3:0] == '0 && (!sodimm_valid_i || !sodimm_address_i[0]))

  // ----- writes ---------------------------------------------------------------------------------

  // The words of the write, packed, and how many.
  logic [127:0] words;
  logic [1:0] count;
  logic [2:0] gone_q;  // its beats
  logic [2:0] beats;
  assign count = 2'(sodimm_mask_i[0]) + 2'(sodimm_mask_i[1]);
  assign words = sodimm_mask_i[0] ? sodimm_data_i : sodimm_data_i >> 64;
  assign beats = DataWidth == 32 ? {count, 1'b0} : DataWidth == 64 ? 3'(count) : 3'd1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) gone_q <= '0;
    else if (write_o.valid && write_ready_i) gone_q <= write_o.eop ? '0 : gone_q + 1'b1;
  end
  `VELO_ASSERT(WritesOnly, !write_o.valid || (sodimm_valid_i && sodimm_write_i && count != '0))
  `VELO_ASSERT(WriteSays, !write_o.valid || (write_o.header.len_bytes == {5'b0, count, 3'b0} &&
               !write_o.header.window && write_o.header.addr == base_i +
               (48'(sodimm_address_i) + 48'(!sodimm_mask_i[0])) * 48'd8))
  // Words are compared whole: of the last beat of 128 bits only what counts.
  `VELO_ASSERT(SameWords, !write_o.valid ||
               (DataWidth == 128 ? 64'(write_data_o) == words[63:0] && (count == 2'd1 ||
                write_data_o[DataWidth-1:DataWidth/2] == words[127-:DataWidth/2]) :
                write_data_o == DataWidth'(words >> (gone_q * 8'(DataWidth)))))
  `VELO_ASSERT(AsLongAsItSays, !write_o.valid || write_o.eop == (gone_q + 3'd1 == beats))
  `VELO_ASSERT(TakenWhenGone, !(sodimm_valid_i && sodimm_write_i) || sodimm_ready_o ==
               (count == '0 || (write_o.valid && write_o.eop && write_ready_i)))

  // ----- reads ----------------------------------------------------------------------------------

  logic [2:0] asked_q, given_q;
  logic here_q, whole_q, bad_q;  // the read is under way; answered; badly
  logic [2:0] come_q;  // beats of its answer
  logic [127:0] seen_q;
  logic ask, mine;
  assign ask  = read_o.valid && read_ready_i;
  assign mine = here_q && !whole_q && answer_i.valid && answer_i.header.tag[1:0] == at_i[1:0];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {asked_q, given_q} <= '0;
      {here_q, whole_q, come_q} <= '0;
    end else begin
      if (ask) asked_q <= asked_q + 1'b1;
      if (sodimm_response_valid_o) given_q <= given_q + 1'b1;
      if (ask && asked_q == at_i) {here_q, whole_q, come_q} <= {1'b1, 1'b0, 3'd0};
      else begin
        if (sodimm_response_valid_o && given_q == at_i) here_q <= 1'b0;
        if (mine) begin
          if (come_q < 3'(Beats)) seen_q[DataWidth*come_q[1:0]+:DataWidth] <= answer_data_i;
          if (come_q < 3'd5) come_q <= come_q + 1'b1;
          if (answer_i.eop) begin
            whole_q <= 1'b1;
            bad_q   <= answer_i.header.error || come_q != 3'(Beats - 1);
          end
        end
      end
    end
  end
  logic [1:0] ahead;
  assign ahead = answer_i.header.tag[1:0] - given_q[1:0];
  `VELO_ASSUME(AskedFor, !answer_i.valid || (3'(ahead) < asked_q - given_q &&
               !u_dut.done_q[answer_i.header.tag[1:0]] && answer_i.header.tag < 8'd4))

  `VELO_ASSERT(ReadsOnly, !read_o.valid || (sodimm_valid_i && !sodimm_write_i && gone_q == '0))
  `VELO_ASSERT(ReadSays, !read_o.valid || (read_o.header.len_bytes == 10'd16 &&
               !read_o.header.window &&
               read_o.header.addr == base_i + 48'(sodimm_address_i) * 48'd8))
  `VELO_ASSERT(OneReadATag, !read_o.valid || (asked_q - given_q < 3'd4 &&
               read_o.header.tag == 8'(asked_q[1:0])))
  `VELO_ASSERT(TakenWhenAsked, !(sodimm_valid_i && !sodimm_write_i) || sodimm_ready_o == ask)
  `VELO_ASSERT(NothingIsInvented, !sodimm_response_valid_o || given_q != asked_q)
  `VELO_ASSERT(InItsTurn, !(sodimm_response_valid_o && given_q == at_i) || (here_q && whole_q))
  `VELO_ASSERT(SameData, !(sodimm_response_valid_o && given_q == at_i) ||
               sodimm_response_o == (bad_q ? '0 : seen_q))
  `VELO_ASSERT(NoneWaits, !(here_q && whole_q && given_q == at_i) || sodimm_response_valid_o)
  `VELO_ASSERT(FailuresAreCounted, !(mine && answer_i.eop) ||
               failed_o == (answer_i.header.error || come_q != 3'(Beats - 1)))
  `VELO_ASSERT(AnswersAreTaken, answer_ready_o)

  // ----- what makes the induction close -----------------------------------------------------------

  `VELO_ASSERT(SameCounts, u_dut.asked_q == asked_q && u_dut.given_q == given_q &&
               asked_q - given_q <= 3'd4)
  `VELO_ASSERT(SameTracked, here_q == (3'(at_i - given_q) < 3'(asked_q - given_q)))
  `VELO_ASSERT(SameDone, !here_q || u_dut.done_q[at_i[1:0]] == whole_q)
  `VELO_ASSERT(SameBeats, !here_q || u_dut.beat_q[at_i[1:0]] == (whole_q ? 3'd0 :
               come_q > 3'(Beats) ? 3'(Beats) : come_q))
  `VELO_ASSERT(ComeInTurn, come_q <= 3'd5)
  `VELO_ASSERT(SameVoid, !(here_q && whole_q) || u_dut.void_q[at_i[1:0]] == bad_q)
  for (genvar b = 0; b < Beats; b++) begin : gen_beat
    `VELO_ASSERT(SameBeat, !here_q || come_q <= 3'(b) ||
                 u_dut.row_q[at_i[1:0]][DataWidth*b+:DataWidth] == seen_q[DataWidth*b+:DataWidth])
  end
  `VELO_ASSERT(WholeIfGood, !(here_q && whole_q && !bad_q) || come_q == 3'(Beats))
  for (genvar t = 0; t < 4; t++) begin : gen_tag
    logic [1:0] place;
    assign place = 2'(t) - given_q[1:0];
    `VELO_ASSERT(UnusedIsIdle, 3'(place) < 3'(asked_q - given_q) ||
                 (!u_dut.done_q[t] && u_dut.beat_q[t] == '0))
    `VELO_ASSERT(DoneIsIdle, !u_dut.done_q[t] || u_dut.beat_q[t] == '0)
    `VELO_ASSERT(BeatsAreFew, u_dut.beat_q[t] <= 3'(Beats))
  end
  if (DataWidth == 32) begin : gen_state
    `VELO_ASSERT(SameGone, gone_q == {1'b0, u_dut.second_q,
                 u_dut.gen_narrow.u_beats.gen_halves.upper_q})
    `VELO_ASSERT(InsideStands, gone_q == '0 || (sodimm_valid_i && sodimm_write_i && gone_q < beats))
    `VELO_ASSERT(SecondStands, gone_q == '0 || stands_q)
  end else if (DataWidth == 64) begin : gen_state
    `VELO_ASSERT(SameGone, gone_q == 3'(u_dut.second_q))
    `VELO_ASSERT(InsideStands, gone_q == '0 || (stands_q && sodimm_write_i && count == 2'd2))
  end else begin : gen_state
    `VELO_ASSERT(SameGone, gone_q == '0 &&
                 u_dut.second_q == u_dut.gen_wide.u_beats.gen_halves.kept_q)
    `VELO_ASSERT(InsideStands, !u_dut.second_q || (stands_q && sodimm_write_i && count == 2'd2 &&
                 u_dut.gen_wide.u_beats.gen_halves.lower_q == words[63:0]))
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (sodimm_response_valid_o && given_q == 3'd1 && !failed_o &&
             sodimm_response_o[127:96] == 32'd5);
      cover (asked_q - given_q == 3'd4 && u_dut.done_q == 4'b1010);
      cover (write_o.valid && write_o.eop && write_ready_i && count == 2'd2);
      cover (failed_o && !answer_i.header.error);
    end
  end

endmodule
