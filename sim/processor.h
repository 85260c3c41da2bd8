// SPDX-License-Identifier: Apache-2.0
//
// The processor that a whole job runs on: a turn that changes hands on one takes a few
// microseconds, between two ten times that.

#pragma once

namespace sim
{

// Pins this process, and whom it starts, to a processor that no other simulator of this machine has
// taken; if all are, to the one it is on. It is free again when the simulator ends, however it
// does.
void take_processor();

} // namespace sim
