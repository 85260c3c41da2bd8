// SPDX-License-Identifier: Apache-2.0
//
// The words between two link ports. A PHY word is DataWidth bits and a kind (two flags).
//
// A frame is a packet: a start word, its data words, and an end word with the CRC-32C of all of them.
// Words of control use the low 32 bits, bits above are zero. CtlIdle and CtlInit stand anywhere, also
// inside a frame, and have a CRC of their own, which is short: they count when they come twice running.
// A start word is covered by its frame's CRC, and, with the packet's first 64 bits, by a CRC-12 that it
// carries: what a packet is routed by is known to be right before the end of its frame has come.

package velo_link_pkg;

  localparam int unsigned VcWidth = 3;
  localparam int unsigned SeqWidth = 6;
  localparam int unsigned CountWidth = 8;  // credits, modulo 2**CountWidth; up to 127 units

  // What stands for a word of a packet that a memory has lost, as often as it fits: as the first word it is a route
  // to a link that is not there, however far it is shifted, so the packet is dropped and counted.
  localparam logic [3:0] VoidNibble = 4'h7;

  typedef logic [VcWidth-1:0] vc_t;
  typedef logic [SeqWidth-1:0] seq_t;
  typedef logic [CountWidth-1:0] count_t;

  typedef enum logic [1:0] {
    KindData  = 2'd0,
    KindCtl   = 2'd1,
    KindEnd   = 2'd2,  // end of a frame; if its packet is poisoned, the CRC is inverted
    KindStart = 2'd3
  } kind_e;

  // Bit 0 of a word of kind KindCtl.
  typedef enum logic {
    CtlIdle = 1'b0,
    CtlInit = 1'b1
  } ctl_e;

  // The state of a side's receiver, piggy-backed on its words: whole on idle words, one half on a start
  // word. All fields are states, not events: losing or repeating one does no harm.
  typedef struct packed {
    count_t freed;  // units freed since reset in the channel `vc`
    vc_t    vc;
    seq_t   ack;    // next sequence number that the sender of this word expects
    logic   echo;   // the last `nak` that the sender of this word has obeyed
    logic   nak;    // changes when the sender of this word asks for retransmission from `ack` on
  } status_t;

  // Of a half, `vc` says which one it is: a channel, or VcAck.
  typedef enum logic [VcWidth-1:0] {VcAck = '1} half_e;
  typedef struct packed {
    vc_t    vc;
    count_t value;  // `freed` of that channel; of VcAck, {ack, echo, nak}
  } half_t;

  localparam int unsigned CtlCrcWidth = 12;
  typedef enum logic [CtlCrcWidth-1:0] {CtlCrcPoly = 12'h80F} ctl_poly_e;
  typedef logic [CtlCrcWidth-1:0] ctl_crc_t;

  typedef struct packed {
    ctl_crc_t crc;   // of the packet's first 64 bits and the rest of this word
    half_t    half;
    seq_t     seq;
    vc_t      vc;
  } start_t;

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

  // A session is what two ports count from: sequence numbers and credits. It ends when one of them is reset.
  typedef enum logic [1:0] {
    SessionNone = 2'd0,  // reset, and has not heard yet that the other side's old session is over
    SessionNew  = 2'd1,  // both know of each other; this side has not been up in it
    SessionUsed = 2'd2   // this side is up in it, or was
  } session_e;

  typedef struct packed {
    ctl_crc_t   crc;
    logic       seen;     // the sender has seen the other side's CtlInit and agrees
    logic [1:0] session;  // the sender's session_e
    ability_t   ability;
    logic       ctl;
  } init_t;

  // Why a link does not come up.
  typedef enum logic [2:0] {
    RefuseNone    = 3'd0,
    RefuseVersion = 3'd1,
    RefuseWidth   = 3'd2,  // data path widths differ
    RefuseVcs     = 3'd3,  // numbers of virtual channels differ
    RefuseMtu     = 3'd4,  // network MTUs differ
    RefuseCredits = 3'd5,  // a buffer over there does not hold the longest packet
    RefuseRestart = 3'd6   // this side was reset; the other one has not heard of it yet
  } refuse_e;

endpackage
