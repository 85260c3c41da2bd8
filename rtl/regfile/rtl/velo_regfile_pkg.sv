// SPDX-License-Identifier: Apache-2.0
//
// The signals between register file and RMA unit: settings one way, state and events the other. Their
// meaning is that of velo_rma's ports with the same names; events are there for one cycle. Also the
// watchdog that all units share, congestion management, and what is shown of a link.

package velo_regfile_pkg;
  import velo_pkg::*;
  import htax_pkg::*;

  typedef struct packed {
    logic                 table_enable;
    logic [AddrBits-1:12] table_base;
    logic [4:0]           table_bits;
    logic                 invalidate;
    logic [23:0]          invalidate_page;
    // A queue stands until `queue_ready` of the report.
    logic                 queue_valid;
    logic [7:0]           queue_ctx;
    logic                 queue_enabled;
    logic [AddrBits-1:4]  queue_base;
    logic [14:0]          queue_last_entry;
    logic                 read_pointer_valid;
    logic [7:0]           read_pointer_ctx;
    logic [15:0]          read_pointer;
  } rma_setting_t;

  // What registers show of a link, with the meaning of velo_router's ports of these names.
  typedef struct packed {
    logic [47:0] credits;     // by channel
    logic [7:0]  restarts;
    logic [7:0]  in_doubt;
    logic [7:0]  dropped;
    logic [7:0]  timeouts;
    logic [7:0]  replays;
    logic [7:0]  crc_errors;
    logic [2:0]  refuse;
    logic        up;
  } link_state_t;

  // The watchdog of the host's accesses, register access_watchdog.
  typedef struct packed {
    logic        enable;
    logic [23:0] cycles;
  } watchdog_t;

  // What it found, for one cycle each; counted in the registers with these names.
  typedef struct packed {
    logic [2:0] undelivered;  // their number
    logic [2:0] given_up;     // store and load of the custom unit, descriptor
    logic [1:0] unanswered;   // custom unit, RMA unit
    logic       host_stall;
  } watchdog_report_t;

  // Congestion management: ports of velo_congestion and velo_switch with the same names.
  typedef struct packed {
    logic        enable;
    logic [3:0]  increase;
    logic [7:0]  notice_cycles;
    logic [7:0]  recover_cycles;
    logic [15:0] mark_cycles;
  } congestion_t;

  typedef struct packed {
    logic        present;
    logic [15:0] marked;
    logic [15:0] sent;
    logic [15:0] suppressed;
    logic [15:0] received;
    logic [31:0] held;
  } congestion_report_t;

  typedef struct packed {
    logic       queue_ready;
    logic       invalidating;
    logic       stalled;
    logic [7:0] stall_ctx;
    logic       descriptors_wait;
    logic       posted;
    logic [1:0] completed;
    logic       served;
    logic       atu_hit;
    logic       atu_miss;
    logic       atu_refused;
    logic       refused;
    error_e     refused_code;
    logic [7:0] refused_source;
    logic [2:0] errors;
    error_e     error_code;
    logic [7:0] error_ctx;
    logic [7:0] error_node;
  } rma_report_t;

endpackage
