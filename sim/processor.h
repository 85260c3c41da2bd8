// SPDX-License-Identifier: Apache-2.0
//
// The processor of this machine on which all threads of the cluster run. A turn that changes hands
// on one processor takes a few microseconds, between two processors ten times that. A process that
// lives in real time, as a job's launcher does, may run anywhere.

#pragma once

namespace sim
{

class Processor
{
  public:
    // Takes a processor that no other simulator of this machine has taken; if all are taken, the
    // one we are on. It is free again when we end, however we end. Without `pin` bring() does
    // nothing.
    explicit Processor(bool pin);
    // The thread, and every thread that it starts, runs there from now on. 0: the calling thread.
    void bring(int tid) const;

  private:
    int number_ = -1;
};

} // namespace sim
