// SPDX-License-Identifier: Apache-2.0
//
// From the host's ports to the units and back: host bridge and on-chip crossbar.
//
// Host ports as in velo_node_core. A unit has one port of the crossbar (htax_pkg), at its index in velo_node_pkg.
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

    // From each unit: its offers, the beats' data beside them, and whether they are taken.
    input  htax_port_t  [LastUnit:FirstUnit]                from_unit_i,
    input  logic        [LastUnit:FirstUnit][DataWidth-1:0] from_unit_posted_data_i,
    input  logic        [LastUnit:FirstUnit][DataWidth-1:0] from_unit_response_data_i,
    output htax_ready_t [LastUnit:FirstUnit]                from_unit_ready_o,
    // Pulse: a unit's posted write has left for the host.
    output logic        [LastUnit:FirstUnit]                write_done_o,

    // To each unit, likewise.
    output htax_port_t  [LastUnit:FirstUnit]                to_unit_o,
    output logic        [LastUnit:FirstUnit][DataWidth-1:0] to_unit_posted_data_o,
    output logic        [LastUnit:FirstUnit][DataWidth-1:0] to_unit_response_data_o,
    input  htax_ready_t [LastUnit:FirstUnit]                to_unit_ready_i
);

  localparam int unsigned PortControl = LastUnit + 1;
  localparam int unsigned NumPorts = LastUnit + 2;

  // ----- which port reaches which -----------------------------------------------------------------

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

  // All accesses of a host are to the node's window, with any address.
  function automatic htax_stream_t store_of(logic valid, host_write_t write);
    htax_header_t header;
    header = '{window: 1'b1, addr: write.addr, len_bytes: write.len_bytes, default: '0};
    return '{valid: valid, eop: write.eop, header: header};
  endfunction
  function automatic htax_read_t load_of(logic valid, host_read_t read);
    htax_header_t header;
    header = '{
        window: 1'b1,
        addr: read.addr,
        len_bytes: read.len_bytes,
        tag: read.tag,
        default: '0
    };
    return '{valid: valid, header: header};
  endfunction

  // A read of host memory goes out with the port that asked before its tag. An answer with the tag of a
  // port that reads nothing was not asked for, and goes to the register file.
  logic [PortBits-1:0] asker;
  assign asker = dma_response_i.answer.tag[11:8];

  htax_port_t from_host, from_control;
  assign from_host = '{
          posted: store_of(host_request_i.write_valid, host_request_i.write),
          nonposted: load_of(host_request_i.read_valid, host_request_i.read),
          response: '{
              valid: dma_response_i.answer_valid,
              eop: dma_response_i.answer.eop,
              header: '{
                  port: |(Readers & ports_t'(1) << asker) ? asker : PortBits'(PortRegisters),
                  tag: dma_response_i.answer.tag[7:0],
                  error: dma_response_i.answer.error,
                  default: '0
              }
          }
      };
  assign from_control = '{
          posted: store_of(control_request_i.write_valid, control_request_i.write),
          nonposted: load_of(control_request_i.read_valid, control_request_i.read),
          response: '0
      };

  htax_ready_t to_host_ready, to_control_ready;
  assign to_host_ready = '{
          posted: dma_response_i.write_ready,
          nonposted: dma_response_i.read_ready,
          response: host_request_i.answer_ready
      };
  assign to_control_ready = '{response: control_request_i.answer_ready, default: 1'b0};

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

  htax_port_t  [NumPorts-1:0] to;
  htax_ready_t [NumPorts-1:0] from_ready;
  logic [NumPorts-1:0][DataWidth-1:0] to_posted_data, to_response_data;

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
      .from_i({from_control, from_unit_i, from_host}),
      .from_posted_data_i({control_write_data_i, from_unit_posted_data_i, host_write_data_i}),
      .from_response_data_i({DataWidth'(0), from_unit_response_data_i, dma_answer_data_i}),
      .from_ready_o(from_ready),
      .to_o(to),
      .to_posted_data_o(to_posted_data),
      .to_response_data_o(to_response_data),
      .to_ready_i({to_control_ready, to_unit_ready_i, to_host_ready})
  );

  // ----- to the host ----------------------------------------------------------------------------

  htax_stream_t host_answer;
  assign host_answer = to[PortHost].response;
  assign host_response_o = '{
          write_ready: from_ready[PortHost].posted,
          read_ready: from_ready[PortHost].nonposted,
          answer_valid: host_answer.valid,
          answer: '{
              eop: host_answer.eop,
              error: host_answer.header.error,
              tag: host_answer.header.tag
          }
      };
  assign host_answer_data_o = to_response_data[PortHost];

  htax_stream_t control_answer;
  assign control_answer = to[PortControl].response;
  assign control_response_o = '{
          write_ready: from_ready[PortControl].posted,
          read_ready: from_ready[PortControl].nonposted,
          answer_valid: control_answer.valid,
          answer: '{
              eop: control_answer.eop,
              error: control_answer.header.error,
              tag: control_answer.header.tag
          }
      };
  assign control_answer_data_o = to_response_data[PortControl];

  htax_stream_t write;
  htax_read_t   read;
  assign write = to[PortHost].posted;
  assign read = to[PortHost].nonposted;
  assign dma_request_o = '{
          write_valid: write.valid,
          write: '{eop: write.eop, addr: write.header.addr, len_bytes: write.header.len_bytes},
          read_valid: read.valid,
          read: '{
              addr: read.header.addr,
              len_bytes: read.header.len_bytes,
              tag: {read.header.port, read.header.tag}
          },
          answer_ready: from_ready[PortHost].response
      };
  assign dma_write_data_o = to_posted_data[PortHost];

  // ----- to the units ---------------------------------------------------------------------------

  assign from_unit_ready_o = from_ready[LastUnit:FirstUnit];
  assign to_unit_o = to[LastUnit:FirstUnit];
  assign to_unit_posted_data_o = to_posted_data[LastUnit:FirstUnit];
  assign to_unit_response_data_o = to_response_data[LastUnit:FirstUnit];

  logic write_leaves;
  assign write_leaves = dma_request_o.write_valid && dma_response_i.write_ready &&
      dma_request_o.write.eop;
  for (genvar u = FirstUnit; u <= LastUnit; u++) begin : gen_done
    assign write_done_o[u] = write_leaves && write.header.port == PortBits'(u);
  end

  logic unused;
  assign unused = ^{to, to_posted_data, from_ready, host_answer.header, control_answer.header,
                    write.header, read.header};

  `VELO_ASSERT(NothingToTheControlPort,
               !to[PortControl].posted.valid && !to[PortControl].nonposted.valid)
  `VELO_ASSERT_INIT(HostIsFirst, PortHost == 0 && FirstUnit == 1)
  `VELO_ASSERT_INIT(SourceChoosesUnit, NumVelo <= 2 ** WindowSourceBits)

endmodule
