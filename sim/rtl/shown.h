// SPDX-License-Identifier: Apache-2.0
//
// All models of a waveform share one context, and only they have it.

#pragma once

#include <verilated.h>

namespace sim
{

inline VerilatedContext &shown_context()
{
    static VerilatedContext context;
#ifdef SIM_WAVES
    context.traceEverOn(true);
#endif
    return context;
}

} // namespace sim
