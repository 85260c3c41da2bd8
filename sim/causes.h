// SPDX-License-Identifier: Apache-2.0
//
// Why a run need not repeat itself, in words.

#pragma once

#include <cstdint>
#include <string>

#include "../spec/sim_channel.h"

namespace sim
{

// `rank`: UINT32_MAX: of none. `what`: as the one who reported it says.
std::string cause_sentence(sim_cause cause, uint32_t rank, const std::string &what);

// All causes as a table, for the reference.
std::string cause_table();

} // namespace sim
