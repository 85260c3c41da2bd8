// SPDX-License-Identifier: Apache-2.0
//
// The symbols and blocks on the lanes of a link. Bit 0 of a lane's word is on the wire first.
//
// 8b/10b, 32 bits a lane: symbols of 10 bits, four a cycle. A data word is four D symbols. A word of
// another kind is a K symbol that names the kind and four D symbols. Pad symbols fill up a cycle before
// a skip set, which always begins at the first of the four: comma, number, its complement, lane.
//
// 64b/66b, 64 bits a lane: a block a cycle, two bits of header and 64 scrambled ones. A data word is a
// data block. A word of another kind is a control block: 8 bits of type, the low 56 bits of the word
// (those above are zero in the words of a link). A skip set is a control block: type, number, its
// complement, lane.

package velo_pcs_pkg;

  typedef enum logic {
    Coding8b10b  = 1'b0,
    Coding64b66b = 1'b1
  } coding_e;

  // Bits of a link word that a lane carries, and the bits of it on the wire.
  function automatic int unsigned lane_bits(coding_e coding);
    return coding == Coding8b10b ? 32 : 64;
  endfunction
  function automatic int unsigned wire_bits(coding_e coding);
    return coding == Coding8b10b ? 40 : 66;
  endfunction

  // K symbols, as the byte before coding.
  localparam logic [7:0] SymbolComma = 8'hBC;  // K28.5: first of a skip set, nowhere else
  localparam logic [7:0] SymbolPad = 8'h1C;  // K28.0: nothing
  localparam logic [7:0] SymbolCtl = 8'hFB;  // K27.7: a word of KindCtl follows
  localparam logic [7:0] SymbolEnd = 8'hFD;  // K29.7: KindEnd
  localparam logic [7:0] SymbolStart = 8'hFE;  // K30.7: KindStart

  // A decoded symbol. `bad`: not a symbol, or not with this disparity.
  typedef struct packed {
    logic       bad;
    logic       k;
    logic [7:0] value;
  } symbol_t;

  typedef symbol_t [3:0] group_t;  // [0] is on the wire first

  // Types of control blocks: four bits apart from each other, as in IEEE 802.3, clause 49.
  localparam logic [7:0] TypeSkip = 8'h1E;
  localparam logic [7:0] TypeCtl = 8'h78;
  localparam logic [7:0] TypeEnd = 8'h87;
  localparam logic [7:0] TypeStart = 8'h99;

  // Headers, bit 0 first on the wire.
  localparam logic [1:0] HeaderData = 2'b10;
  localparam logic [1:0] HeaderControl = 2'b01;

  // A descrambled block. `bad`: its header is none.
  typedef struct packed {
    logic        bad;
    logic        control;
    logic [63:0] payload;
  } block_t;

  // A skip set's number: sets are numbered, the same on all lanes of a link.
  typedef logic [7:0] number_t;

endpackage
