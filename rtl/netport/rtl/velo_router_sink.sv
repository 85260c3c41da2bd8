// SPDX-License-Identifier: Apache-2.0
//
// Links that are down: what waits too long to leave by one is swallowed, so that it does not fill the buffers in front
// of the switch and stop all else.
//
// With `enable_i` a link that is down while packets wait for it, for `cycles_i` cycles, at most for twice as many and
// two, is dead (`dead_o`), and stays so as long as it is down. Then `sink_o` tells the switch's output to swallow
// whole packets (velo_switch_output), and nothing stops it. When the link is up, or the watchdog is off, the output
// is stopped for SettleCycles: by then what was on its way to be swallowed has come, and packets pass again, each
// from its first word on. While a link is not dead, the link itself says by `stop_i` when a packet may begin.
//
// One clock for all links, which stands while nothing waits for a link that is down: a node whose cables are not
// plugged in is at rest. Errors: none. Source: VELO white paper (a watchdog, so that a core that stalls cannot hang the
// machine); case-for-fpga, section 3.

`include "velo_assert.svh"

module velo_router_sink #(
    parameter int unsigned NumLinks = 6,
    parameter int unsigned CycleBits = 24,
    parameter int unsigned SettleCycles = 8  // from a stop to the last packet's first word
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                 enable_i,
    input logic [CycleBits-1:0] cycles_i,

    // By link.
    input  logic [NumLinks-1:0] up_i,     // packets can pass
    input  logic [NumLinks-1:0] wanted_i, // packets wait to leave by it
    input  logic [NumLinks-1:0] stop_i,   // the link wants no packet to begin
    output logic [NumLinks-1:0] stop_o,  // nor does the switch let one begin
    output logic [NumLinks-1:0] sink_o,  // what leaves now is swallowed
    output logic [NumLinks-1:0] dead_o   // state, for registers
);

  typedef enum logic [1:0] {
    StPass,
    StOld,    // waited for since before the clock ticked
    StDead,
    StSettle
  } state_e;

  localparam int unsigned SettleBits = $clog2(SettleCycles + 1);

  state_e [NumLinks-1:0] state_q;
  logic [NumLinks-1:0] waits;
  logic [CycleBits-1:0] count_q;
  logic tick;

  assign tick = enable_i && waits != '0 && count_q >= cycles_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else if (!enable_i || waits == '0 || tick) count_q <= '0;
    else count_q <= count_q + 1'b1;
  end

  for (genvar l = 0; l < int'(NumLinks); l++) begin : gen_link
    logic [SettleBits-1:0] settle_q;

    assign waits[l]  = wanted_i[l] && !up_i[l] && state_q[l] inside {StPass, StOld};
    assign dead_o[l] = state_q[l] == StDead;
    assign sink_o[l] = state_q[l] inside {StDead, StSettle};
    assign stop_o[l] = state_q[l] == StSettle || (state_q[l] != StDead && stop_i[l]);

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) state_q[l] <= StPass;
      else begin
        unique case (state_q[l])
          StPass:  if (tick && waits[l]) state_q[l] <= StOld;
          StOld: begin
            if (!waits[l] || !enable_i) state_q[l] <= StPass;
            else if (tick) state_q[l] <= StDead;
          end
          StDead:  if (up_i[l] || !enable_i) state_q[l] <= StSettle;
          default: if (settle_q == SettleBits'(SettleCycles)) state_q[l] <= StPass;
        endcase
      end
    end
    always_ff @(posedge clk_i) begin
      settle_q <= state_q[l] == StSettle ? settle_q + 1'b1 : '0;
    end
  end

endmodule
