// SPDX-License-Identifier: Apache-2.0
//
// A unit's request to the address translation, and the answer.

package velo_atu_pkg;

  typedef struct packed {
    velo_pkg::registered_address_t address;
    // Bytes of the access; it stays in one page.
    logic [9:0]                    len_bytes;
    // The context whose memory it is.
    logic [7:0]                    ctx;
    // The peer that wants it: node in the upper byte, context in the lower.
    logic [15:0]                   peer;
    // The owner itself wants it: it needs the right, but not to be the page's peer.
    logic                          own;
    // All of these: read, write and atomic, lowest first.
    logic [2:0]                    rights;
  } atu_request_t;

  typedef struct packed {
    velo_pkg::error_e              error;
    // Host memory; only if there is no error.
    logic [htax_pkg::AddrBits-1:0] addr;
  } atu_answer_t;

endpackage
