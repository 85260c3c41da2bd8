// SPDX-License-Identifier: Apache-2.0
//
// The buffer of a transceiver's reference clock, a primitive of 7-series FPGAs (Xilinx UG482): its ports, for tools
// that do not have it.

(* blackbox *)
module IBUFDS_GTE2 (
    output logic O,
    input logic CEB,
    input logic I,
    input logic IB
);
endmodule
