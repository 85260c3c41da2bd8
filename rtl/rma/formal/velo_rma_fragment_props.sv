// SPDX-License-Identifier: Apache-2.0
//
// The promises of the cutting of operations, for any addresses and length and from any offset that
// fragments so far can have led to.
//
//   * A fragment fits a packet and stays in one page at both ends.
//   * It starts where the one before ended, has at least one byte unless the operation has none, and
//     does not go beyond the operation: however long that is, it is covered once and cutting ends.
//   * The last fragment, and no other, ends the operation.
//   * It is there four cycles after the start, no sooner, and stays until the next one.

`include "velo_assert.svh"

module velo_rma_fragment_props (
    input logic        clk_i,
    input logic        rst_ni,
    input logic        start_i,
    input logic [63:0] read_address_i,
    input logic [11:0] write_address_i,
    input logic [22:0] len_bytes_i,
    input logic        next_i
);

  localparam int unsigned FragmentBytes = 448;

  logic start_q, valid, last;
  logic [63:0] address, read_address_q;
  logic [11:0] write_address_q;
  logic [9:0] len_bytes;
  logic [22:0] operation_bytes_q, offset_q;

  velo_rma_fragment #(
      .FragmentBytes(FragmentBytes)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .start_i        (start_q),
      .read_address_i (read_address_q),
      .write_address_i(write_address_q),
      .len_bytes_i    (operation_bytes_q),
      .offset_i       (offset_q),
      .valid_o        (valid),
      .address_o      (address),
      .len_bytes_o    (len_bytes),
      .last_o         (last)
  );

  // ----- the requester, as far as it cuts ---------------------------------------------------------

  logic past_q, open_q, next;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  // The next fragment of this operation.
  assign next = open_q && !start_q && valid && next_i && !last;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    if (!rst_ni) begin
      open_q  <= 1'b0;
      start_q <= 1'b0;
    end else begin
      start_q <= start_i || next;
      if (start_i) open_q <= 1'b1;
    end
    if (start_i) begin
      read_address_q    <= read_address_i;
      write_address_q   <= write_address_i;
      operation_bytes_q <= len_bytes_i;
      offset_q          <= '0;
    end else if (next) begin
      offset_q <= offset_q + {13'b0, len_bytes};
    end
  end

  // ----- promises ---------------------------------------------------------------------------------

  logic shown;
  logic [11:0] write_place;
  logic [23:0] end_offset;
  assign shown       = open_q && !start_q && valid;
  assign write_place = write_address_q + offset_q[11:0];
  assign end_offset  = {1'b0, offset_q} + {14'b0, len_bytes};
  `VELO_ASSERT(FitsAPacket, !shown || len_bytes <= 10'(FragmentBytes))
  `VELO_ASSERT(StaysInThePageRead, !shown || 13'(address[11:0]) + 13'(len_bytes) <= 13'd4096)
  `VELO_ASSERT(StaysInThePageWritten, !shown || 13'(write_place) + 13'(len_bytes) <= 13'd4096)
  `VELO_ASSERT(StartsWhereTheLastEnded, !shown || address == read_address_q + 64'(offset_q))
  `VELO_ASSERT(GoesOn, !shown || len_bytes != '0 || operation_bytes_q == '0)
  `VELO_ASSERT(NotBeyond, !shown || end_offset <= {1'b0, operation_bytes_q})
  `VELO_ASSERT(LastEndsIt, !shown || last == (end_offset == {1'b0, operation_bytes_q}))
  logic [2:0] since_q;  // cycles since the start; stops at 4
  always_ff @(posedge clk_i) begin
    if (start_q) since_q <= 3'd1;
    else if (since_q != 3'd4) since_q <= since_q + 3'd1;
  end
  `VELO_ASSERT(ValidInTimeAndThenOn, !open_q || start_q || valid == (since_q == 3'd4))
  // For the induction: what is left is there.
  `VELO_ASSERT(OffsetInside, !open_q || offset_q < operation_bytes_q ||
               (offset_q == '0 && operation_bytes_q == '0))

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (shown && last && offset_q == 23'd449);
      cover (shown && len_bytes == 10'd1 && !last);
      cover (shown && last && len_bytes == '0);
    end
  end

endmodule
