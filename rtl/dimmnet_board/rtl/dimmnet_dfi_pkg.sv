// SPDX-License-Identifier: Apache-2.0
//
// DFI of one SO-DIMM, between controller and PHY: one command and two transfers of 64 bits a clock.

package dimmnet_dfi_pkg;

  localparam int unsigned BankBits = $clog2(dimmnet_ddr_pkg::DdrBanks);
  localparam int unsigned RowBits = $clog2(dimmnet_ddr_pkg::DdrRows);
  localparam int unsigned ColumnBits = $clog2(dimmnet_ddr_pkg::DdrColumns);
  // Bursts of 128 bits in a SO-DIMM.
  localparam int unsigned BurstBits = BankBits + RowBits + ColumnBits - 1;

  // A command as its pins have it, {RAS#, CAS#, WE#}.
  typedef enum logic [2:0] {
    DdrMode = 3'b000,
    DdrRefresh = 3'b001,
    DdrPrecharge = 3'b010,
    DdrActivate = 3'b011,
    DdrWrite = 3'b100,
    DdrRead = 3'b101,
    DdrTerminate = 3'b110,
    DdrNop = 3'b111
  } ddr_command_e;

  // To the PHY. Data of a write comes with its command; the PHY delays it by the write latency.
  typedef struct packed {
    logic cke;
    logic cs_n;
    ddr_command_e command;
    logic [BankBits-1:0] bank;
    logic [RowBits-1:0] address;
    logic wrdata_en;
    logic [127:0] wrdata;  // first transfer in the lower half
    logic [15:0] wrdata_mask;  // bytes that are not written
    logic rddata_en;
  } dfi_t;

endpackage
