// SPDX-License-Identifier: Apache-2.0
//
// The streams of the on-chip crossbar: a transaction's header, and the three channels of a port.
//
// A stream is valid/ready: what is offered with `valid` stands until it is taken. The data of writes and responses go
// beside these types, as wide as the path; so the types are the same for all widths.

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

  // Writes, or what was read.
  typedef struct packed {
    logic         valid;   // a beat is offered
    logic         eop;     // it is the transaction's last
    htax_header_t header;  // holds from first to last
  } htax_stream_t;

  // Reads: one beat each, without data.
  typedef struct packed {
    logic         valid;   // a read is offered
    htax_header_t header;
  } htax_read_t;

  // The offers of one side of a port, by channel.
  typedef struct packed {
    htax_stream_t posted;
    htax_read_t   nonposted;
    htax_stream_t response;
  } htax_port_t;

  // The other side takes the beat that is offered.
  typedef struct packed {
    logic posted;
    logic nonposted;
    logic response;
  } htax_ready_t;

  // Is this length, given by its lowest bits, an odd number of 64-bit words? Then half of the last beat
  // of 128 bits is padding.
  function automatic logic odd_words(logic [3:0] len_bytes);
    return len_bytes[3] ^ (|len_bytes[2:0]);
  endfunction

endpackage
