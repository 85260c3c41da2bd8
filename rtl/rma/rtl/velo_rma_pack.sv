// SPDX-License-Identifier: Apache-2.0
//
// Between the RMA unit's packets and a path of 128 bits; wires on a narrower one.
//
// A packet's words follow each other on the path: header in a beat of its own, then two words a beat, of
// which the command's three are the first. So its data begin in the upper half of a beat. The unit has
// them from a beat's start: header, two words of the command, its third one alone, then the data. Here
// they move by one word, out on the way to the network, in on the way from it, 16 bytes a cycle. A last
// beat has one word if the header's length is an odd number of words. A packet ends where its last beat
// does, whatever its length says: then the unit gets more words or fewer, never as many.
//
// All sides valid/ready, whole packets; an offered beat stands. Adds a cycle to a packet that goes out,
// none to one that comes in but for the last word of an even number of data words. Errors: none.

`include "velo_assert.svh"

module velo_rma_pack
  import velo_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 128
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 unit_out_valid_i,
    output logic                 unit_out_ready_o,
    input  logic                 unit_out_sop_i,
    input  logic                 unit_out_eop_i,
    input  logic [DataWidth-1:0] unit_out_data_i,
    output logic                 net_out_valid_o,
    input  logic                 net_out_ready_i,
    output logic                 net_out_sop_o,
    output logic                 net_out_eop_o,
    output logic [DataWidth-1:0] net_out_data_o,

    input  logic                 net_in_valid_i,
    output logic                 net_in_ready_o,
    input  logic                 net_in_sop_i,
    input  logic                 net_in_eop_i,
    input  logic [DataWidth-1:0] net_in_data_i,
    output logic                 unit_in_valid_o,
    input  logic                 unit_in_ready_i,
    output logic                 unit_in_sop_o,
    output logic                 unit_in_eop_o,
    output logic [DataWidth-1:0] unit_in_data_o
);

  if (DataWidth != 128) begin : gen_wires
    assign net_out_valid_o  = unit_out_valid_i;
    assign unit_out_ready_o = net_out_ready_i;
    assign net_out_sop_o    = unit_out_sop_i;
    assign net_out_eop_o    = unit_out_eop_i;
    assign net_out_data_o   = unit_out_data_i;
    assign unit_in_valid_o  = net_in_valid_i;
    assign net_in_ready_o   = unit_in_ready_i;
    assign unit_in_sop_o    = net_in_sop_i;
    assign unit_in_eop_o    = net_in_eop_i;
    assign unit_in_data_o   = net_in_data_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni};
  end else begin : gen_moved
    typedef enum logic [1:0] {
      PlCommand,  // two words of the command, or a header
      PlThird,    // its last word
      PlData,
      PlRest      // a word that is left over
    } place_e;

    packet_t out_header, in_header;
    assign out_header = packet_t'(unit_out_data_i[63:0]);
    assign in_header  = packet_t'(net_in_data_i[63:0]);

    // ----- out ----------------------------------------------------------------------------------

    // A beat is kept until the next one is there, so that the command's third word costs no cycle.
    place_e kept_place_q, out_place;
    logic kept_q, kept_sop_q, kept_eop_q, joins, joins_end, odd_q, out_odd, out_take, out_give;
    logic [127:0] kept_data_q;
    logic [ 63:0] carry;

    // The beat that is kept goes with the lower half of the one that comes, and so does all of that one,
    // if it is its packet's last and the upper half is nothing.
    assign joins            = kept_q && kept_place_q != PlCommand && !kept_eop_q;
    assign joins_end        = joins && unit_out_eop_i && !odd_q;
    assign carry            = kept_place_q == PlThird ? kept_data_q[63:0] : kept_data_q[127:64];
    assign unit_out_ready_o = !kept_q || net_out_ready_i;
    assign out_take         = unit_out_valid_i && unit_out_ready_o;
    assign out_give         = net_out_valid_o && net_out_ready_i;
    assign out_odd          = odd_words(out_header.len[3:0]);

    assign net_out_valid_o  = kept_q && (!joins || unit_out_valid_i);
    assign net_out_sop_o    = kept_sop_q;
    assign net_out_eop_o    = joins ? joins_end : kept_eop_q;
    always_comb begin
      net_out_data_o = {joins ? unit_out_data_i[63:0] : 64'b0, carry};
      if (kept_place_q == PlCommand) net_out_data_o = kept_data_q;
    end

    // The place of the beat that comes.
    always_comb begin
      unique case (kept_place_q)
        PlCommand: out_place = unit_out_sop_i || kept_sop_q ? PlCommand : PlThird;
        default:   out_place = unit_out_sop_i ? PlCommand : PlData;
      endcase
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        kept_q       <= 1'b0;
        kept_place_q <= PlCommand;
      end else if (out_take) begin
        kept_q       <= !joins_end;
        kept_place_q <= out_place;
      end else if (out_give) begin
        kept_q <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (out_take) begin
        kept_sop_q  <= unit_out_sop_i;
        kept_eop_q  <= unit_out_eop_i;
        kept_data_q <= unit_out_data_i;
        if (unit_out_sop_i) odd_q <= out_odd;
      end
    end

    // ----- in -----------------------------------------------------------------------------------

    place_e in_place_q;
    logic in_odd_q, in_single, in_take, in_give;
    logic [63:0] in_carry_q;

    assign in_take   = net_in_valid_i && net_in_ready_o;
    assign in_give   = unit_in_valid_o && unit_in_ready_i;
    assign in_single = net_in_eop_i && in_odd_q;

    always_comb begin
      net_in_ready_o  = unit_in_ready_i;
      unit_in_valid_o = net_in_valid_i;
      unit_in_sop_o   = net_in_sop_i;
      unit_in_eop_o   = net_in_eop_i;
      unit_in_data_o  = net_in_data_i;
      unique case (in_place_q)
        PlThird: begin
          // The word beside it is the first one of the data.
          unit_in_eop_o  = in_single;
          unit_in_data_o = {64'b0, net_in_data_i[63:0]};
        end
        PlData: begin
          unit_in_eop_o  = in_single;
          unit_in_data_o = {net_in_data_i[63:0], in_carry_q};
        end
        PlRest: begin
          net_in_ready_o  = 1'b0;
          unit_in_valid_o = 1'b1;
          unit_in_sop_o   = 1'b0;
          unit_in_eop_o   = 1'b1;
          unit_in_data_o  = {64'b0, in_carry_q};
        end
        default: ;
      endcase
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        in_place_q <= PlCommand;
      end else begin
        unique case (in_place_q)
          PlCommand: if (in_take && !net_in_sop_i && !net_in_eop_i) in_place_q <= PlThird;
          PlThird, PlData: begin
            if (in_take) begin
              in_place_q <= !net_in_eop_i ? PlData : in_odd_q ? PlCommand : PlRest;
            end
          end
          default:   if (in_give) in_place_q <= PlCommand;
        endcase
      end
    end
    always_ff @(posedge clk_i) begin
      if (in_take) begin
        if (net_in_sop_i) in_odd_q <= odd_words(in_header.len[3:0]);
        in_carry_q <= net_in_data_i[127:64];
      end
    end

    // Assertions: packets are whole.
    logic within_out_q, within_in_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        within_out_q <= 1'b0;
        within_in_q  <= 1'b0;
      end else begin
        if (out_take) within_out_q <= !unit_out_eop_i;
        if (in_take) within_in_q <= !net_in_eop_i;
      end
    end

    logic unused;
    assign unused = ^{out_header, in_header, within_out_q, within_in_q};

    `VELO_ASSUME(HeaderFirstOut, !out_take || unit_out_sop_i == (!within_out_q))
    `VELO_ASSUME(HeaderFirstIn, !in_take || net_in_sop_i == (!within_in_q))
  end

endmodule
