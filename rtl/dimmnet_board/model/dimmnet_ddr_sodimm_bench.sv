// SPDX-License-Identifier: Apache-2.0
//
// The SO-DIMM interface and its SO-DIMMs, for simulation.

module dimmnet_ddr_sodimm_bench
  import dimmnet_dfi_pkg::*;
#(
    parameter int unsigned NumSodimms = 2,
    parameter int unsigned PowerUp = dimmnet_ddr_pkg::DdrPowerUp
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic         req_valid_i,
    output logic         req_ready_o,
    input  logic         req_write_i,
    input  logic [ 31:0] req_addr_i,
    input  logic [127:0] req_data_i,
    input  logic [  1:0] req_mask_i,
    output logic         rsp_valid_o,
    output logic [127:0] rsp_data_o,

    output logic [NumSodimms-1:0][31:0] refreshes_o,
    output logic [NumSodimms-1:0][31:0] activates_o
);

  dfi_t [NumSodimms-1:0] dfi;
  logic [NumSodimms-1:0][127:0] rddata;

  dimmnet_ddr_sodimm #(
      .NumSodimms(NumSodimms),
      .PowerUp(PowerUp)
  ) u_sodimm (
      .clk_i,
      .rst_ni,
      .req_valid_i,
      .req_ready_o,
      .req_write_i,
      .req_addr_i,
      .req_data_i,
      .req_mask_i,
      .rsp_valid_o,
      .rsp_data_o,
      .dfi_o       (dfi),
      .dfi_rddata_i(rddata)
  );

  for (genvar s = 0; s < NumSodimms; ++s) begin : gen_model
    logic [14:0] unused_broken;
    dimmnet_dram_model #(
        .PowerUp(PowerUp)
    ) u_model (
        .clk_i,
        .rst_ni,
        .dfi_i      (dfi[s]),
        .rddata_o   (rddata[s]),
        .broken_o   (unused_broken),
        .refreshes_o(refreshes_o[s]),
        .activates_o(activates_o[s])
    );
  end

endmodule
