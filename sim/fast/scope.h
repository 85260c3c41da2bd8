// SPDX-License-Identifier: Apache-2.0
//
// What the fast model has and what it lacks, in one table: refusals are made of it, `velo-sim
// --models` prints it, and docs/reference/simulator.md shows it (a test compares the two).

#pragma once

#include <string>

namespace sim
{

enum class Part {
    kMessages,
    kStores,
    kRings,
    kSwitches,
    kLinks,
    kBringUp,
    kRegisters,
    kRemoteMemory,
    kSplitLines,
    kGroups,
    kCongestion,
    kWidths,
    kBitErrors,
    kCards,
    kBoards,
    kRecordings,
    kCaptures,
    kWaveforms,
    kCustomUnit,
};

// Why the fast model refuses something that uses a part which it lacks: one sentence.
std::string why_refused(Part part);
// All parts, as a table in Markdown.
std::string scope_table();

} // namespace sim
