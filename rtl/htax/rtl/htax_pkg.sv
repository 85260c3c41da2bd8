// SPDX-License-Identifier: Apache-2.0
//
// The header of a transaction on the on-chip crossbar, which travels beside the data.

package htax_pkg;

  parameter int unsigned AddrBits = 48;
  parameter int unsigned PortBits = 4;

  // Holds for all beats of a transaction.
  typedef struct packed {
    // The address is one in the node's window (unit, source, target); else one of host memory.
    logic                window;
    logic [AddrBits-1:0] addr;
    // Bytes of data; of a read, bytes that are asked for.
    logic [9:0]          len_bytes;
    // The port that asked: the crossbar fills it in for requests; a response goes there.
    logic [PortBits-1:0] port;
    // The requester's own; a response gives it back.
    logic [7:0]          tag;
    // Of a response: there is no data, the request was refused.
    logic                error;
  } htax_header_t;

  // Is this length, given by its lowest bits, an odd number of 64-bit words? Then half of the last beat
  // of 128 bits is padding.
  function automatic logic odd_words(logic [3:0] len_bytes);
    return len_bytes[3] ^ (|len_bytes[2:0]);
  endfunction

endpackage
