// SPDX-License-Identifier: Apache-2.0
//
// Host bridge: between the host port's addresses, lengths and tags and the crossbar's headers.
// Combinational; the streams' valid, ready and data go past it.
//
// All accesses of a host are to the node's window, with any address; index 0 is the host's way to the
// units, 1 the way to the registers. A read of host memory goes out with a tag of twelve bits: the port
// that asked, and its own tag. An answer with the tag of a port that is not among `Readers`, a bit each,
// was not asked for and goes to port `Nobody`, which swallows it.
//
// Source: VELO paper, section 3 (the bridge behind the host interface).

module velo_host_bridge
  import htax_pkg::*;
#(
    parameter logic [2**PortBits-1:0] Readers = '0,
    parameter int unsigned Nobody = 1
) (
    input  logic         [AddrBits-1:0] host_write_addr_i,
    input  logic         [         9:0] host_write_len_bytes_i,
    input  logic         [AddrBits-1:0] control_write_addr_i,
    input  logic         [         9:0] control_write_len_bytes_i,
    output htax_header_t [         1:0] write_header_o,

    input  logic         [AddrBits-1:0] host_read_addr_i,
    input  logic         [         9:0] host_read_len_bytes_i,
    input  logic         [         7:0] host_read_tag_i,
    input  logic         [AddrBits-1:0] control_read_addr_i,
    input  logic         [         9:0] control_read_len_bytes_i,
    input  logic         [         7:0] control_read_tag_i,
    output htax_header_t [         1:0] read_header_o,

    input  htax_header_t [1:0] answer_header_i,
    output logic               host_answer_error_o,
    output logic         [7:0] host_answer_tag_o,
    output logic               control_answer_error_o,
    output logic         [7:0] control_answer_tag_o,

    input  htax_header_t                dma_header_i,
    output logic         [AddrBits-1:0] dma_write_addr_o,
    output logic         [         9:0] dma_write_len_bytes_o,

    input  htax_header_t                dma_read_header_i,
    output logic         [AddrBits-1:0] dma_read_addr_o,
    output logic         [         9:0] dma_read_len_bytes_o,
    output logic         [        11:0] dma_read_tag_o,

    input  logic                dma_answer_error_i,
    input  logic         [11:0] dma_answer_tag_i,
    output htax_header_t        memory_header_o
);

  function automatic htax_header_t in_window(logic [AddrBits-1:0] addr, logic [9:0] len_bytes,
                                             logic [7:0] tag);
    htax_header_t header;
    header           = '0;
    header.window    = 1'b1;
    header.addr      = addr;
    header.len_bytes = len_bytes;
    header.tag       = tag;
    return header;
  endfunction

  assign write_header_o[0] = in_window(host_write_addr_i, host_write_len_bytes_i, '0);
  assign write_header_o[1] = in_window(control_write_addr_i, control_write_len_bytes_i, '0);
  assign read_header_o[0] = in_window(host_read_addr_i, host_read_len_bytes_i, host_read_tag_i);
  assign read_header_o[1] = in_window(
      control_read_addr_i, control_read_len_bytes_i, control_read_tag_i
  );

  assign host_answer_error_o = answer_header_i[0].error;
  assign host_answer_tag_o = answer_header_i[0].tag;
  assign control_answer_error_o = answer_header_i[1].error;
  assign control_answer_tag_o = answer_header_i[1].tag;

  assign dma_write_addr_o = dma_header_i.addr;
  assign dma_write_len_bytes_o = dma_header_i.len_bytes;
  assign dma_read_addr_o = dma_read_header_i.addr;
  assign dma_read_len_bytes_o = dma_read_header_i.len_bytes;
  assign dma_read_tag_o = {dma_read_header_i.port, dma_read_header_i.tag};

  logic [PortBits-1:0] asker;
  assign asker = dma_answer_tag_i[11:8];
  always_comb begin
    memory_header_o       = '0;
    memory_header_o.error = dma_answer_error_i;
    memory_header_o.tag   = dma_answer_tag_i[7:0];
    memory_header_o.port  = Readers[asker] ? asker : PortBits'(Nobody);
  end

  logic unused;
  assign unused = ^{answer_header_i, dma_header_i, dma_read_header_i};

endmodule
