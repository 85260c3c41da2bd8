// SPDX-License-Identifier: Apache-2.0
//
// A whole node behind AXI4: two slaves and a master.
//
//   host_*     slave, the node's window: messages, and loads and stores of the custom unit;
//   control_*  slave, the same window, registers only;
//   dma_*      master, host memory.
// Two slaves, since a message may wait for room far away and who makes room writes a register; an
// interconnect in front must not put both behind one queue. An answer to the host comes behind the writes of host
// memory that were taken before it (velo_axi_order), so what a register tells of them is true of the memory. See velo_node_core for what the host has
// to promise, velo_axi_write, velo_axi_read and velo_axi_master for which bursts there are.
//
// Source: VELO paper, section 3 (any interface that carries posted writes will do).

`include "velo_assert.svh"

module velo_node_axi
  import htax_pkg::*;
  import velo_host_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,  // see velo_node
    parameter int unsigned IdBits = 4,
    parameter int unsigned NumVelo = 1,
    parameter int unsigned VeloWidth = DataWidth,
    parameter bit Ecc = 1'b0,  // this and what follows: see velo_node
    parameter bit Multicast = 1'b0,
    parameter bit Barrier = 1'b0,
    parameter bit Congestion = 1'b0,
    localparam int unsigned DmaIdBits = DataWidth == 128 ? 17 : 16
) (
    input logic clk_i,
    input logic rst_ni,

    // AXI4, writes of the node's window: address, data, response; what is offered stands until it is taken.
    input  logic                   host_awvalid_i,  // an address is offered
    output logic                   host_awready_o,  // it is taken
    input  logic [     IdBits-1:0] host_awid_i,     // given back in bid
    input  logic [   AddrBits-1:0] host_awaddr_i,   // of the first byte
    input  logic [            7:0] host_awlen_i,    // beats, less one
    input  logic [            2:0] host_awsize_i,   // log2 of a beat's bytes
    input  logic [            1:0] host_awburst_i,  // INCR
    input  logic                   host_wvalid_i,   // a beat is offered
    output logic                   host_wready_o,   // it is taken
    input  logic                   host_wlast_i,    // it is the last
    input  logic [  DataWidth-1:0] host_wdata_i,    // the beat
    input  logic [DataWidth/8-1:0] host_wstrb_i,    // bytes that are written
    output logic                   host_bvalid_o,   // a response is offered
    input  logic                   host_bready_i,   // it is taken
    output logic [     IdBits-1:0] host_bid_o,      // whose
    output logic [            1:0] host_bresp_o,    // OKAY or SLVERR
    // AXI4, reads of the node's window: address, data.
    input  logic                   host_arvalid_i,  // an address is offered
    output logic                   host_arready_o,  // it is taken
    input  logic [     IdBits-1:0] host_arid_i,     // given back in rid
    input  logic [   AddrBits-1:0] host_araddr_i,   // of the first byte
    input  logic [            7:0] host_arlen_i,    // beats, less one
    input  logic [            2:0] host_arsize_i,   // log2 of a beat's bytes
    input  logic [            1:0] host_arburst_i,  // INCR
    output logic                   host_rvalid_o,   // a beat is offered
    input  logic                   host_rready_i,   // it is taken
    output logic [     IdBits-1:0] host_rid_o,      // whose
    output logic                   host_rlast_o,    // it is the last
    output logic [            1:0] host_rresp_o,    // OKAY or SLVERR
    output logic [  DataWidth-1:0] host_rdata_o,    // the beat

    // AXI4, writes of registers: address, data, response; what is offered stands until it is taken.
    input  logic                   control_awvalid_i,  // an address is offered
    output logic                   control_awready_o,  // it is taken
    input  logic [     IdBits-1:0] control_awid_i,     // given back in bid
    input  logic [   AddrBits-1:0] control_awaddr_i,   // of the first byte
    input  logic [            7:0] control_awlen_i,    // beats, less one
    input  logic [            2:0] control_awsize_i,   // log2 of a beat's bytes
    input  logic [            1:0] control_awburst_i,  // INCR
    input  logic                   control_wvalid_i,   // a beat is offered
    output logic                   control_wready_o,   // it is taken
    input  logic                   control_wlast_i,    // it is the last
    input  logic [  DataWidth-1:0] control_wdata_i,    // the beat
    input  logic [DataWidth/8-1:0] control_wstrb_i,    // bytes that are written
    output logic                   control_bvalid_o,   // a response is offered
    input  logic                   control_bready_i,   // it is taken
    output logic [     IdBits-1:0] control_bid_o,      // whose
    output logic [            1:0] control_bresp_o,    // OKAY or SLVERR
    // AXI4, reads of registers: address, data.
    input  logic                   control_arvalid_i,  // an address is offered
    output logic                   control_arready_o,  // it is taken
    input  logic [     IdBits-1:0] control_arid_i,     // given back in rid
    input  logic [   AddrBits-1:0] control_araddr_i,   // of the first byte
    input  logic [            7:0] control_arlen_i,    // beats, less one
    input  logic [            2:0] control_arsize_i,   // log2 of a beat's bytes
    input  logic [            1:0] control_arburst_i,  // INCR
    output logic                   control_rvalid_o,   // a beat is offered
    input  logic                   control_rready_i,   // it is taken
    output logic [     IdBits-1:0] control_rid_o,      // whose
    output logic                   control_rlast_o,    // it is the last
    output logic [            1:0] control_rresp_o,    // OKAY or SLVERR
    output logic [  DataWidth-1:0] control_rdata_o,    // the beat

    // AXI4, writes of host memory: address, data, response; what is offered stands until it is taken.
    output logic                   dma_awvalid_o,  // an address is offered
    input  logic                   dma_awready_i,  // it is taken
    output logic [  DmaIdBits-1:0] dma_awid_o,     // all alike
    output logic [   AddrBits-1:0] dma_awaddr_o,   // of the first byte
    output logic [            7:0] dma_awlen_o,    // beats, less one
    output logic [            2:0] dma_awsize_o,   // log2 of a beat's bytes
    output logic [            1:0] dma_awburst_o,  // INCR
    output logic                   dma_wvalid_o,   // a beat is offered
    input  logic                   dma_wready_i,   // it is taken
    output logic                   dma_wlast_o,    // it is the last
    output logic [  DataWidth-1:0] dma_wdata_o,    // the beat
    output logic [DataWidth/8-1:0] dma_wstrb_o,    // bytes that are written
    input  logic                   dma_bvalid_i,   // a response is offered
    output logic                   dma_bready_o,   // it is taken
    input  logic [            1:0] dma_bresp_i,    // OKAY, or counted

    // AXI4, reads of host memory: address, data.
    output logic                 dma_arvalid_o,  // an address is offered
    input  logic                 dma_arready_i,  // it is taken
    output logic [DmaIdBits-1:0] dma_arid_o,     // given back in rid
    output logic [ AddrBits-1:0] dma_araddr_o,   // of the first byte
    output logic [          7:0] dma_arlen_o,    // beats, less one
    output logic [          2:0] dma_arsize_o,   // log2 of a beat's bytes
    output logic [          1:0] dma_arburst_o,  // INCR
    input  logic                 dma_rvalid_i,   // a beat is offered
    output logic                 dma_rready_o,   // it is taken
    input  logic [DmaIdBits-1:0] dma_rid_i,      // whose
    input  logic                 dma_rlast_i,    // it is the last
    input  logic [          1:0] dma_rresp_i,    // OKAY, or the read ends with an error
    input  logic [DataWidth-1:0] dma_rdata_i,    // the beat

    output logic [7:0] dma_write_errors_o,  // responses to writes that were no OKAY, modulo 256

    // By link: words to and from its PHY, one in each cycle; see velo_link.
    input  logic [NumLinks-1:0]                phy_up_i,    // words can be received
    input  logic [NumLinks-1:0][          1:0] phy_kind_i,  // word that came: its kind
    input  logic [NumLinks-1:0][DataWidth-1:0] phy_data_i,  // word that came
    output logic [NumLinks-1:0][          1:0] phy_kind_o,  // word to send: its kind
    output logic [NumLinks-1:0][DataWidth-1:0] phy_data_o,  // word to send

    output logic [7:0] node_id_o  // this node, as its register says
);

  host_request_t host_request, control_request;
  host_response_t host_response, control_response;
  dma_request_t  dma_request;
  dma_response_t dma_response;
  logic [DataWidth-1:0] host_write_data, host_answer_data, control_write_data, control_answer_data;
  logic [DataWidth-1:0] dma_write_data, dma_answer_data;
  logic host_answer_valid, host_answer_ready, control_answer_valid, control_answer_ready;
  logic [5:0] writes;
  logic write_answered;

  velo_axi_write #(
      .DataWidth(DataWidth),
      .AddrBits(AddrBits),
      .IdBits(IdBits)
  ) u_host_write (
      .clk_i,
      .rst_ni,
      .awvalid_i(host_awvalid_i),
      .awready_o(host_awready_o),
      .awid_i(host_awid_i),
      .awaddr_i(host_awaddr_i),
      .awlen_i(host_awlen_i),
      .awsize_i(host_awsize_i),
      .awburst_i(host_awburst_i),
      .wvalid_i(host_wvalid_i),
      .wready_o(host_wready_o),
      .wlast_i(host_wlast_i),
      .wdata_i(host_wdata_i),
      .wstrb_i(host_wstrb_i),
      .bvalid_o(host_bvalid_o),
      .bready_i(host_bready_i),
      .bid_o(host_bid_o),
      .bresp_o(host_bresp_o),
      .write_valid_o(host_request.write_valid),
      .write_ready_i(host_response.write_ready),
      .write_eop_o(host_request.write.eop),
      .write_addr_o(host_request.write.addr),
      .write_len_bytes_o(host_request.write.len_bytes),
      .write_data_o(host_write_data)
  );

  velo_axi_read #(
      .DataWidth(DataWidth),
      .AddrBits(AddrBits),
      .IdBits(IdBits)
  ) u_host_read (
      .clk_i,
      .rst_ni,
      .arvalid_i(host_arvalid_i),
      .arready_o(host_arready_o),
      .arid_i(host_arid_i),
      .araddr_i(host_araddr_i),
      .arlen_i(host_arlen_i),
      .arsize_i(host_arsize_i),
      .arburst_i(host_arburst_i),
      .rvalid_o(host_rvalid_o),
      .rready_i(host_rready_i),
      .rid_o(host_rid_o),
      .rlast_o(host_rlast_o),
      .rresp_o(host_rresp_o),
      .rdata_o(host_rdata_o),
      .read_valid_o(host_request.read_valid),
      .read_ready_i(host_response.read_ready),
      .read_addr_o(host_request.read.addr),
      .read_len_bytes_o(host_request.read.len_bytes),
      .read_tag_o(host_request.read.tag),
      .answer_valid_i(host_answer_valid),
      .answer_ready_o(host_answer_ready),
      .answer_eop_i(host_response.answer.eop),
      .answer_error_i(host_response.answer.error),
      .answer_tag_i(host_response.answer.tag),
      .answer_data_i(host_answer_data)
  );

  velo_axi_order u_host_order (
      .clk_i,
      .rst_ni,
      .writes_i(writes),
      .write_answered_i(write_answered),
      .answer_valid_i(host_response.answer_valid),
      .answer_ready_o(host_request.answer_ready),
      .answer_eop_i(host_response.answer.eop),
      .answer_valid_o(host_answer_valid),
      .answer_ready_i(host_answer_ready)
  );

  velo_axi_write #(
      .DataWidth(DataWidth),
      .AddrBits(AddrBits),
      .IdBits(IdBits)
  ) u_control_write (
      .clk_i,
      .rst_ni,
      .awvalid_i(control_awvalid_i),
      .awready_o(control_awready_o),
      .awid_i(control_awid_i),
      .awaddr_i(control_awaddr_i),
      .awlen_i(control_awlen_i),
      .awsize_i(control_awsize_i),
      .awburst_i(control_awburst_i),
      .wvalid_i(control_wvalid_i),
      .wready_o(control_wready_o),
      .wlast_i(control_wlast_i),
      .wdata_i(control_wdata_i),
      .wstrb_i(control_wstrb_i),
      .bvalid_o(control_bvalid_o),
      .bready_i(control_bready_i),
      .bid_o(control_bid_o),
      .bresp_o(control_bresp_o),
      .write_valid_o(control_request.write_valid),
      .write_ready_i(control_response.write_ready),
      .write_eop_o(control_request.write.eop),
      .write_addr_o(control_request.write.addr),
      .write_len_bytes_o(control_request.write.len_bytes),
      .write_data_o(control_write_data)
  );

  velo_axi_read #(
      .DataWidth(DataWidth),
      .AddrBits(AddrBits),
      .IdBits(IdBits)
  ) u_control_read (
      .clk_i,
      .rst_ni,
      .arvalid_i(control_arvalid_i),
      .arready_o(control_arready_o),
      .arid_i(control_arid_i),
      .araddr_i(control_araddr_i),
      .arlen_i(control_arlen_i),
      .arsize_i(control_arsize_i),
      .arburst_i(control_arburst_i),
      .rvalid_o(control_rvalid_o),
      .rready_i(control_rready_i),
      .rid_o(control_rid_o),
      .rlast_o(control_rlast_o),
      .rresp_o(control_rresp_o),
      .rdata_o(control_rdata_o),
      .read_valid_o(control_request.read_valid),
      .read_ready_i(control_response.read_ready),
      .read_addr_o(control_request.read.addr),
      .read_len_bytes_o(control_request.read.len_bytes),
      .read_tag_o(control_request.read.tag),
      .answer_valid_i(control_answer_valid),
      .answer_ready_o(control_answer_ready),
      .answer_eop_i(control_response.answer.eop),
      .answer_error_i(control_response.answer.error),
      .answer_tag_i(control_response.answer.tag),
      .answer_data_i(control_answer_data)
  );

  velo_axi_order u_control_order (
      .clk_i,
      .rst_ni,
      .writes_i(writes),
      .write_answered_i(write_answered),
      .answer_valid_i(control_response.answer_valid),
      .answer_ready_o(control_request.answer_ready),
      .answer_eop_i(control_response.answer.eop),
      .answer_valid_o(control_answer_valid),
      .answer_ready_i(control_answer_ready)
  );

  velo_axi_master #(
      .DataWidth(DataWidth),
      .AddrBits(AddrBits),
      .IdBits(DmaIdBits)
  ) u_dma (
      .clk_i,
      .rst_ni,
      .dma_write_valid_i(dma_request.write_valid),
      .dma_write_ready_o(dma_response.write_ready),
      .dma_write_eop_i(dma_request.write.eop),
      .dma_write_addr_i(dma_request.write.addr),
      .dma_write_len_bytes_i(dma_request.write.len_bytes),
      .dma_write_data_i(dma_write_data),
      .dma_read_valid_i(dma_request.read_valid),
      .dma_read_ready_o(dma_response.read_ready),
      .dma_read_addr_i(dma_request.read.addr),
      .dma_read_len_bytes_i(dma_request.read.len_bytes),
      .dma_read_tag_i(dma_request.read.tag),
      .dma_answer_valid_o(dma_response.answer_valid),
      .dma_answer_ready_i(dma_request.answer_ready),
      .dma_answer_eop_o(dma_response.answer.eop),
      .dma_answer_error_o(dma_response.answer.error),
      .dma_answer_tag_o(dma_response.answer.tag),
      .dma_answer_data_o(dma_answer_data),
      .awvalid_o(dma_awvalid_o),
      .awready_i(dma_awready_i),
      .awid_o(dma_awid_o),
      .awaddr_o(dma_awaddr_o),
      .awlen_o(dma_awlen_o),
      .awsize_o(dma_awsize_o),
      .awburst_o(dma_awburst_o),
      .wvalid_o(dma_wvalid_o),
      .wready_i(dma_wready_i),
      .wlast_o(dma_wlast_o),
      .wdata_o(dma_wdata_o),
      .wstrb_o(dma_wstrb_o),
      .bvalid_i(dma_bvalid_i),
      .bready_o(dma_bready_o),
      .bresp_i(dma_bresp_i),
      .arvalid_o(dma_arvalid_o),
      .arready_i(dma_arready_i),
      .arid_o(dma_arid_o),
      .araddr_o(dma_araddr_o),
      .arlen_o(dma_arlen_o),
      .arsize_o(dma_arsize_o),
      .arburst_o(dma_arburst_o),
      .rvalid_i(dma_rvalid_i),
      .rready_o(dma_rready_o),
      .rid_i(dma_rid_i),
      .rlast_i(dma_rlast_i),
      .rresp_i(dma_rresp_i),
      .rdata_i(dma_rdata_i),
      .writes_o(writes),
      .write_answered_o(write_answered),
      .write_errors_o(dma_write_errors_o)
  );

  // AXI carries data whenever they are there, with pauses; a packet must not pause in the network.
  velo_node #(
      .DataWidth(DataWidth),
      .NumLinks(NumLinks),
      .NumVcs(NumVcs),
      .MtuBytes(MtuBytes),
      .CtxBits(CtxBits),
      .CustomUnit(CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .WholeRequests(1'b1),
      .NumVelo(NumVelo),
      .VeloWidth(VeloWidth),
      .Ecc(Ecc),
      .Multicast(Multicast),
      .Barrier(Barrier),
      .Congestion(Congestion)
  ) u_node (
      .clk_i,
      .rst_ni,
      .host_request_i(host_request),
      .host_write_data_i(host_write_data),
      .host_response_o(host_response),
      .host_answer_data_o(host_answer_data),
      .control_request_i(control_request),
      .control_write_data_i(control_write_data),
      .control_response_o(control_response),
      .control_answer_data_o(control_answer_data),
      .dma_request_o(dma_request),
      .dma_write_data_o(dma_write_data),
      .dma_response_i(dma_response),
      .dma_answer_data_i(dma_answer_data),
      .phy_up_i,
      .phy_kind_i,
      .phy_data_i,
      .phy_pause_i('0),
      .phy_kind_o,
      .phy_data_o,
      .node_id_o
  );

  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {host_bvalid_o, host_rvalid_o, control_bvalid_o,
                                               control_rvalid_o, dma_awvalid_o, dma_wvalid_o,
                                               dma_arvalid_o, phy_kind_o})

endmodule
