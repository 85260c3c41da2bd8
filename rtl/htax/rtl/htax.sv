// SPDX-License-Identifier: Apache-2.0
//
// On-chip crossbar between the host bridge and any number of functional units.
//
// Three channels with buffers and arbiters of their own, as the host's bus has them, so that none
// can wait for another: posted writes, non-posted requests, responses. A port has each of the three
// in both directions. A request goes where its address is (`WindowMask` and `WindowBase` give each
// port its part of the node's window; the first that fits wins); an address of host memory goes to
// `HostPort`, one in no part of the window to `DefaultPort`, which refuses it. A response goes to the
// port that asked. `PostedReach` and so on say which targets each port has; there is no logic for other
// pairs. A transaction for a target that its source does not reach goes to the lowest one that it
// does: so a port that reaches one target cannot wait for any other.
//
// All streams valid/ready (htax_pkg); the first beat of a transaction is the one after another's last. Of a
// response's header, port, tag and error pass. One cycle from port to port. A port's read does not overtake its
// posted writes (htax_order); nothing else is kept in order between channels.
//
// Source: VELO paper, section 3 and figure 1 ("to maintain the advantage of several virtual channels
// and to support multiple functional units").

`include "velo_assert.svh"

module htax
  import htax_pkg::*;
#(
    parameter int unsigned NumPorts = 4,
    parameter int unsigned DataWidth = 32,
    parameter int unsigned HostPort = 0,
    parameter int unsigned DefaultPort = 1,
    parameter logic [NumPorts-1:0][AddrBits-1:0] WindowBase = '0,
    // All ones: no address fits, so the port takes no requests of the window.
    parameter logic [NumPorts-1:0][AddrBits-1:0] WindowMask = '1,
    // By source, then target. A port that reaches none is never ready.
    parameter logic [NumPorts-1:0][NumPorts-1:0] PostedReach = '1,
    parameter logic [NumPorts-1:0][NumPorts-1:0] NonpostedReach = '1,
    parameter logic [NumPorts-1:0][NumPorts-1:0] ResponseReach = '1
) (
    input logic clk_i,
    input logic rst_ni,

    // By port: what it sends, the beats' data beside it, and what is taken of it.
    input  htax_port_t  [NumPorts-1:0]                from_i,
    input  logic        [NumPorts-1:0][DataWidth-1:0] from_posted_data_i,
    input  logic        [NumPorts-1:0][DataWidth-1:0] from_response_data_i,
    output htax_ready_t [NumPorts-1:0]                from_ready_o,

    // By port: what comes to it, likewise.
    output htax_port_t  [NumPorts-1:0]                to_o,
    output logic        [NumPorts-1:0][DataWidth-1:0] to_posted_data_o,
    output logic        [NumPorts-1:0][DataWidth-1:0] to_response_data_o,
    input  htax_ready_t [NumPorts-1:0]                to_ready_i
);

  localparam int unsigned HeaderWidth = $bits(htax_header_t);
  localparam int unsigned Width = HeaderWidth + DataWidth;

  typedef logic [NumPorts-1:0] ports_t;

  function automatic ports_t reached(ports_t reach, ports_t target);
    ports_t lowest;
    lowest = reach & (~reach + 1'b1);
    return reach == lowest || (target & reach) == '0 ? lowest : target;
  endfunction

  function automatic ports_t target_of(logic window, logic [AddrBits-1:0] addr);
    int unsigned port;
    port = window ? DefaultPort : HostPort;
    if (window) begin
      for (int unsigned p = 0; p < NumPorts; p++) begin
        if (WindowMask[p] != '1 && (addr & WindowMask[p]) == WindowBase[p]) begin
          port = p;
          break;
        end
      end
    end
    return ports_t'(1) << port;
  endfunction

  // A channel's side of all ports: `in` from them, `out` to them.
  ports_t posted_in_valid, posted_in_ready, posted_in_eop, posted_taken;
  ports_t posted_out_valid, posted_out_ready, posted_out_eop;
  ports_t nonposted_in_valid, nonposted_in_ready, unused_nonposted_taken;
  ports_t nonposted_out_valid, nonposted_out_ready, unused_nonposted_eop;
  ports_t nonposted_valid, nonposted_ready;  // behind the port's writes
  ports_t response_in_valid, response_in_ready, response_in_eop, unused_response_taken;
  ports_t response_out_valid, response_out_ready, response_out_eop;
  ports_t [NumPorts-1:0] posted_target, nonposted_target, response_target;
  htax_header_t [NumPorts-1:0] nonposted_in, nonposted_out;
  logic [NumPorts-1:0][Width-1:0] posted_in, response_in, posted_out, response_out;
  logic [NumPorts-1:0][1:0] posted_count, unused_nonposted_count, unused_response_count;

  for (genvar p = 0; p < NumPorts; p++) begin : gen_port
    // Nobody can ask in another's name. A response needs no address and no length.
    htax_header_t posted_header, response_header;
    always_comb begin
      posted_header         = from_i[p].posted.header;
      posted_header.port    = PortBits'(p);
      nonposted_in[p]       = from_i[p].nonposted.header;
      nonposted_in[p].port  = PortBits'(p);
      response_header       = '0;
      response_header.port  = from_i[p].response.header.port;
      response_header.tag   = from_i[p].response.header.tag;
      response_header.error = from_i[p].response.header.error;
    end

    assign posted_target[p] = reached(
        PostedReach[p], target_of(posted_header.window, posted_header.addr)
    );
    assign nonposted_target[p] = reached(
        NonpostedReach[p], target_of(nonposted_in[p].window, nonposted_in[p].addr)
    );
    assign response_target[p] = reached(ResponseReach[p], ports_t'(1) << response_header.port);

    assign posted_in_valid[p] = from_i[p].posted.valid;
    assign posted_in_eop[p] = from_i[p].posted.eop;
    assign posted_in[p] = {posted_header, from_posted_data_i[p]};
    assign nonposted_in_valid[p] = from_i[p].nonposted.valid;
    assign response_in_valid[p] = from_i[p].response.valid;
    assign response_in_eop[p] = from_i[p].response.eop;
    assign response_in[p] = {response_header, from_response_data_i[p]};
    assign from_ready_o[p] = {posted_in_ready[p], nonposted_in_ready[p], response_in_ready[p]};

    htax_order u_order (
        .clk_i,
        .rst_ni,
        .posted_count_i(posted_count[p]),
        .posted_taken_i(posted_taken[p]),
        .in_valid_i    (nonposted_in_valid[p]),
        .in_ready_o    (nonposted_in_ready[p]),
        .out_valid_o   (nonposted_valid[p]),
        .out_ready_i   (nonposted_ready[p])
    );

    assign to_o[p].posted.valid = posted_out_valid[p];
    assign to_o[p].posted.eop = posted_out_eop[p];
    assign {to_o[p].posted.header, to_posted_data_o[p]} = posted_out[p];
    assign to_o[p].nonposted = {nonposted_out_valid[p], nonposted_out[p]};
    assign to_o[p].response.valid = response_out_valid[p];
    assign to_o[p].response.eop = response_out_eop[p];
    assign {to_o[p].response.header, to_response_data_o[p]} = response_out[p];
    assign {posted_out_ready[p], nonposted_out_ready[p], response_out_ready[p]} = to_ready_i[p];
  end

  htax_channel #(
      .NumPorts(NumPorts),
      .Width   (Width),
      .Reach   (PostedReach)
  ) u_posted (
      .clk_i,
      .rst_ni,
      .in_valid_i (posted_in_valid),
      .in_ready_o (posted_in_ready),
      .in_target_i(posted_target),
      .in_eop_i   (posted_in_eop),
      .in_data_i  (posted_in),
      .in_count_o (posted_count),
      .in_taken_o (posted_taken),
      .out_valid_o(posted_out_valid),
      .out_ready_i(posted_out_ready),
      .out_eop_o  (posted_out_eop),
      .out_data_o (posted_out)
  );

  htax_channel #(
      .NumPorts(NumPorts),
      .Width   (HeaderWidth),
      .Reach   (NonpostedReach)
  ) u_nonposted (
      .clk_i,
      .rst_ni,
      .in_valid_i (nonposted_valid),
      .in_ready_o (nonposted_ready),
      .in_target_i(nonposted_target),
      .in_eop_i   ('1),
      .in_data_i  (nonposted_in),
      .in_count_o (unused_nonposted_count),
      .in_taken_o (unused_nonposted_taken),
      .out_valid_o(nonposted_out_valid),
      .out_ready_i(nonposted_out_ready),
      .out_eop_o  (unused_nonposted_eop),
      .out_data_o (nonposted_out)
  );

  htax_channel #(
      .NumPorts(NumPorts),
      .Width   (Width),
      .Reach   (ResponseReach)
  ) u_response (
      .clk_i,
      .rst_ni,
      .in_valid_i (response_in_valid),
      .in_ready_o (response_in_ready),
      .in_target_i(response_target),
      .in_eop_i   (response_in_eop),
      .in_data_i  (response_in),
      .in_count_o (unused_response_count),
      .in_taken_o (unused_response_taken),
      .out_valid_o(response_out_valid),
      .out_ready_i(response_out_ready),
      .out_eop_o  (response_out_eop),
      .out_data_o (response_out)
  );

  `VELO_ASSERT_INIT(PortsFitHeader, NumPorts >= 2 && NumPorts <= 2 ** PortBits)
  `VELO_ASSERT_INIT(PortsExist, HostPort < NumPorts && DefaultPort < NumPorts)
  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {posted_out_valid, nonposted_out_valid,
                                               response_out_valid})

endmodule
