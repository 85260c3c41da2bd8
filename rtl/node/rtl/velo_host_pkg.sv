// SPDX-License-Identifier: Apache-2.0
//
// The host port of a node: requests of the one who asks, responses of the other side. The data of writes and
// answers go beside them, in ports as wide as the node's path, so these types are the same for all widths.
//
// A stream is valid/ready: what is offered with `*_valid` stands until `*_ready` of the other side takes it. A
// write has the bytes that it announces, rounded up to whole beats; address and length hold for all of them,
// `eop` marks the last one. An answer has beats likewise, and the tag of the read that it answers.

package velo_host_pkg;
  import htax_pkg::*;

  typedef struct packed {
    logic                eop;
    logic [AddrBits-1:0] addr;
    logic [9:0]          len_bytes;
  } host_write_t;

  typedef struct packed {
    logic [AddrBits-1:0] addr;
    logic [9:0]          len_bytes;
    logic [7:0]          tag;        // the asker's own; the answer gives it back
  } host_read_t;

  typedef struct packed {
    logic       eop;
    logic       error;  // refused: there are no data
    logic [7:0] tag;
  } host_answer_t;

  // Stores and loads of the host, in the node's window; once for the units, once for the registers.
  typedef struct packed {
    logic        write_valid;
    host_write_t write;
    logic        read_valid;
    host_read_t  read;
    logic        answer_ready;
  } host_request_t;

  typedef struct packed {
    logic         write_ready;
    logic         read_ready;
    logic         answer_valid;
    host_answer_t answer;
  } host_response_t;

  // Reads of host memory are answered in any order; so their tags name the unit, too.
  typedef struct packed {
    logic [AddrBits-1:0] addr;
    logic [9:0]          len_bytes;
    logic [11:0]         tag;
  } dma_read_t;

  typedef struct packed {
    logic        eop;
    logic        error;
    logic [11:0] tag;
  } dma_answer_t;

  // Writes and reads of host memory by the node.
  typedef struct packed {
    logic        write_valid;
    host_write_t write;
    logic        read_valid;
    dma_read_t   read;
    logic        answer_ready;
  } dma_request_t;

  typedef struct packed {
    logic        write_ready;
    logic        read_ready;
    logic        answer_valid;
    dma_answer_t answer;
  } dma_response_t;

endpackage
