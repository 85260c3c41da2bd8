// SPDX-License-Identifier: Apache-2.0
//
// Ports of a node's crossbar, and where its units stand on the network's streams.

package velo_node_pkg;
  import velo_pkg::*;

  parameter int unsigned PortHost = 0;
  parameter int unsigned PortRegisters = 1;
  parameter int unsigned PortVelo = 2;
  parameter int unsigned PortCustom = 3;
  parameter int unsigned PortRma = 4;
  // Then VELO units from the second on, and the host's way to the registers last. Those behind the host
  // bridge are all but the host's two.
  parameter int unsigned FirstUnit = PortRegisters;
  function automatic int unsigned last_unit(int unsigned num_velo);
    return PortRma + num_velo - 1;
  endfunction
  function automatic int unsigned port_of_velo(int unsigned unit);
    return unit == 0 ? PortVelo : PortRma + unit;
  endfunction

  // Beats of a 64-bit word, and of a packet of a header and so many words: on a path of 128 bits the
  // header has a beat of its own, and the others go two by two.
  function automatic int unsigned word_beats(int unsigned data_width);
    return data_width > 64 ? 1 : 64 / data_width;
  endfunction
  function automatic int unsigned packet_beats(int unsigned data_width, int unsigned words);
    return data_width > 64 ? 1 + (words + 1) / 2 : (1 + words) * 64 / data_width;
  endfunction

  // The units that send to the network and take packets from it.
  parameter int unsigned NetVelo = 0;
  parameter int unsigned NetCustom = 1;
  parameter int unsigned NetRma = 2;
  parameter int unsigned NetBarrier = 3;  // if there are barriers

  // Kinds of packet that a unit takes, a bit each, by traffic class. VELO takes the requests that
  // nobody else does and refuses what is no message; of the other classes such a packet is a stray.
  parameter logic [2:0][15:0] KindsVelo = '0;
  parameter logic [2:0][15:0] KindsCustom = {
    16'd0, 16'd1 << PacketKindCustom, 16'd1 << PacketKindCustom
  };
  parameter logic [2:0][15:0] KindsRma = {
    16'd1 << PacketKindNotification,
    16'd1 << PacketKindGetResponse | 16'd1 << PacketKindFetchCompareAddResponse,
    16'd1 << PacketKindPut | 16'd1 << PacketKindGetRequest | 16'd1 << PacketKindPutImmediate |
    16'd1 << PacketKindNotification | 16'd1 << PacketKindFetchCompareAddRequest
  };
  parameter logic [2:0][15:0] KindsBarrier = {16'd1 << PacketKindBarrier, 16'd0, 16'd0};

endpackage
