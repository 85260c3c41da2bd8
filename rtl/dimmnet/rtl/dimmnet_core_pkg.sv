// SPDX-License-Identifier: Apache-2.0
//
// What passes between the parts of CoreLogic. What hosts and boards see is in dimmnet_pkg (spec/dimmnet.toml).

package dimmnet_core_pkg;
  import dimmnet_pkg::*;

  localparam int unsigned WindowWords = DimmnetWriteWindows * DimmnetWindowWords;
  localparam int unsigned PrefetchWords = DimmnetPrefetchWindows * DimmnetWindowWords;

  // A process's part of SO-DIMM. Both are even, so that a row of two words is inside or outside.
  typedef struct packed {
    logic [31:0] first;
    logic [31:0] words;
  } region_t;

  typedef struct packed {
    logic [15:0] pgid;
    logic        enabled;
    region_t     region;
  } process_t;

  // Of a dimmnet_pattern_t, what a register keeps.
  typedef struct packed {
    logic [31:0] step;
    logic [5:0]  element_words;
  } shape_t;

  typedef enum logic [1:0] {
    EntryBotf,
    EntryAotf,
    EntryTransfer
  } entry_kind_e;

  // A command as it waits. Of BOTF: its word is the lower one. Of AOTF: payload, and above it k.
  typedef struct packed {
    shape_t           local_shape;
    shape_t           remote_shape;
    dimmnet_command_t command;
    entry_kind_e      kind;
  } entry_t;

  // An access of SO-DIMM by a unit, at most 64 words. Contiguous: one element, and no step.
  typedef struct packed {
    region_t                 region;
    logic [31:0]             address;        // first word, from the region's
    dimmnet_access_e access;
    logic [6:0]              element_words;
    logic [6:0]              count;
    logic [31:0]             step;
  } job_t;

  typedef enum logic [2:0] {
    SegmentBotf,
    SegmentAotf,
    SegmentPacket,  // header and data are put together here
    SegmentRead,    // a packet that asks for data
    SegmentLoad,
    SegmentStore
  } segment_kind_e;

  // What is sent or moved at one go: a packet, or as many words.
  typedef struct packed {
    segment_kind_e    kind;
    logic [3:0]       wid;
    logic             own;              // of a command of the process; else an answer
    logic             last;             // the last one of its command
    logic             from_window;      // data in a Write Window
    logic [6:0]       window_word;      // there
    logic [7:0]       prefetch_word;    // of a load: where to
    dimmnet_packet_t  header;           // of AOTF: payload in the lower word
    dimmnet_reply_t   reply;            // of a read
    logic             patterned;        // a pattern follows header or reply
    dimmnet_pattern_t pattern;
    logic             listed;           // offsets follow, or go with a store
    logic [11:0]      list_word;        // in LLCM, where they are
    logic             list_odd;         // the only one is in the upper half
    logic             reply_patterned;
    dimmnet_pattern_t reply_pattern;
    job_t             job;              // of a store
    logic [6:0]       data_words;       // words of data
  } segment_t;

  // A command or a read in one form.
  typedef struct packed {
    dimmnet_op_e     op;             // an answer is a put
    dimmnet_access_e local_access;
    dimmnet_access_e remote_access;
    dimmnet_memory_e local_memory;
    dimmnet_memory_e remote_memory;
    logic            status;
    logic [3:0]      wid;            // the peer's
    logic [15:0]     lid;
    logic [7:0]      tag;
    logic [19:0]     words;
    logic [31:0]     local_word;
    logic [31:0]     remote_word;
    shape_t          local_shape;
    shape_t          remote_shape;
  } transfer_t;

  // How far a transfer is. Elements are words if nothing in it has a pattern.
  typedef struct packed {
    logic [19:0] left;         // elements
    logic [19:0] done;         // elements
    logic [31:0] local_word;
    logic [31:0] remote_word;
  } progress_t;

  // Words that hold so many offsets of 32 bits.
  function automatic logic [6:0] list_words(logic [6:0] count);
    return (count + 7'd1) >> 1;
  endfunction

  // What the privileged page counts, each a pulse.
  typedef struct packed {
    logic pgid;
    logic malformed;
    logic bounds;
    logic busy;
  } events_t;

  // The same of all parts in one cycle.
  typedef struct packed {
    logic [1:0] pgid;
    logic [1:0] malformed;
    logic [1:0] bounds;
    logic [1:0] status;
    logic [1:0] busy;
    logic [1:0] received;
  } counts_t;

endpackage
