// SPDX-License-Identifier: Apache-2.0
//
// Elastic buffer: words in the recovered clock become a word in each cycle of the link port's clock.
//
// The skip sets were taken out before, so the sender's clock may be faster by as much as they are of its
// words. When no word has come, the link port gets one that says nothing: link ports take idle words
// anywhere, and believe only what stands twice running. There are two fillers, and the one that was
// not given last is given; so none is believed. After an idle word that came twice running, that one is
// repeated instead: it is believed already, and a link port with a much faster clock would otherwise
// never see two running.
// So the buffer needs no filling level to start from, and holds a word no longer than the crossing takes.
//
// Latency: Stages + 2 edges of `link_clk_i`. Errors: a wrong word comes out as a control word with a
// wrong CRC, which no link port believes; `lost_o`, one pulse for each word that found no room, since
// the link port's clock is too slow (such a link repeats for ever, and its counter says so).

`include "velo_assert.svh"

module velo_pcs_elastic
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned DepthWords = 16,
    parameter int unsigned Stages = 2
) (
    input logic clk_i,  // recovered
    input logic rst_ni,

    input  logic                  valid_i,  // a word has come
    input  logic                  wrong_i,  // it is not what was sent
    input  kind_e                 kind_i,   // its kind
    input  logic  [DataWidth-1:0] data_i,   // the word
    output logic                  lost_o,   // it found no room

    input  logic                  link_clk_i,   // of the link port
    input  logic                  link_rst_ni,
    output logic                  came_o,       // this word came over the wire
    output kind_e                 kind_o,       // a word in each cycle: its kind
    output logic  [DataWidth-1:0] data_o        // the word
);

  typedef logic [DataWidth-1:0] word_t;

  logic ready, came;
  logic [$clog2(DepthWords):0] count;
  logic [1:0] kind_bits;
  kind_e kind, kind_q;
  word_t data, data_q;

  velo_cdc_fifo #(
      .Width (DataWidth + 2),
      .Depth (DepthWords),
      .Stages(Stages)
  ) u_fifo (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .push_valid_i(valid_i),
      .push_ready_o(ready),
      .push_data_i (wrong_i ? {KindCtl, word_t'(0)} : {kind_i, data_i}),
      .push_count_o(count),
      .pop_clk_i   (link_clk_i),
      .pop_rst_ni  (link_rst_ni),
      .pop_valid_o (came),
      .pop_ready_i (1'b1),
      .pop_data_o  ({kind_bits, data})
  );
  assign kind = kind_e'(kind_bits);

  logic unused;
  assign unused = ^count;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) lost_o <= 1'b0;
    else lost_o <= valid_i && !ready;
  end

  // Two idle words with nothing in them; the one that was not given last.
  idle_t zeros, filler;
  status_t status;
  ctl_crc_t crc_zeros, crc;
  assign zeros  = '{crc: crc_zeros, status: '0, ctl: 1'b0};
  assign status = data_o == word_t'(zeros) ? '1 : '0;
  assign filler = '{crc: crc, status: status, ctl: 1'b0};
  velo_link_ctl_crc u_crc_zeros (
      .bits_i('0),
      .crc_o (crc_zeros)
  );
  velo_link_ctl_crc u_crc (
      .bits_i({status, 1'b0}),
      .crc_o (crc)
  );

  // The last word that came, and whether it is an idle word that came twice running.
  logic twice_q, twice;
  assign twice = kind == KindCtl && kind_q == kind && data_q == data;

  always_ff @(posedge link_clk_i or negedge link_rst_ni) begin
    if (!link_rst_ni) begin
      came_o  <= 1'b0;
      twice_q <= 1'b0;
      kind_q  <= KindCtl;
      data_q  <= '0;
      kind_o  <= KindCtl;
      data_o  <= '0;
    end else begin
      came_o <= came;
      kind_o <= KindCtl;
      if (came) begin
        {kind_q, data_q} <= {kind, data};
        {kind_o, data_o} <= {kind, data};
        twice_q <= twice;
      end else if (twice_q) begin
        data_o <= data_q;
      end else begin
        data_o <= word_t'(filler);
      end
    end
  end

endmodule
