// SPDX-License-Identifier: Apache-2.0
//
// From the host's ports to the units and back: host bridge and on-chip crossbar.
//
// Host ports as in velo_node_core. A unit has one port of the crossbar, at its index in velo_node_pkg,
// and streams as in htax: `posted_in_*`, `nonposted_in_*`, `response_in_*` from it, the others to it.
// Requests are of one beat. `write_done_o` pulses when a unit's posted write has left for the host.
//
// Units have parts of the window of their own, VELO units by the lowest bits of the page's `source`; the register
// file gets the rest and refuses what is not its. Accesses by the control port go to it and nowhere else, so they
// wait for no unit.
// Errors: answers of the host that nobody asked for go to the register file, which swallows them.
//
// Source: VELO paper, figure 1.

`include "velo_assert.svh"

module velo_node_fabric
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_host_pkg::*;
  import velo_node_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumVelo = 1,
    parameter bit CustomUnit = 1'b1,
    localparam int unsigned LastUnit = last_unit(NumVelo)
) (
    input logic clk_i,
    input logic rst_ni,

    // Stores and loads of the host for the units, and their answers; see velo_host_pkg.
    input  host_request_t                  host_request_i,
    input  logic           [DataWidth-1:0] host_write_data_i,  // beside `host_request_i.write`
    output host_response_t                 host_response_o,
    output logic           [DataWidth-1:0] host_answer_data_o, // beside `host_response_o.answer`

    // The same for the registers, which wait for no unit.
    input  host_request_t                  control_request_i,
    input  logic           [DataWidth-1:0] control_write_data_i,
    output host_response_t                 control_response_o,
    output logic           [DataWidth-1:0] control_answer_data_o,

    // Writes and reads of host memory, and what was read.
    output dma_request_t                  dma_request_o,
    output logic          [DataWidth-1:0] dma_write_data_o,  // beside `dma_request_o.write`
    input  dma_response_t                 dma_response_i,
    input  logic          [DataWidth-1:0] dma_answer_data_i, // beside `dma_response_i.answer`

    input  logic         [LastUnit:FirstUnit]                posted_in_valid_i,
    output logic         [LastUnit:FirstUnit]                posted_in_ready_o,
    input  logic         [LastUnit:FirstUnit]                posted_in_eop_i,
    input  htax_header_t [LastUnit:FirstUnit]                posted_in_header_i,
    input  logic         [LastUnit:FirstUnit][DataWidth-1:0] posted_in_data_i,
    output logic         [LastUnit:FirstUnit]                write_done_o,
    output logic         [LastUnit:FirstUnit]                posted_valid_o,
    input  logic         [LastUnit:FirstUnit]                posted_ready_i,
    output logic         [LastUnit:FirstUnit]                posted_eop_o,
    output htax_header_t [LastUnit:FirstUnit]                posted_header_o,
    output logic         [LastUnit:FirstUnit][DataWidth-1:0] posted_data_o,

    input  logic         [LastUnit:FirstUnit] nonposted_in_valid_i,
    output logic         [LastUnit:FirstUnit] nonposted_in_ready_o,
    input  htax_header_t [LastUnit:FirstUnit] nonposted_in_header_i,
    output logic         [LastUnit:FirstUnit] nonposted_valid_o,
    input  logic         [LastUnit:FirstUnit] nonposted_ready_i,
    output htax_header_t [LastUnit:FirstUnit] nonposted_header_o,

    input  logic         [LastUnit:FirstUnit]                response_in_valid_i,
    output logic         [LastUnit:FirstUnit]                response_in_ready_o,
    input  logic         [LastUnit:FirstUnit]                response_in_eop_i,
    input  htax_header_t [LastUnit:FirstUnit]                response_in_header_i,
    input  logic         [LastUnit:FirstUnit][DataWidth-1:0] response_in_data_i,
    output logic         [LastUnit:FirstUnit]                response_valid_o,
    input  logic         [LastUnit:FirstUnit]                response_ready_i,
    output logic         [LastUnit:FirstUnit]                response_eop_o,
    output htax_header_t [LastUnit:FirstUnit]                response_header_o,
    output logic         [LastUnit:FirstUnit][DataWidth-1:0] response_data_o
);

  localparam int unsigned PortControl = LastUnit + 1;
  localparam int unsigned NumPorts = LastUnit + 2;

  // ----- who has to do with whom -----------------------------------------------------------------

  // Hosts reach the units, and units their host. The host's second way leads to the register file alone,
  // which asks for nothing. VELO units are not read: their part of the window is refused by the register
  // file, like what is in no part.
  typedef logic [NumPorts-1:0] ports_t;
  localparam ports_t HostBit = ports_t'(1) << PortHost;
  localparam ports_t RegistersBit = ports_t'(1) << PortRegisters;
  localparam ports_t ControlBit = ports_t'(1) << PortControl;
  localparam ports_t Readers = ports_t'(1) << PortCustom | ports_t'(1) << PortRma;

  function automatic ports_t [NumPorts-1:0] posted_reach();
    ports_t [NumPorts-1:0] reach;
    reach                = {NumPorts{HostBit}};
    reach[PortHost]      = ~(HostBit | ControlBit);
    reach[PortRegisters] = '0;
    reach[PortControl]   = RegistersBit;
    return reach;
  endfunction
  function automatic ports_t [NumPorts-1:0] nonposted_reach();
    ports_t [NumPorts-1:0] reach;
    reach              = '0;
    reach[PortHost]    = Readers | RegistersBit;
    reach[PortCustom]  = HostBit;
    reach[PortRma]     = HostBit;
    reach[PortControl] = RegistersBit;
    return reach;
  endfunction
  function automatic ports_t [NumPorts-1:0] response_reach();
    ports_t [NumPorts-1:0] reach;
    reach                = '0;
    reach[PortHost]      = Readers | RegistersBit;
    reach[PortRegisters] = HostBit | ControlBit;
    reach[PortCustom]    = HostBit;
    reach[PortRma]       = HostBit;
    return reach;
  endfunction

  // ----- the host's streams ---------------------------------------------------------------------

  htax_header_t [NumPorts-1:0] posted_header, nonposted_header, response_header;

  // All accesses of a host are to the node's window, with any address.
  function automatic htax_header_t in_window(logic [AddrBits-1:0] addr, logic [9:0] len_bytes,
                                             logic [7:0] tag);
    return '{window: 1'b1, addr: addr, len_bytes: len_bytes, tag: tag, default: '0};
  endfunction

  // A read of host memory goes out with the port that asked before its tag. An answer with the tag of a
  // port that reads nothing was not asked for, and goes to the register file.
  logic [PortBits-1:0] asker;
  htax_header_t memory_header;
  assign asker = dma_response_i.answer.tag[11:8];
  assign memory_header = '{
          port: |(Readers & ports_t'(1) << asker) ? asker : PortBits'(PortRegisters),
          tag: dma_response_i.answer.tag[7:0],
          error: dma_response_i.answer.error,
          default: '0
      };

  // ----- crossbar -------------------------------------------------------------------------------

  typedef logic [AddrBits-1:0] addr_t;
  localparam addr_t UnitMask = addr_t'('1) << WindowUnitLsb;
  localparam addr_t NoPart = '1;

  function automatic addr_t [NumPorts-1:0] window_mask();
    addr_t [NumPorts-1:0] mask;
    mask = {NumPorts{NoPart}};
    for (int unsigned u = 0; u < NumVelo; u++) begin
      mask[port_of_velo(u)] = UnitMask | (addr_t'(NumVelo) - 1'b1) << WindowSourceLsb;
    end
    mask[PortRma] = UnitMask;
    if (CustomUnit) mask[PortCustom] = UnitMask;
    return mask;
  endfunction
  function automatic addr_t [NumPorts-1:0] window_base();
    addr_t [NumPorts-1:0] base;
    base = '0;
    for (int unsigned u = 0; u < NumVelo; u++) begin
      base[port_of_velo(u)] = addr_t'(UnitVelo) << WindowUnitLsb | addr_t'(u) << WindowSourceLsb;
    end
    base[PortRma]    = addr_t'(UnitRma) << WindowUnitLsb;
    base[PortCustom] = addr_t'(UnitCustom) << WindowUnitLsb;
    return base;
  endfunction

  logic [NumPorts-1:0] posted_in_ready, posted_valid, posted_eop;
  logic [NumPorts-1:0] nonposted_in_ready, nonposted_valid, unused_nonposted_eop;
  logic [NumPorts-1:0] response_in_ready, response_valid, response_eop;
  logic [NumPorts-1:0][DataWidth-1:0] posted_data, unused_nonposted_data, response_data;

  // By port, the highest first: control, units, host. Nothing is ever sent to the control port but
  // responses.
  htax #(
      .NumPorts   (NumPorts),
      .DataWidth  (DataWidth),
      .HostPort   (PortHost),
      .DefaultPort(PortRegisters),
      .WindowBase (window_base()),
      .WindowMask (window_mask()),
      .PostedReach   (posted_reach()),
      .NonpostedReach(nonposted_reach()),
      .ResponseReach (response_reach())
  ) u_htax (
      .clk_i,
      .rst_ni,
      .posted_in_valid_i({
        control_request_i.write_valid, posted_in_valid_i, host_request_i.write_valid
      }),
      .posted_in_ready_o(posted_in_ready),
      .posted_in_eop_i({control_request_i.write.eop, posted_in_eop_i, host_request_i.write.eop}),
      .posted_in_header_i({
        in_window(control_request_i.write.addr, control_request_i.write.len_bytes, '0),
        posted_in_header_i,
        in_window(host_request_i.write.addr, host_request_i.write.len_bytes, '0)
      }),
      .posted_in_data_i({control_write_data_i, posted_in_data_i, host_write_data_i}),
      .posted_out_valid_o(posted_valid),
      .posted_out_ready_i({1'b0, posted_ready_i, dma_response_i.write_ready}),
      .posted_out_eop_o(posted_eop),
      .posted_out_header_o(posted_header),
      .posted_out_data_o(posted_data),
      .nonposted_in_valid_i({
        control_request_i.read_valid, nonposted_in_valid_i, host_request_i.read_valid
      }),
      .nonposted_in_ready_o(nonposted_in_ready),
      .nonposted_in_eop_i('1),
      .nonposted_in_header_i({
        in_window(
            control_request_i.read.addr,
            control_request_i.read.len_bytes,
            control_request_i.read.tag
        ),
        nonposted_in_header_i,
        in_window(host_request_i.read.addr, host_request_i.read.len_bytes, host_request_i.read.tag)
      }),
      .nonposted_in_data_i('0),
      .nonposted_out_valid_o(nonposted_valid),
      .nonposted_out_ready_i({1'b0, nonposted_ready_i, dma_response_i.read_ready}),
      .nonposted_out_eop_o(unused_nonposted_eop),
      .nonposted_out_header_o(nonposted_header),
      .nonposted_out_data_o(unused_nonposted_data),
      .response_in_valid_i({1'b0, response_in_valid_i, dma_response_i.answer_valid}),
      .response_in_ready_o(response_in_ready),
      .response_in_eop_i({1'b1, response_in_eop_i, dma_response_i.answer.eop}),
      .response_in_header_i({htax_header_t'('0), response_in_header_i, memory_header}),
      .response_in_data_i({DataWidth'(0), response_in_data_i, dma_answer_data_i}),
      .response_out_valid_o(response_valid),
      .response_out_ready_i({
        control_request_i.answer_ready, response_ready_i, host_request_i.answer_ready
      }),
      .response_out_eop_o(response_eop),
      .response_out_header_o(response_header),
      .response_out_data_o(response_data)
  );

  // ----- to the host ----------------------------------------------------------------------------

  assign host_response_o = '{
          write_ready: posted_in_ready[PortHost],
          read_ready: nonposted_in_ready[PortHost],
          answer_valid: response_valid[PortHost],
          answer: '{
              eop: response_eop[PortHost],
              error: response_header[PortHost].error,
              tag: response_header[PortHost].tag
          }
      };
  assign host_answer_data_o = response_data[PortHost];
  assign control_response_o = '{
          write_ready: posted_in_ready[PortControl],
          read_ready: nonposted_in_ready[PortControl],
          answer_valid: response_valid[PortControl],
          answer: '{
              eop: response_eop[PortControl],
              error: response_header[PortControl].error,
              tag: response_header[PortControl].tag
          }
      };
  assign control_answer_data_o = response_data[PortControl];
  assign dma_request_o = '{
          write_valid: posted_valid[PortHost],
          write: '{
              eop: posted_eop[PortHost],
              addr: posted_header[PortHost].addr,
              len_bytes: posted_header[PortHost].len_bytes
          },
          read_valid: nonposted_valid[PortHost],
          read: '{
              addr: nonposted_header[PortHost].addr,
              len_bytes: nonposted_header[PortHost].len_bytes,
              tag: {nonposted_header[PortHost].port, nonposted_header[PortHost].tag}
          },
          answer_ready: response_in_ready[PortHost]
      };
  assign dma_write_data_o = posted_data[PortHost];

  // ----- to the units ---------------------------------------------------------------------------

  assign posted_in_ready_o = posted_in_ready[LastUnit:FirstUnit];
  assign nonposted_in_ready_o = nonposted_in_ready[LastUnit:FirstUnit];
  assign response_in_ready_o = response_in_ready[LastUnit:FirstUnit];
  assign posted_valid_o = posted_valid[LastUnit:FirstUnit];
  assign posted_eop_o = posted_eop[LastUnit:FirstUnit];
  assign posted_header_o = posted_header[LastUnit:FirstUnit];
  assign posted_data_o = posted_data[LastUnit:FirstUnit];
  assign nonposted_valid_o = nonposted_valid[LastUnit:FirstUnit];
  assign nonposted_header_o = nonposted_header[LastUnit:FirstUnit];
  assign response_valid_o = response_valid[LastUnit:FirstUnit];
  assign response_eop_o = response_eop[LastUnit:FirstUnit];
  assign response_header_o = response_header[LastUnit:FirstUnit];
  assign response_data_o = response_data[LastUnit:FirstUnit];

  logic write_leaves;
  assign write_leaves = dma_request_o.write_valid && dma_response_i.write_ready &&
      dma_request_o.write.eop;
  for (genvar u = FirstUnit; u <= LastUnit; u++) begin : gen_done
    assign write_done_o[u] = write_leaves && posted_header[PortHost].port == PortBits'(u);
  end

  logic unused;
  assign unused = ^{posted_valid, posted_eop, posted_header, posted_data, nonposted_valid,
                    nonposted_header, response_in_ready};

  `VELO_ASSERT(NothingToTheControlPort, !posted_valid[PortControl] && !nonposted_valid[PortControl])
  `VELO_ASSERT_INIT(HostIsFirst, PortHost == 0 && FirstUnit == 1)
  `VELO_ASSERT_INIT(SourceChoosesUnit, NumVelo <= 2 ** WindowSourceBits)

endmodule
