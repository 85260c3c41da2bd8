// SPDX-License-Identifier: Apache-2.0
//
// The signals between the registers and the parts that they are of: settings one way, state and events the
// other. Events are there for one cycle, all else stands. A register's new setting or counter needs a field here,
// and no port on the way.

package velo_regfile_pkg;
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_secded_pkg::*;

  // The VELO units, velo_unit's ports with the same names; `watchdog` is that of full rings. A ring stands until
  // `cfg_ready` of the report.
  typedef struct packed {
    logic                watchdog_enable;
    logic [19:0]         watchdog_cycles;
    logic                cfg_valid;
    logic [7:0]          cfg_ctx;
    logic                cfg_enabled;
    logic [AddrBits-1:6] cfg_base;
    logic [14:0]         cfg_last_slot;
    logic                read_pointer_valid;
    logic [7:0]          read_pointer_ctx;
    logic [15:0]         read_pointer;
  } velo_setting_t;

  // Several units may send, refuse, receive and drop in a cycle: numbers; codes of one of those.
  typedef struct packed {
    ecc_count_t ecc;  // words of memories, see velo_ram
    logic cfg_ready;
    logic [2:0] sent;
    logic [2:0] refused;
    error_e refused_code;
    logic [7:0] refused_source;
    logic [2:0] undelivered;  // refused by the watchdog of the host's accesses, not among `refused`
    logic [2:0] received;
    logic stalled;
    logic [7:0] stall_ctx;
    logic [2:0] dropped;
    error_e dropped_code;
    logic [7:0] dropped_ctx;
    logic [7:0] dropped_node;
  } velo_report_t;

  // The RMA unit, velo_rma's ports with the same names; `watchdog` is that of full queues.
  typedef struct packed {
    logic                 watchdog_enable;
    logic [19:0]          watchdog_cycles;
    logic                 answer_enable;
    logic [31:0]          answer_cycles;
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

  typedef struct packed {
    ecc_count_t ecc;
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

  // What registers show of a link, with the meaning of velo_router's ports of these names.
  typedef struct packed {
    logic [47:0] credits;      // by channel
    logic [7:0]  undelivered;
    logic [7:0]  restarts;
    logic [7:0]  in_doubt;
    logic [7:0]  dropped;
    logic [7:0]  timeouts;
    logic [7:0]  replays;
    logic [7:0]  crc_errors;
    logic [2:0]  refuse;
    logic        dead;
    logic        up;
  } link_state_t;

  // The network, velo_router's ports. Entries of the routing table are written one at a time: while
  // `route_we`, that of node `route_node` becomes `route_hop`; of a group, `route_group` (see velo_switch_pkg).
  typedef struct packed {
    logic        route_we;
    logic [7:0]  route_node;
    logic [3:0]  route_hop;
    logic [12:0] route_group;
    logic [7:0]  link_enable;
    logic [7:0]  link_restart;
    logic [7:0]  link_forget;
    logic        dead_enable;
    logic [23:0] dead_cycles;
    logic        mark_enable;
    logic [15:0] mark_cycles;
  } network_setting_t;

  // Links that a node does not have are zero. Packets that led nowhere and that ended poisoned, by class.
  typedef struct packed {
    ecc_count_t        ecc;                 // words of memories, see velo_ram
    logic [2:0][7:0]   node_port_poisoned;
    logic [2:0][7:0]   node_port_dropped;
    link_state_t [7:0] link;
  } network_state_t;

  // The watchdog of the host's accesses, register access_watchdog.
  typedef struct packed {
    logic        enable;
    logic [23:0] cycles;
  } watchdog_t;

  // What it found, for one cycle each; counted in the registers with these names.
  typedef struct packed {
    logic [2:0] given_up;    // store and load of the custom unit, descriptor
    logic [1:0] unanswered;  // custom unit, RMA unit
    logic       host_stall;
  } watchdog_report_t;

  // Congestion management: ports of velo_congestion with the same names.
  typedef struct packed {
    logic       enable;
    logic [3:0] increase;
    logic [7:0] notice_cycles;
    logic [7:0] recover_cycles;
  } congestion_t;

  typedef struct packed {
    logic        present;
    logic [15:0] marked;
    logic [15:0] sent;
    logic [15:0] suppressed;
    logic [15:0] received;
    logic [31:0] held;
  } congestion_report_t;

  // Barriers: what the registers ask of velo_barrier, one access at a time, and what they show of it.
  typedef struct packed {
    logic             set;       // for one cycle: a group's setting
    logic             arrive;    // for one cycle: context `ctx` has arrived
    logic             read;      // `state` of the report is that of the group
    logic [4:0]       group;
    logic [7:0]       ctx;
    barrier_setting_t setting;
    watchdog_t        watchdog;  // cycles: between two looks
  } barrier_access_t;

  typedef struct packed {
    logic           present;
    barrier_state_t state;
    logic           late;          // for one cycle, with the rest of it
    logic [7:0]     late_missing;
    logic [4:0]     late_group;
    logic [7:0]     late_number;
    logic [15:0]    complete;
    logic [15:0]    refused;
    logic [15:0]    lates;
  } barrier_report_t;

endpackage
