// SPDX-License-Identifier: Apache-2.0
//
// The processor of this machine that virtual time passes on: a turn that changes hands on one takes
// a few microseconds, between two ten times that. Who lives in real time, as a job's launcher does,
// may run anywhere.

#pragma once

namespace sim
{

class Processor
{
  public:
    // One that no other simulator of this machine has taken; if all are, the one we are on. It is
    // free again when we end, however we do. `pin`: else bring() does nothing.
    explicit Processor(bool pin);
    // A thread runs there from now on, and whom it starts. 0: the caller.
    void bring(int tid) const;

  private:
    int number_ = -1;
};

} // namespace sim
