// SPDX-License-Identifier: Apache-2.0
//
// A stream of packets between units and network: valid/ready, so a beat stands until it is taken. Its data go
// beside this type, as wide as the path; so the type is the same for all widths.

package velo_net_pkg;

  typedef struct packed {
    logic valid;   // a beat is offered
    logic sop;     // it is its packet's first
    logic eop;     // it is the last
    logic poison;  // with the last: the packet is void; only from the network
  } net_stream_t;

endpackage
