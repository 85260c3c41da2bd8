// SPDX-License-Identifier: Apache-2.0
//
// What an InfiniBand packet of SWIF looks like: headers as the InfiniBand Architecture Specification, volume 1, has
// them (chapters 7 to 9), the highest bit of the first byte first. On a word of the network the first byte is in
// bits 7:0, so a header passes `bytes_turned` on its way.
//
//   LRH 8 bytes, BTH 12, [AETH 4 of an acknowledgement | 16 to 512 of lines], ICRC 4, VCRC 2
//
// A packet of data is a SEND Only of a reliable connection, an acknowledgement its ACK. A connection is between two
// boards; the number of its queue pair at one of them is QpBase and the other one's LID.

package dimmnet_swif_pkg;

  typedef struct packed {
    logic [3:0]  vl;
    logic [3:0]  lver;
    logic [3:0]  sl;
    logic [1:0]  zero_18;
    logic [1:0]  lnh;
    logic [15:0] dlid;
    logic [4:0]  zero_43;
    logic [10:0] pkt_len;  // words of 32 bits, all but the VCRC
    logic [15:0] slid;
  } lrh_t;

  // The first eight bytes of a BTH, and the other four.
  typedef struct packed {
    logic [7:0]  op;
    logic        se;
    logic        m;
    logic [1:0]  pad;
    logic [3:0]  tver;
    logic [15:0] p_key;
    logic [7:0]  resv8a;
    logic [23:0] dest_qp;
  } bth_t;
  typedef struct packed {
    logic        ack_req;
    logic [6:0]  zero_95;
    logic [23:0] psn;
  } bth_tail_t;

  typedef struct packed {
    logic [7:0]  syndrome;
    logic [23:0] msn;
  } aeth_t;

  parameter logic [1:0] LnhBth = 2'd2;
  parameter logic [15:0] PKey = 16'hFFFF;
  parameter logic [7:0] QpBase = 8'h01;  // queue pairs 0 and 1 are the subnet manager's

  typedef enum logic [7:0] {
    OpSend = 8'h04,
    OpAck  = 8'h11
  } op_e;

  typedef enum logic [7:0] {
    SyndromeAck = 8'h1F,  // without a count of credits
    SyndromeRnr = 8'h20,  // not ready for it; the sender waits for a time of its own
    SyndromeNak = 8'h60   // PSN sequence error
  } syndrome_e;

  // PktLen: LRH, BTH and ICRC; two more for each line; one for an AETH.
  parameter int unsigned LenBare = 6;
  parameter int unsigned LenAck = 7;
  // Words of 64 bits beside the lines: LRH, BTH, what headers and ICRC add up to, VCRC.
  parameter int unsigned ExtraWords = 4;
  parameter int unsigned AckWords = 4;
  parameter int unsigned DataBytes = 2;  // of the last word: VCRC
  parameter int unsigned AckBytes = 6;  // ICRC and VCRC

  // The ICRC leaves out what a switch may change: these bits are ones for it.
  parameter logic [63:0] LrhMask = 64'h0000_0000_0000_00F0;  // VL
  parameter logic [63:0] BthMask = 64'h0000_00FF_0000_0000;  // resv8a

  parameter int unsigned IcrcWidth = 32;
  parameter logic [31:0] IcrcPoly = 32'h04C1_1DB7;
  parameter logic [31:0] IcrcRest = 32'hC704_DD7B;  // after a packet and its right ICRC
  parameter int unsigned VcrcWidth = 16;
  parameter logic [15:0] VcrcPoly = 16'h100B;
  typedef logic [IcrcWidth-1:0] icrc_t;
  typedef logic [VcrcWidth-1:0] vcrc_t;

  // A CRC takes the lowest bit of each byte first, so that of the whole word; its own highest coefficient goes first.
  function automatic logic [63:0] bits_turned(logic [63:0] word);
    for (int i = 0; i < 64; i++) bits_turned[i] = word[63-i];
  endfunction
  function automatic icrc_t icrc_field(icrc_t rest);
    for (int i = 0; i < int'(IcrcWidth); i++) icrc_field[i] = !rest[int'(IcrcWidth)-1-i];
  endfunction
  function automatic vcrc_t vcrc_field(vcrc_t rest);
    for (int i = 0; i < int'(VcrcWidth); i++) vcrc_field[i] = !rest[int'(VcrcWidth)-1-i];
  endfunction

  function automatic logic [63:0] bytes_turned(logic [63:0] word);
    for (int i = 0; i < 8; i++) bytes_turned[8*i+:8] = word[56-8*i+:8];
  endfunction

  // An acknowledgement, as it is judged and as it is sent.
  typedef enum logic [1:0] {
    AckTaken,
    AckNotReady,
    AckSequence
  } ack_e;

  // How often it happened, modulo 2^32, since reset.
  typedef struct packed {
    logic [31:0] gave_up;      // a peer after RetryLimit repetitions in vain
    logic [31:0] unreachable;  // packets of CoreLogic for a peer that is none, failed or stopped
    logic [31:0] repeated;     // sequences begun anew
    logic [31:0] no_room;      // packets for which there was no room
    logic [31:0] duplicate;    // packets that had come already
    logic [31:0] ahead;        // packets that came before an earlier one
    logic [31:0] foreign;      // good packets that are not for this board, or from no peer
    logic [31:0] malformed;    // packets whose form is none of the two
    logic [31:0] crc;          // packets with a wrong ICRC or VCRC
  } counts_t;

endpackage
