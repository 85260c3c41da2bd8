// SPDX-License-Identifier: Apache-2.0
//
// Routes and sizes that switch, network ports and link have in common.
//
// A hop is 4 bits, in the routing table as in a route word: the output link in bits 2:0; bit 3 is the
// dateline bit, which picks the second of the two virtual channels of the packet's traffic class.
// Source: case-for-fpga, section 3; dateline channels: Dally and Seitz, IEEE Trans. Computers 36(5).

package velo_switch_pkg;

  import velo_link_pkg::CountWidth;
  import velo_link_pkg::vc_t;

  typedef logic [3:0] hop_t;

  localparam hop_t HopLocal = 4'd15;  // deliver to the node's own port of the packet's class
  localparam hop_t HopNone = 4'd14;  // no way: the packet is dropped and counted

  // Multicast: the last NumGroups node numbers name groups of nodes. A switch sends a group's packet to each
  // of these outputs.
  localparam int unsigned GroupBits = 5;
  localparam int unsigned NumGroups = 2 ** GroupBits;
  typedef struct packed {
    logic       node;      // the node's own port
    logic [5:0] dateline;  // links on which it takes the second channel of its class
    logic [5:0] links;
  } group_ports_t;

  function automatic logic is_group(logic [7:0] node);
    return node >= 8'(256 - NumGroups);
  endfunction
  localparam int unsigned MarkBit = 3;  // `marked` of header and route word, spec/velo.toml

  localparam int unsigned NumClasses = 3;  // request, response, completion
  localparam int unsigned UnitWords = 8;  // a credit stands for a unit of this many words

  // What an input knows of a unit of its buffer.
  typedef struct packed {
    vc_t vc;  // channel that it came by
    logic ends;  // the packet
    logic poison;  // it must not be acted upon
    logic again;  // it comes once more: no credit is due for it
    logic [$clog2(UnitWords)-1:0] last;  // place of the last word written
  } fill_t;

  // Words of the longest packet: route, header, payload.
  function automatic int unsigned packet_words(int unsigned data_width, int unsigned mtu_bytes);
    int unsigned narrow = 2 * 64 / data_width;
    return (narrow < 2 ? 2 : narrow) + mtu_bytes * 8 / data_width;
  endfunction

  function automatic int unsigned units_of(int unsigned words);
    return (words + UnitWords - 1) / UnitWords;
  endfunction

  // Sizes of packets, by which credits are asked for: size s has at most 64 << s bytes of payload and no
  // route word; the last size is for all others, up to the longest. A header's length tells the size, and
  // a switch ends a packet that goes on beyond the units of its size, so that the length can be relied on.
  localparam int unsigned NumSizes = 4;
  typedef logic [1:0] size_t;
  localparam size_t SizeLongest = size_t'(NumSizes - 1);

  function automatic size_t size_of(logic [9:0] len_bytes);
    if (len_bytes <= 10'd64) return 2'd0;
    if (len_bytes <= 10'd128) return 2'd1;
    if (len_bytes <= 10'd256) return 2'd2;
    return SizeLongest;
  endfunction

  // Units of the longest packet of a size.
  function automatic int unsigned size_units(int unsigned size, int unsigned data_width,
                                             int unsigned mtu_bytes);
    int unsigned header_words = data_width == 32 ? 2 : 1;
    int unsigned longest = units_of(packet_words(data_width, mtu_bytes));
    int unsigned these = units_of(header_words + ((64 * 8) << size) / data_width);
    return size == NumSizes - 1 || these > longest ? longest : these;
  endfunction

  // Credits without which a packet of a size is not begun: its units, and two that may be in use already
  // without the credit counter knowing of them.
  function automatic int unsigned size_credits(int unsigned size, int unsigned data_width,
                                               int unsigned mtu_bytes);
    return size_units(size, data_width, mtu_bytes) + 2;
  endfunction

  // The same for any packet.
  function automatic int unsigned need_credits(int unsigned data_width, int unsigned mtu_bytes);
    return size_credits(NumSizes - 1, data_width, mtu_bytes);
  endfunction

  // The credits that each size needs, for velo_credit.
  typedef logic [NumSizes-1:0][CountWidth-1:0] thresholds_t;
  function automatic thresholds_t thresholds(int unsigned data_width, int unsigned mtu_bytes);
    for (int unsigned s = 0; s < NumSizes; s++) begin
      thresholds[s] = CountWidth'(size_credits(s, data_width, mtu_bytes));
    end
  endfunction

endpackage
