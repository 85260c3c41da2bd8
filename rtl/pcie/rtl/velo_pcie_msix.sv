// SPDX-License-Identifier: Apache-2.0
//
// Interrupts: MSI-X table and pending bits, what raises a vector, and how often it may be sent.
//
// A vector watches a region of host memory: a ring, or a notification queue. `event_valid_i` says that a write to
// `event_addr_i` has left; if the address is a multiple of 16 and in the region, the vector is pending, and its packet
// follows the write on the same stream, so the host sees the write first. Multiples of 16: a message's header word and
// a notification are there, a message's payload is not. A vector that is masked stays pending; one that was sent is
// not sent again for `moderation_i` cycles, and events meanwhile become one. Until its packet has begun a vector may
// still be masked, and its entry changed: what is read back afterwards comes behind the last packet of the old entry.
//
// `own_*`: writes and reads of BAR4, as far as they are table, pending bits or watches; `own_data_o` is what is at
// `own_addr_i`. After a reset all vectors are masked and watch nothing. Errors: none.
//
// Source: PCI Local Bus Specification 3.0, section 6.8.2.

`include "velo_assert.svh"

module velo_pcie_msix
  import htax_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
#(
    parameter  int unsigned Vectors   = 8,
    parameter  int unsigned Bar4Bits  = PcieBar4Bits,
    localparam int unsigned IndexBits = $clog2(Vectors)
) (
    input logic clk_i,
    input logic rst_ni,

    input config_t        config_i,
    input logic           open_i,       // packets may begin
    input logic    [15:0] moderation_i,

    input  logic                own_write_i,
    input  logic [Bar4Bits-1:0] own_write_addr_i,
    input  logic [        63:0] own_write_data_i,
    input  logic [         7:0] own_write_be_i,
    input  logic [Bar4Bits-1:0] own_addr_i,
    output logic [        63:0] own_data_o,

    input logic                event_valid_i,
    input logic [AddrBits-1:0] event_addr_i,

    output tlp_beat_t tx_o,
    input  logic      tx_ready_i,
    output logic      idle_o
);

  typedef logic [IndexBits-1:0] index_t;

  // ----- table, pending bits, watches -------------------------------------------------------------

  // Words of 64 bits, the address and then data and mask, by halves.
  (* ram_style = "distributed" *)logic [31:0] low_mem [2*Vectors];
  (* ram_style = "distributed" *)logic [31:0] high_mem[2*Vectors];
  logic [Vectors-1:0] mask_q, pending_q;
  pcie_watch_t [Vectors-1:0] watch_q;

  logic in_table, in_watches, to_table, to_watches;
  logic [IndexBits:0] table_word, table_write;
  index_t watch_word, watch_write;
  assign in_table = own_addr_i < Bar4Bits'(16 * Vectors);
  assign in_watches = own_addr_i >= Bar4Bits'(PcieRegWatch) &&
      own_addr_i < Bar4Bits'(PcieRegWatch + 8 * Vectors);
  assign table_word = own_addr_i[3+:IndexBits+1];
  assign watch_word = own_addr_i[3+:IndexBits];
  assign to_table = own_write_i && own_write_addr_i < Bar4Bits'(16 * Vectors);
  assign to_watches = own_write_i && own_write_addr_i >= Bar4Bits'(PcieRegWatch) &&
      own_write_addr_i < Bar4Bits'(PcieRegWatch + 8 * Vectors);
  assign table_write = own_write_addr_i[3+:IndexBits+1];
  assign watch_write = own_write_addr_i[3+:IndexBits];

  always_comb begin
    own_data_o = '0;
    if (in_table) begin
      own_data_o = {high_mem[table_word], low_mem[table_word]};
      if (table_word[0]) own_data_o[63:32] = 32'(mask_q[table_word[IndexBits:1]]);
    end else if (in_watches) begin
      own_data_o = watch_q[watch_word];
    end else if (own_addr_i[Bar4Bits-1:3] == (Bar4Bits - 3)'(PcieMsixPba / 8)) begin
      own_data_o = 64'(pending_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (to_table && own_write_be_i[0]) low_mem[table_write] <= own_write_data_i[31:0];
    if (to_table && own_write_be_i[4]) high_mem[table_write] <= own_write_data_i[63:32];
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mask_q  <= '1;
      watch_q <= '0;
    end else begin
      if (to_table && table_write[0] && own_write_be_i[4]) begin
        mask_q[table_write[IndexBits:1]] <= own_write_data_i[32];
      end
      for (int unsigned half = 0; half < 2; half++) begin
        if (to_watches && own_write_be_i[4*half]) begin
          watch_q[watch_write][32*half+:32] <= own_write_data_i[32*half+:32];
        end
      end
    end
  end

  // ----- what raises a vector -------------------------------------------------------------------

  logic event_q;
  logic [AddrBits-1:4] event_addr_q;
  logic [Vectors-1:0] raised, may_send, sent;
  logic [Vectors-1:0][15:0] wait_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) event_q <= 1'b0;
    else event_q <= event_valid_i && event_addr_i[3:0] == '0;
  end
  always_ff @(posedge clk_i) if (event_valid_i) event_addr_q <= event_addr_i[AddrBits-1:4];

  for (genvar v = 0; v < Vectors; v++) begin : gen_vector
    assign raised[v] = event_q && watch_q[v].enable &&
        ((event_addr_q[AddrBits-1:12] ^ watch_q[v].base) >> watch_q[v].size) == '0;
    assign may_send[v] = pending_q[v] && !mask_q[v] && wait_q[v] == '0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        pending_q[v] <= 1'b0;
        wait_q[v]    <= '0;
      end else begin
        // An event while its packet is on the way is another one.
        pending_q[v] <= raised[v] || (pending_q[v] && !sent[v]);
        if (sent[v]) wait_q[v] <= moderation_i;
        else if (wait_q[v] != '0) wait_q[v] <= wait_q[v] - 1'b1;
      end
    end
  end

  // ----- its packet -----------------------------------------------------------------------------

  typedef enum logic [1:0] {
    StIdle,
    StFirst,
    StSecond,
    StThird
  } state_e;

  state_e state_q;
  logic [Vectors-1:0] turn;
  logic [63:0] addr_q;
  logic [31:0] data_q;
  index_t turn_index, index_q;
  logic long_header, open, begins, stands;
  pcie_head_t head;

  assign open = open_i && config_i.bus_master && config_i.msix_enable && !config_i.msix_mask;
  assign begins = state_q == StIdle && open && !to_table && may_send != '0;
  // The chosen vector is still to be sent, with the address and data that were read for it.
  assign stands = open && may_send[index_q] && !to_table;
  assign sent = state_q == StFirst && stands && tx_ready_i ? Vectors'(1) << index_q : '0;
  assign idle_o = state_q == StIdle;
  assign long_header = addr_q[63:32] != '0;

  velo_rr_arb #(
      .NumReq(Vectors)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .req_i  (may_send),
      .grant_o(turn),
      .take_i (begins)
  );
  always_comb begin
    turn_index = '0;
    for (int unsigned v = 0; v < Vectors; v++) begin
      if (turn[v]) turn_index = index_t'(v);
    end
  end

  always_comb begin
    head           = '0;
    head.length    = 10'd1;
    head.tlp       = long_header ? PcieTlpMemWrite64 : PcieTlpMemWrite;
    head.first_be  = '1;
    head.requester = config_i.id;
  end
  always_comb begin
    tx_o = '{
        valid: state_q != StIdle && (state_q != StFirst || stands),
        last: 1'b0,
        keep: 2'b11,
        data: head
    };
    if (state_q == StSecond) begin
      tx_o.last = !long_header;
      tx_o.data = long_header ? {addr_q[31:0], addr_q[63:32]} : {data_q, addr_q[31:0]};
    end else if (state_q == StThird) begin
      tx_o.last = 1'b1;
      tx_o.keep = 2'b01;
      tx_o.data = {32'b0, data_q};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else if (state_q == StIdle) begin
      if (begins) state_q <= StFirst;
    end else if (state_q == StFirst && !stands) begin
      state_q <= StIdle;
    end else if (tx_ready_i) begin
      state_q <= tx_o.last ? StIdle : state_q == StFirst ? StSecond : StThird;
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      index_q <= turn_index;
      addr_q  <= {high_mem[{turn_index, 1'b0}], low_mem[{turn_index, 1'b0}][31:2], 2'b0};
      data_q  <= low_mem[{turn_index, 1'b1}];
    end
  end

  logic unused;
  assign unused = ^{own_write_be_i, own_addr_i, watch_q, config_i, event_addr_q};

  `VELO_ASSERT_INIT(VectorsFit, Vectors >= 2 && Vectors == 2 ** IndexBits && Vectors <= 64)
  `VELO_ASSERT(MaskedStaysPending, (sent & mask_q) == '0)

endmodule
