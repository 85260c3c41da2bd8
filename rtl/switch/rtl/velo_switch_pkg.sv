// SPDX-License-Identifier: Apache-2.0
//
// Routes and sizes that switch, network ports and link have in common.
//
// A hop is 4 bits, in the routing table as in a route word: the output link in bits 2:0; bit 3 is the
// dateline bit, which picks the second of the two virtual channels of the packet's traffic class.
// Source: case-for-fpga, section 3; dateline channels: Dally and Seitz, IEEE Trans. Computers 36(5).

package velo_switch_pkg;

  typedef logic [3:0] hop_t;

  localparam hop_t HopLocal = 4'd15;  // deliver to the node's own port of the packet's class
  localparam hop_t HopNone = 4'd14;  // no way: the packet is dropped and counted

  localparam int unsigned NumClasses = 3;  // request, response, completion
  localparam int unsigned UnitWords = 8;  // a credit stands for a unit of this many words

  // Words of the longest packet: route, header, payload.
  function automatic int unsigned packet_words(int unsigned data_width, int unsigned mtu_bytes);
    int unsigned narrow = 2 * 64 / data_width;
    return (narrow < 2 ? 2 : narrow) + mtu_bytes * 8 / data_width;
  endfunction

  // Credits without which a packet is not begun: the longest packet, and two units that may be in
  // use already without the credit counter knowing of them.
  function automatic int unsigned need_credits(int unsigned data_width, int unsigned mtu_bytes);
    return (packet_words(data_width, mtu_bytes) + UnitWords - 1) / UnitWords + 2;
  endfunction

endpackage
