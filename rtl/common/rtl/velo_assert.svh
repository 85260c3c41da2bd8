// SPDX-License-Identifier: Apache-2.0
//
// The assertions of every block, in the one form that simulator, linter and prover all take: a
// boolean that holds in each cycle outside reset. `a |-> b` is written `!a || b`; "a cycle later"
// is written with a register that remembers.
//
// A module that uses these has a clock `clk_i` and a reset `rst_ni`.
//   VELO_ASSERT(name, holds)       the block's own promise
//   VELO_ASSUME(name, holds)       what its surroundings promise: an assertion, too, in a simulation and
//                                  inside a proof, where the surroundings are part of what is proven
//   VELO_COVER(name, happens)      a state that tests and proofs must be able to reach
//   VELO_ASSERT_KNOWN(name, value) no bit of it is unknown; for a simulator with four states, void for others
//   VELO_ASSERT_INIT(name, holds)  a rule for parameters, checked at elaboration
// The top of a proof is its surroundings: its file defines VELO_ASSUME_HERE before it includes this one,
// and its VELO_ASSUME is then what the proof takes for granted. Nothing else in a proof is.
// Synthesis (macro SYNTHESIS) keeps the rules for parameters and nothing else. Yosys' reader always
// defines SYNTHESIS; a proof therefore defines FORMAL, which wins, or it would prove nothing.

`ifndef VELO_ASSERT_SVH
`define VELO_ASSERT_SVH

`define VELO_ASSERT_INIT(Name, Holds) \
  if (!(Holds)) begin : gen_bad_``Name \
    $error(`"parameter rule broken: Name`"); \
  end

`ifdef FORMAL
`define VELO_CHECKS
`elsif SYNTHESIS
`else
`define VELO_CHECKS
`endif

`ifdef VELO_CHECKS

`define VELO_ASSERT(Name, Holds) \
  Name : assert property (@(posedge clk_i) disable iff (!rst_ni) (Holds));

`ifdef VELO_ASSUME_HERE
`define VELO_ASSUME(Name, Holds) \
  Name : assume property (@(posedge clk_i) disable iff (!rst_ni) (Holds));
`else
`define VELO_ASSUME(Name, Holds) `VELO_ASSERT(Name, Holds)
`endif

`define VELO_COVER(Name, Happens) \
  Name : cover property (@(posedge clk_i) disable iff (!rst_ni) (Happens));

`else

`define VELO_ASSERT(Name, Holds)
`define VELO_ASSUME(Name, Holds)
`define VELO_COVER(Name, Happens)

`endif

`ifdef FORMAL
`define VELO_ASSERT_KNOWN(Name, Value)
`elsif VERILATOR
`define VELO_ASSERT_KNOWN(Name, Value)
`elsif SYNTHESIS
`define VELO_ASSERT_KNOWN(Name, Value)
`else
`define VELO_ASSERT_KNOWN(Name, Value) `VELO_ASSERT(Name, !$isunknown(Value))
`endif
`endif
