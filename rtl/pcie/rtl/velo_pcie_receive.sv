// SPDX-License-Identifier: Apache-2.0
//
// Takes packets in and tells what each one is for.
//
//   memory write to BAR2   words to velo_pcie_stores, `store_commit_o` when it has come in whole;
//   memory write to BAR0   `control_*`, valid/ready, a register of the node;
//   memory write to BAR4   `own_write_o`, a pulse, a register of the function;
//   anything that wants an answer   `request_valid_o`, a pulse;
//   completion             `answer_o`, as it comes.
// Messages and prefixes are swallowed.
//
// Nothing here waits for the network, which is what keeps one class of posted writes from locking up: a read pointer
// behind a store would wait for the store, and the store for the pointer. A store for which there is no room as its
// data begin is dropped whole, with a pulse on `dropped_o`. Whose store it is `store_look_o` tells a cycle before room
// is asked for. A register write waits for `control_ready_i`, which the node owes. A request
// without room is dropped: the hard block holds requests back while `request_room_i` is low. Completions never wait.
//
// Errors, each swallowed whole and pulsed in `event_o`: a store or register write of another form (a store: 8 to 64
// bytes, whole words; a register of the node: 8 bytes), one that no base address register has, poisoned data, a packet
// that is not as long as it says. With `open_i` low requests are swallowed, completions are not; so is what began before
// it fell and has not come in whole, also if it ends after `open_i` has risen again. A register write that waits ends
// with `restart_i`. A completion of a locked read is nobody's: none is asked for.
//
// Source: PCI Express Base Specification 3.0, sections 2.2 to 2.4.

`include "velo_assert.svh"

module velo_pcie_receive
  import velo_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter int unsigned Bar0Bits = 28,
    parameter int unsigned Bar2Bits = WindowUnitLsb + 2,
    parameter int unsigned Bar4Bits = PcieBar4Bits
) (
    input logic clk_i,
    input logic rst_ni,

    input logic        open_i,     // requests are served
    input logic        restart_i,  // the node is in its reset
    input logic [15:0] id_i,       // this function's

    input  tlp_beat_t rx_i,
    input  bar_t      rx_bar_i,   // with the second beat
    output logic      rx_ready_o,

    // A store's words, each at its place in the line that is filled; then the store, if it is one.
    output logic                store_look_o,    // a store may be coming
    output logic [         7:0] store_source_o,  // from this context
    input  logic                store_room_i,    // there is a line for that
    output logic                store_word_o,    // a word is given
    output logic [         2:0] store_index_o,   // the how many-th
    output logic [        63:0] store_data_o,
    output logic                store_commit_o,  // the line is a store
    output logic [Bar2Bits-1:0] store_addr_o,
    output logic [         3:0] store_words_o,
    output logic                dropped_o,       // `store_addr_o` was dropped as there was none
    input  logic [        31:0] stores_i,        // that have come in

    output logic                control_valid_o,
    input  logic                control_ready_i,
    output logic [Bar0Bits-1:0] control_addr_o,
    output logic [        63:0] control_data_o,

    output logic                own_write_o,
    output logic [Bar4Bits-1:0] own_addr_o,
    output logic [        63:0] own_data_o,
    output logic [         7:0] own_be_o,

    input  logic           request_room_i,
    output logic           request_valid_o,
    output request_t       request_o,
    output answer_t        answer_o,
    output receive_event_t event_o
);

  typedef enum logic [1:0] {
    StFirst,   // the header's first beat
    StSecond,
    StBody,
    StControl  // a register write waits to be taken
  } state_e;

  typedef enum logic [2:0] {
    KindMessage,
    KindStore,
    KindControl,
    KindOwn,
    KindRequest,
    KindAnswer,
    KindRefused   // a posted write that nothing serves
  } kind_e;

  state_e                  state_q;
  pcie_head_t              head_q;
  pcie_completion_t        completion;
  logic             [63:0] second_q;  // beat
  bar_t                    bar_q;
  logic                    ended_q;  // no more beats
  logic                    served_q;  // requests have been served since its first beat
  logic             [31:0] first_q;  // data behind a header of three dwords
  logic [10:0] got_q, got, data_dwords, promised_dwords;
  logic [9:0] index_q;

  // ----- what it is -----------------------------------------------------------------------------

  logic long_header, has_data, single;
  logic [37:0] addr;
  assign long_header = head_q.tlp[5];
  assign has_data = head_q.tlp[6];
  assign single = head_q.length == 10'd1;
  assign completion = {second_q, head_q};
  function automatic logic [37:0] addr_of(logic is_long, logic [63:0] beat);
    return is_long ? {beat[5:0], beat[63:32]} : {6'b0, beat[31:0]};
  endfunction
  assign addr = addr_of(long_header, second_q);

  // Told from the second beat as it comes.
  logic memory, aligned, whole_words;
  kind_e kind_d, kind_q;
  assign memory = !head_q.tlp[7] && head_q.tlp[4:0] == 5'b0;
  assign aligned = !(long_header ? rx_i.data[34] : rx_i.data[2]) && !head_q.length[0];
  assign whole_words = aligned && head_q.first_be == 4'hf && head_q.last_be == 4'hf;

  always_comb begin
    kind_d = KindRequest;
    if (head_q.tlp[7] || head_q.tlp[4:3] == 2'b10) kind_d = KindMessage;
    else if (head_q.tlp[4:1] == 4'b0101) kind_d = KindAnswer;
    else if (memory && has_data) begin
      kind_d = KindRefused;
      if (head_q.poisoned) kind_d = KindRefused;
      else if (rx_bar_i.bar2 && whole_words && head_q.length inside {[10'd2 : 10'd16]})
        kind_d = KindStore;
      else if (rx_bar_i.bar0 && whole_words && head_q.length == 10'd2) kind_d = KindControl;
      else if (rx_bar_i.bar4 && (single || (aligned && head_q.length == 10'd2))) kind_d = KindOwn;
    end
  end

  // ----- its beats ------------------------------------------------------------------------------

  logic body_take, done, length_good, good;

  always_comb begin
    unique case (state_q)
      StFirst, StSecond: rx_ready_o = 1'b1;
      StBody: rx_ready_o = !ended_q;
      default: rx_ready_o = 1'b0;
    endcase
  end
  assign body_take = state_q == StBody && rx_i.valid && rx_ready_o;
  assign done = state_q == StBody && (ended_q || (body_take && rx_i.last));

  // It stays at more than any packet may have.
  assign got = !body_take ? got_q : got_q >= 11'd2046 ? '1 :
      got_q + 11'(rx_i.keep[0]) + 11'(rx_i.keep[1]);
  assign data_dwords = !has_data ? 11'd0 : head_q.length == '0 ? 11'd1024 : {1'b0, head_q.length};
  assign promised_dwords = data_dwords + 11'(head_q.digest);
  assign length_good = got == promised_dwords;
  assign good = done && length_good;

  // Room that comes while a store is dropped is for the next one.
  logic is_store, dropping, dropping_q;
  assign is_store = state_q == StBody && kind_q == KindStore;
  assign dropping = is_store && (dropping_q || !store_room_i);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) dropping_q <= 1'b0;
    else dropping_q <= dropping && !done;
  end

  // A word for each beat: behind a header of three dwords it began in the beat before.
  logic [31:0] carry_q;
  logic [63:0] word;
  assign word = long_header ? rx_i.data : {rx_i.data[31:0], carry_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StFirst;
    else begin
      unique case (state_q)
        StFirst: if (rx_i.valid && !rx_i.last) state_q <= StSecond;
        StSecond: if (rx_i.valid) state_q <= StBody;
        StBody:
        if (done) state_q <= good && kind_q == KindControl && served_q ? StControl : StFirst;
        default: if (control_ready_i || restart_i) state_q <= StFirst;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StFirst) head_q <= rx_i.data;
    if (state_q == StSecond) begin
      kind_q   <= kind_d;
      second_q <= rx_i.data;
      bar_q    <= rx_bar_i;
      ended_q  <= rx_i.last;
      first_q  <= rx_i.data[63:32];
      got_q    <= long_header ? 11'd0 : 11'(rx_i.keep[1]);
      index_q  <= '0;
    end
    if (state_q == StFirst) served_q <= open_i;
    else if (!open_i) served_q <= 1'b0;
    if (rx_i.valid && rx_ready_o) carry_q <= rx_i.data[63:32];
    if (body_take) begin
      got_q <= got;
      if (index_q != '1) index_q <= index_q + 1'b1;
    end
    if (body_take && index_q == '0) control_data_o <= word;
  end

  // ----- what becomes of it ---------------------------------------------------------------------

  logic in_data, mine;
  assign mine = completion.requester == id_i && !head_q.tlp[0];
  assign in_data = body_take && index_q < {1'b0, head_q.length[9:1]};

  // With the second beat.
  logic [37:0] addr_d;
  assign addr_d = addr_of(long_header, rx_i.data);
  assign store_look_o = state_q == StSecond && rx_i.valid && open_i;
  assign store_source_o = window_source(64'(addr_d[Bar2Bits-1:0]));

  assign store_word_o = in_data && is_store && served_q && !dropping;
  assign store_index_o = index_q[2:0];
  assign store_data_o = word;
  assign store_commit_o = good && is_store && served_q && !dropping;
  assign store_addr_o = addr[Bar2Bits-1:0];
  assign store_words_o = head_q.length[4:1];
  assign dropped_o = good && is_store && served_q && dropping;

  assign control_valid_o = state_q == StControl;
  assign control_addr_o = addr[Bar0Bits-1:0];

  assign own_write_o = good && kind_q == KindOwn && served_q;
  assign own_addr_o = addr[Bar4Bits-1:0];
  // Of one dword, which is at both halves' places, or of two, behind which a digest may have a beat of its own.
  always_comb begin
    own_data_o = index_q == '0 ? word : control_data_o;
    own_be_o   = {head_q.last_be, head_q.first_be};
    if (single) begin
      own_data_o = long_header ? {2{rx_i.data[31:0]}} : {2{first_q}};
      own_be_o   = addr[2] ? {head_q.first_be, 4'b0} : {4'b0, head_q.first_be};
    end
  end

  assign request_valid_o = good && kind_q == KindRequest && served_q && request_room_i;
  assign request_o = '{
          refused: !memory || bar_q == '0 || head_q.poisoned,
          bar: bar_q,
          read: memory,
          behind: stores_i,
          addr: addr,
          length: head_q.length,
          be: {head_q.last_be, head_q.first_be},
          attributes: {head_q.relaxed, head_q.no_snoop},
          tc: head_q.tc,
          tag: head_q.tag,
          requester: head_q.requester
      };

  logic answer_refused, answer_good;
  assign answer_refused = !has_data || completion.status != PcieStatusSuccess;
  assign answer_good = !answer_refused && !completion.poisoned && !completion.length[0];
  assign answer_o = '{
          word_valid: in_data && kind_q == KindAnswer && mine,
          word_index: index_q[6:0],
          word: word,
          end_valid: good && kind_q == KindAnswer,
          mine: mine,
          refused: answer_refused,
          good: answer_good,
          length: completion.length,
          byte_count: completion.byte_count,
          tag: completion.tag
      };

  // A packet that ends within its header, one of another length, a request without room.
  logic stump, overrun;
  assign stump = state_q == StFirst && rx_i.valid && rx_i.last;
  assign overrun = good && kind_q == KindRequest && served_q && !request_room_i;
  assign event_o.poisoned = good && served_q && memory && has_data && head_q.poisoned;
  assign event_o.unsupported = good && served_q && !event_o.poisoned &&
      (kind_q == KindRefused || (request_valid_o && request_o.refused));
  assign event_o.malformed = stump || (done && !length_good) || overrun;

  logic unused;
  assign unused = ^{head_q.at, completion, addr_d};

  `VELO_ASSERT_INIT(BarsFit, Bar2Bits <= 38 && Bar0Bits <= 32 && Bar4Bits <= 32)
  // A line is filled only if it is free, and what was dropped leaves nothing behind.
  `VELO_ASSERT(OnlyIntoRoom, !(store_word_o || store_commit_o) || store_room_i)
  logic [4:0] outcome;
  assign outcome = {store_commit_o, dropped_o, own_write_o, request_valid_o, answer_o.end_valid};
  `VELO_ASSERT(OneOutcome, (outcome & (outcome - 5'd1)) == '0)

endmodule
