// SPDX-License-Identifier: Apache-2.0
//
// The words between two link ports. A PHY word is DataWidth bits and a kind (two flags).
//
// A frame is a control word (CtlStart), 1 to FrameWords data words, and an end word with the CRC-32C
// of all of them: two words of overhead. A packet is cut into frames of FrameWords words, the last
// one shorter. Control words use the low 32 bits, bits above are zero. CtlIdle and CtlInit stand
// anywhere, also inside a frame, and have a CRC of their own, which is short: they count when they
// come twice running. A CtlStart is covered by its frame's CRC.

package velo_link_pkg;

  localparam int unsigned VcWidth = 3;
  localparam int unsigned SeqWidth = 6;
  localparam int unsigned CountWidth = 8;  // credits, modulo 2**CountWidth; up to 127 units

  typedef logic [VcWidth-1:0] vc_t;
  typedef logic [SeqWidth-1:0] seq_t;
  typedef logic [CountWidth-1:0] count_t;

  typedef enum logic [1:0] {
    KindData = 2'd0,
    KindCtl  = 2'd1,
    KindEnd  = 2'd2,  // end of a frame, the packet goes on in a later one
    KindLast = 2'd3   // end of a frame and of the packet
  } kind_e;

  typedef enum logic [1:0] {
    CtlIdle  = 2'd0,  // its upper bit belongs to the status
    CtlStart = 2'd1,
    CtlInit  = 2'd3
  } ctl_e;

  // Piggy-backed on every CtlStart and CtlIdle word. All fields are states, not events: losing or
  // repeating one does no harm.
  typedef struct packed {
    count_t freed;  // units freed since reset in the channel `vc`
    vc_t    vc;
    seq_t   ack;    // next sequence number that the sender of this word expects
    logic   echo;   // the last `nak` that the sender of this word has obeyed
    logic   nak;    // changes when the sender of this word asks for retransmission from `ack` on
  } status_t;

  typedef struct packed {
    logic    reserved;
    seq_t    seq;
    logic    sop;       // the frame begins a packet
    vc_t     vc;
    status_t status;
    ctl_e    ctl;
  } start_t;

  localparam int unsigned CtlCrcWidth = 12;
  typedef logic [CtlCrcWidth-1:0] ctl_crc_t;

  typedef struct packed {
    ctl_crc_t crc;
    status_t  status;
    logic     ctl;
  } idle_t;

  // The abilities of a port; two ports work together only if they agree.
  typedef struct packed {
    logic [1:0]            version;
    logic [1:0]            width;    // DataWidth / 64: 0, 1, 2
    vc_t                   last_vc;  // number of virtual channels minus one
    logic [1:0]            mtu;      // 64, 128, 256 or 512 bytes
    logic [CountWidth-2:0] credits;  // units that each virtual channel's buffer holds
  } ability_t;

  typedef struct packed {
    ctl_crc_t crc;
    logic     seen;     // the sender has seen the other side's CtlInit
    logic     fresh;    // the sender knows of nothing exchanged since its reset
    ability_t ability;
    ctl_e     ctl;
  } init_t;

  // Why a link does not come up.
  typedef enum logic [2:0] {
    RefuseNone    = 3'd0,
    RefuseVersion = 3'd1,
    RefuseWidth   = 3'd2,  // data path widths differ
    RefuseVcs     = 3'd3,  // numbers of virtual channels differ
    RefuseMtu     = 3'd4,  // network MTUs differ
    RefuseCredits = 3'd5,  // a buffer over there does not hold the longest packet
    RefuseRestart = 3'd6   // one side was reset and forgot what was under way
  } refuse_e;

endpackage
