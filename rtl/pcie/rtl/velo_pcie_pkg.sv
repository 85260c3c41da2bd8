// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the PCI Express function say to each other. Headers and registers: spec/pcie.toml.

package velo_pcie_pkg;
  parameter int unsigned DataWidth = 64;

  // One beat of a packet: two dwords, the first one lowest. `keep` tells which are there. The header's dwords are
  // numbers, as the specification draws them (format and type in the highest byte); of data the first byte is the
  // lowest. Data begin right behind the header, so behind one of three dwords in a beat's upper half.
  typedef struct packed {
    logic        valid;
    logic        last;
    logic [1:0]  keep;
    logic [63:0] data;
  } tlp_beat_t;

  // Which base address register a request came by; none: no bit.
  typedef struct packed {
    logic bar4;
    logic bar2;
    logic bar0;
  } bar_t;

  // What the configuration space, the hard block's, says.
  typedef struct packed {
    logic [15:0] id;           // bus, device and function
    logic        bus_master;   // may write and read memory, and interrupt
    logic        relaxed;      // may send packets that others need not wait for
    logic [2:0]  max_payload;  // 128 bytes shifted left by this; of more than 512, 512 are used
    logic [2:0]  max_read;     // likewise
    logic        msix_enable;
    logic        msix_mask;    // all vectors are masked
  } config_t;

  // A request that wants an answer.
  typedef struct packed {
    logic        refused;     // as unsupported
    bar_t        bar;
    logic        read;        // of memory; else data, if any, are gone
    logic [31:0] behind;      // stores that came before it
    logic [37:0] addr;
    logic [9:0]  length;
    logic [7:0]  be;          // first and last dword's, the first one lowest
    logic [1:0]  attributes;
    logic [2:0]  tc;
    logic [7:0]  tag;
    logic [15:0] requester;
  } request_t;

  // What came in of a completion: a word of data, or its end.
  typedef struct packed {
    logic        word_valid;
    logic [6:0]  word_index;  // from its first
    logic [63:0] word;
    logic        end_valid;
    logic        mine;        // for this function
    logic        refused;     // no data, and none will follow
    logic        good;        // data, whole words, not void
    logic [9:0]  length;
    logic [11:0] byte_count;
    logic [7:0]  tag;
  } answer_t;

  // Pulses, each for one packet.
  typedef struct packed {
    logic poisoned;
    logic unsupported;
    logic malformed;
  } receive_event_t;

  // A byte count of 128, 256 or 512, as a number of bits.
  function automatic logic [3:0] size_bits(logic [2:0] code);
    return code >= 3'd2 ? 4'd9 : 4'd7 + {1'b0, code};
  endfunction

endpackage
