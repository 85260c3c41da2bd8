// SPDX-License-Identifier: Apache-2.0
//
// Stores and loads of the host, from the crossbar to the host port of CoreLogic. An address's target is a
// dimmnet_slot: a page that the driver grants leads to the windows and registers of one process, as in a memory slot.
//
// A store is of whole words at an aligned address and stays in its page; each word is written in the cycle in which it
// is there. A load likewise, 512 bytes at most; it waits for stores that came before it. Four words of it are under
// way at a time. Latency: a store none; a load's first beat comes four cycles after it was taken.
// Errors: any other store is swallowed, any other load answered with an error; `refused_o` pulses for each.

`include "velo_assert.svh"

module dimmnet_unit_host
  import velo_pkg::*;
  import htax_pkg::*;
  import dimmnet_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned HostPort  = 0
) (
    input logic clk_i,
    input logic rst_ni,

    output logic refused_o,

    // From the crossbar.
    input  htax_stream_t                 store_i,
    input  logic         [DataWidth-1:0] store_data_i,
    output logic                         store_ready_o,
    input  htax_read_t                   load_i,
    output logic                         load_ready_o,
    output htax_stream_t                 answer_o,
    output logic         [DataWidth-1:0] answer_data_o,
    input  logic                         answer_ready_i,

    // To CoreLogic, see dimmnet_core.
    output logic         write_valid_o,
    input  logic         write_ready_i,
    output logic [ 20:0] write_address_o,
    output logic [ 15:0] write_be_o,
    output logic [127:0] write_data_o,
    output logic         read_valid_o,
    input  logic         read_ready_i,
    output logic [ 20:0] read_address_o,
    input  logic         response_valid_i,
    input  logic [127:0] response_data_i
);

  localparam int unsigned SlotBits = $bits(write_address_o);
  localparam int unsigned PageWords = 4096 / 8;
  typedef logic [$clog2(PageWords)-1:0] place_t;  // of a word in its page

  function automatic logic [63:0] target_of(logic [AddrBits-1:0] addr);
    return 64'(addr) & ((64'd1 << WindowSourceLsb) - 64'd1);
  endfunction
  // Whole words of the slot, that stay in their page.
  function automatic logic is_good(logic [63:0] target, logic [9:0] len_bytes, logic [9:0] most);
    return target >> SlotBits == '0 && target[2:0] == '0 && len_bytes[2:0] == '0 &&
        len_bytes != '0 && len_bytes <= most && 13'(target[11:0]) + 13'(len_bytes) <= 13'd4096;
  endfunction

  // ----- stores ---------------------------------------------------------------------------------

  logic word_valid, word_ready, word_sop, word_eop, store_good, store_inside_q;
  logic [63:0] word, store_target;
  place_t stored_q;

  if (DataWidth == 32) begin : gen_narrow
    velo_widen #(
        .Width    (64),
        .HalfWidth(32)
    ) u_words (
        .clk_i,
        .rst_ni,
        .in_valid_i (store_i.valid),
        .in_ready_o (store_ready_o),
        .in_sop_i   (1'b0),
        .in_eop_i   (store_i.eop),
        .in_single_i(1'b0),
        .in_data_i  (store_data_i),
        .out_valid_o(word_valid),
        .out_ready_i(word_ready),
        .out_sop_o  (word_sop),
        .out_eop_o  (word_eop),
        .out_data_o (word)
    );
  end else begin : gen_wide
    velo_narrow #(
        .Width    (DataWidth),
        .HalfWidth(64)
    ) u_words (
        .clk_i,
        .rst_ni,
        .in_valid_i (store_i.valid),
        .in_ready_o (store_ready_o),
        .in_sop_i   (1'b0),
        .in_eop_i   (store_i.eop),
        .in_single_i(store_i.eop && odd_words(store_i.header.len_bytes[3:0])),
        .in_data_i  (store_data_i),
        .out_valid_o(word_valid),
        .out_ready_i(word_ready),
        .out_sop_o  (word_sop),
        .out_eop_o  (word_eop),
        .out_data_o (word)
    );
  end

  assign store_target = target_of(store_i.header.addr);
  assign store_good = is_good(store_target, store_i.header.len_bytes, '1);
  assign word_ready = !store_good || write_ready_i;
  assign write_valid_o = word_valid && store_good;
  assign write_address_o = {store_target[SlotBits-1:12], store_target[11:3] + stored_q, 3'b0};
  assign write_be_o = write_address_o[3] ? 16'hff00 : 16'h00ff;
  assign write_data_o = {word, word};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      store_inside_q <= 1'b0;
      stored_q       <= '0;
    end else begin
      if (store_i.valid && store_ready_o) store_inside_q <= !store_i.eop;
      if (word_valid && word_ready) stored_q <= word_eop ? '0 : stored_q + 1'b1;
    end
  end

  // ----- loads ----------------------------------------------------------------------------------

  logic load_busy_q, load_error_q, load_turn, load_good, ask, asked_last_q;
  logic [7:0] tag_q;
  logic [8:3] left_q, unsent_q;  // words to ask for and to send, less one
  logic [SlotBits-1:3] load_at_q;
  logic [1:0] upper_q;  // of the two reads under way: which half
  logic [2:0] under_way_q;  // words asked for and not sent
  logic got_valid, got_ready, got_last, send, unused_push_ready, unused_sop;
  logic [63:0] got, load_target;
  logic [2:0] unused_count;

  // A store that has begun to come is older than a load.
  assign load_turn = load_i.valid && !load_busy_q && !store_i.valid && !store_inside_q;
  assign load_ready_o = load_turn;
  assign load_target = target_of(load_i.header.addr);
  assign load_good = is_good(load_target, load_i.header.len_bytes, 10'd512);

  assign ask = load_busy_q && !load_error_q && !asked_last_q && !under_way_q[2];
  assign read_valid_o = ask;
  assign read_address_o = {load_at_q, 3'b0} & ~SlotBits'(15);

  velo_fifo #(
      .Width(64),
      .Depth(4)
  ) u_got (
      .clk_i,
      .rst_ni,
      .push_valid_i(response_valid_i),
      .push_ready_o(unused_push_ready),
      .push_data_i (upper_q[1] ? response_data_i[127:64] : response_data_i[63:0]),
      .pop_valid_o (got_valid),
      .pop_ready_i (send && !load_error_q),
      .pop_data_o  (got),
      .count_o     (unused_count)
  );

  assign got_last = load_error_q || unsent_q == '0;
  assign send = (got_valid || (load_busy_q && load_error_q)) && got_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      load_busy_q  <= 1'b0;
      under_way_q  <= '0;
      asked_last_q <= 1'b0;
    end else begin
      if (load_turn) begin
        load_busy_q  <= 1'b1;
        asked_last_q <= 1'b0;
      end else if (send && got_last) begin
        load_busy_q <= 1'b0;
      end
      if (ask && read_ready_i && left_q == '0) asked_last_q <= 1'b1;
      under_way_q <= under_way_q + 3'(ask && read_ready_i) - 3'(send && !load_error_q);
    end
  end
  always_ff @(posedge clk_i) begin
    upper_q <= {upper_q[0], load_at_q[3]};
    if (load_turn) begin
      load_error_q <= !load_good;
      tag_q        <= load_i.header.tag;
      load_at_q    <= load_target[SlotBits-1:3];
      left_q       <= load_i.header.len_bytes[8:3] - 1'b1;
      unsent_q     <= load_i.header.len_bytes[8:3] - 1'b1;
    end else begin
      if (ask && read_ready_i) begin
        load_at_q <= load_at_q + 1'b1;
        left_q    <= left_q - 1'b1;
      end
      if (send) unsent_q <= unsent_q - 1'b1;
    end
  end

  // An error is one beat without data.
  logic answer_valid, answer_eop;
  if (DataWidth == 32) begin : gen_answer
    logic half_ready;
    velo_narrow #(
        .Width    (64),
        .HalfWidth(32)
    ) u_beats (
        .clk_i,
        .rst_ni,
        .in_valid_i (got_valid || (load_busy_q && load_error_q)),
        .in_ready_o (half_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (got_last),
        .in_single_i(load_error_q),
        .in_data_i  (got),
        .out_valid_o(answer_valid),
        .out_ready_i(answer_ready_i),
        .out_sop_o  (unused_sop),
        .out_eop_o  (answer_eop),
        .out_data_o (answer_data_o)
    );
    assign got_ready = half_ready;
  end else begin : gen_wide_answer
    velo_widen #(
        .Width    (DataWidth),
        .HalfWidth(64)
    ) u_beats (
        .clk_i,
        .rst_ni,
        .in_valid_i (got_valid || (load_busy_q && load_error_q)),
        .in_ready_o (got_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (got_last),
        .in_single_i(1'b0),
        .in_data_i  (got),
        .out_valid_o(answer_valid),
        .out_ready_i(answer_ready_i),
        .out_sop_o  (unused_sop),
        .out_eop_o  (answer_eop),
        .out_data_o (answer_data_o)
    );
  end

  assign answer_o = '{
          valid: answer_valid,
          eop: answer_eop,
          header: '{port: PortBits'(HostPort), tag: tag_q, error: load_error_q, default: '0}
      };

  logic bad_store;
  assign bad_store = word_valid && word_ready && word_eop && !store_good;
  assign refused_o = bad_store || (load_turn && !load_good);

  logic unused;
  assign unused = ^{store_i, load_i, word_sop};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(SlotFitsWindow, WindowSourceLsb >= SlotBits)
  // CoreLogic's answers cannot wait.
  `VELO_ASSERT(AnswerHasRoom, !response_valid_i || unused_push_ready)
  // A page that was granted leads to itself: no access leaves it.
  `VELO_ASSERT(StoreStaysInPage,
               !write_valid_o || write_address_o[SlotBits-1:12] == store_target[SlotBits-1:12])
  `VELO_ASSERT(FourAtMost, under_way_q <= 3'd4)

endmodule
