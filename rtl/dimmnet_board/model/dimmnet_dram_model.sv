// SPDX-License-Identifier: Apache-2.0
//
// A SO-DIMM behind its PHY, for simulation: it keeps what is written, answers after CAS latency and the PHY's
// clocks, and holds every command against the rules of JESD79 (dram/ddr200.py). A broken rule fails the
// run; with `Quiet` it is only told, by a bit of `broken_o` that stays.
//
// LiteDRAM's own checker of timings prints and goes on, and knows neither CAS latency nor commands to a closed bank,
// the bus between read and write, and the set-up.

`include "velo_assert.svh"

module dimmnet_dram_model
  import dimmnet_ddr_pkg::*, dimmnet_dfi_pkg::*;
#(
    parameter int unsigned PowerUp = DdrPowerUp,
    parameter bit Quiet = 1'b0,
    localparam int unsigned NumRules = 15
) (
    input logic clk_i,
    input logic rst_ni,

    input  dfi_t                dfi_i,
    output logic [       127:0] rddata_o,     // nothing of use but at its time
    output logic [NumRules-1:0] broken_o,     // rules broken so far, by place in `rule_e`
    output logic [        31:0] refreshes_o,
    output logic [        31:0] activates_o
);

  typedef enum logic [3:0] {
    RuleRcd,
    RuleRp,
    RuleRas,
    RuleRc,
    RuleRrd,
    RuleWr,
    RuleWtr,
    RuleRfc,
    RuleMrd,
    RuleBus,  // a write before a read's data has left the bus
    RuleState,  // a row of a closed bank, an open bank activated or refreshed
    RuleRefresh,  // more refreshes owed than may be late; the longest tRAS ends later
    RuleDll,  // a read before the delay-locked loop has settled
    RuleSetUp,  // power-up too short, or mode registers not written
    RuleMode  // a burst that the PHY does not expect
  } rule_e;

  localparam longint Burst = longint'(DdrBurst) / 2;  // clocks of a burst
  localparam longint OwedMax = longint'(DdrRefreshInterval) * (longint'(DdrRefreshPostponed) + 1);
  localparam longint LongAgo = -longint'(DdrPowerUp);

  typedef logic [BankBits-1:0] bank_t;

  longint now;
  logic open[DdrBanks];
  logic [RowBits-1:0] row[DdrBanks];
  longint activated[DdrBanks], closed[DdrBanks], read[DdrBanks], written[DdrBanks];
  longint activated_any, read_any, written_any, refreshed, mode_set, dll_reset;
  longint owed;  // refreshes, in clocks
  logic is_set_up;
  logic [31:0] set_up_refreshes;
  int cas_latency;
  logic [127:0] cells[logic [BurstBits-1:0]];
  logic [127:0] line;
  logic [BurstBits-1:0] where;
  logic [NumRules-1:0] broken;

  localparam int unsigned Deepest = 3 + DdrPhy;
  logic [127:0] coming[Deepest];
  assign rddata_o = coming[cas_latency+int'(DdrPhy)-1];

  function automatic longint later(longint a, longint b);
    return a > b ? a : b;
  endfunction

  function automatic void rule(rule_e which, logic holds);
    if (!holds) broken[which] = 1'b1;
  endfunction

  function automatic void close(bank_t b, longint at);
    open[b]   = 1'b0;
    closed[b] = at;
  endfunction

  function automatic void precharge(bank_t b);
    if (open[b]) begin
      rule(RuleRas, now >= activated[b] + longint'(DdrRas));
      rule(RuleWr, now >= written[b] + longint'(DdrWr));
      rule(RuleBus, now >= read[b] + Burst);
      close(b, now);
    end
  endfunction

  function automatic void activate(bank_t b);
    rule(RuleState, !open[b] && is_set_up);
    rule(RuleRp, now >= closed[b] + longint'(DdrRp));
    rule(RuleRc, now >= activated[b] + longint'(DdrRc));
    rule(RuleRrd, now >= activated_any + longint'(DdrRrd));
    rule(RuleRfc, now >= refreshed + longint'(DdrRfc));
    open[b] = 1'b1;
    row[b] = dfi_i.address;
    activated[b] = now;
    activated_any = now;
    activates_o = activates_o + 1;
  endfunction

  // A read or write.
  function automatic void column(bank_t b, logic is_write);
    logic auto_precharge;
    auto_precharge = dfi_i.address[10];
    rule(RuleState, open[b]);
    rule(RuleMode, is_write ? dfi_i.wrdata_en : dfi_i.rddata_en);
    rule(RuleRcd, now >= activated[b] + longint'(DdrRcd));
    where = {row[b], b, dfi_i.address[ColumnBits-1:1]};
    line  = cells.exists(where) ? cells[where] : '0;
    if (is_write) begin
      rule(RuleBus, now >= read_any + longint'(cas_latency) + Burst);
      for (int i = 0; i < 16; ++i) begin
        if (!dfi_i.wrdata_mask[i]) line[8*i+:8] = dfi_i.wrdata[8*i+:8];
      end
      cells[where] = line;
      written[b]   = now + longint'(DdrWl) + Burst;
      written_any  = written[b];
      if (auto_precharge)
        close(b, later(written[b] + longint'(DdrWr), activated[b] + longint'(DdrRas)));
    end else begin
      rule(RuleWtr, now >= written_any + longint'(DdrWtr));
      rule(RuleDll, now >= dll_reset + longint'(DdrDll));
      read[b]  = now;
      read_any = now;
      if (auto_precharge) close(b, later(now + Burst, activated[b] + longint'(DdrRas)));
    end
  endfunction

  function automatic void all_closed();
    for (int b = 0; b < int'(DdrBanks); ++b) begin
      rule(RuleState, !open[b]);
      rule(RuleRp, now >= closed[b] + longint'(DdrRp));
    end
    rule(RuleRfc, now >= refreshed + longint'(DdrRfc));
  endfunction

  function automatic void refresh();
    all_closed();
    refreshed   = now;
    refreshes_o = refreshes_o + 1;
    owed -= longint'(DdrRefreshInterval);
    // None is made ahead: the set-up's two count for nothing.
    if (owed < 0) owed = 0;
  endfunction

  function automatic void set_mode();
    all_closed();
    mode_set = now;
    if (dfi_i.bank == '0) begin
      cas_latency = int'(dfi_i.address[6:4]);
      rule(RuleMode, cas_latency == 2 || cas_latency == 3);
      if (cas_latency > 3 || cas_latency < 1) cas_latency = 2;
      rule(RuleMode, dfi_i.address[2:0] == 3'($clog2(DdrBurst)) && !dfi_i.address[3]);
      if (dfi_i.address[8]) begin
        dll_reset = now;
        set_up_refreshes = refreshes_o;
      end else begin
        rule(RuleSetUp, dll_reset != LongAgo && refreshes_o >= set_up_refreshes + 2);
        is_set_up = 1'b1;
      end
    end
  endfunction

  // The state is a program's, with blocking assignments: nobody but this process reads it.
  // verilator lint_off BLKSEQ
  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      now = 0;
      broken = '0;
      for (int b = 0; b < int'(DdrBanks); ++b) begin
        open[b] = 1'b0;
        row[b] = '0;
        activated[b] = LongAgo;
        closed[b] = LongAgo;
        read[b] = LongAgo;
        written[b] = LongAgo;
      end
      activated_any = LongAgo;
      read_any = LongAgo;
      written_any = LongAgo;
      refreshed = LongAgo;
      mode_set = LongAgo;
      dll_reset = LongAgo;
      owed = 0;
      is_set_up = 1'b0;
      set_up_refreshes = '0;
      refreshes_o = '0;
      activates_o = '0;
      cas_latency = int'(DdrCl);
    end else begin
      now = now + 1;
      for (int i = int'(Deepest) - 1; i > 0; --i) coming[i] = coming[i-1];
      coming[0] = {4{32'hBAD0_DA7A}};
      if (is_set_up) owed = owed + 1;
      rule(RuleRefresh, owed <= OwedMax);
      if (dfi_i.cke && !dfi_i.cs_n && dfi_i.command != DdrNop) begin
        rule(RuleSetUp, now >= longint'(PowerUp));
        rule(RuleMrd, now >= mode_set + longint'(DdrMrd));
        case (dfi_i.command)
          DdrMode: set_mode();
          DdrRefresh: refresh();
          DdrPrecharge: begin
            for (int b = 0; b < int'(DdrBanks); ++b) begin
              if (dfi_i.address[10] || dfi_i.bank == bank_t'(b)) precharge(bank_t'(b));
            end
          end
          DdrActivate: activate(dfi_i.bank);
          DdrWrite: column(dfi_i.bank, 1'b1);
          DdrRead: begin
            column(dfi_i.bank, 1'b0);
            coming[0] = line;
          end
          default: rule(RuleMode, 1'b0);
        endcase
      end
    end
    broken_o = broken;
  end
  // verilator lint_on BLKSEQ

  `VELO_ASSERT(KeepsJedecsRules, Quiet || broken_o == '0)

endmodule
