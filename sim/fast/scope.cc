// SPDX-License-Identifier: Apache-2.0
#include "scope.h"

#include <algorithm>
#include <iterator>

namespace sim
{

namespace
{

enum class Level { kExact, kClose, kRefused };

struct Entry {
    Part part;
    Level level;
    const char *name;
    const char *note; // of a refused part: what asks for it
};

constexpr Entry kScope[] = {
    {Part::kMessages, Level::kExact, "messages of up to a line, with their payload",
     "where no two packets want the same thing at once; else as switches and links have it"},
    {Part::kStores, Level::kExact, "the host port: a word a cycle, and the lines that wait for it",
     "a line that the network holds back begins within a few cycles of the RTL's"},
    {Part::kRings, Level::kClose, "receive rings, closed and full ones",
     "a message that has waited for a full ring comes within a few cycles of the RTL's"},
    {Part::kSwitches, Level::kClose, "switches: queues, arbitration, credits, patience",
     "3 % of throughput at saturation, 2 % of mean latency, see sim/tlm"},
    {Part::kLinks, Level::kClose, "links: frames, words of status, cables",
     "without the limit of 28 packets under way, which cables of some 80 cycles reach"},
    {Part::kBringUp, Level::kExact, "the time until links are up",
     "with cables of up to 44 cycles; with longer ones virtual time begins earlier"},
    {Part::kRegisters, Level::kExact,
     "registers that the driver and the library use: rings, queues, their read pointers, pages, "
     "invalidate",
     "times of others are not modelled, so they are refused"},
    {Part::kRemoteMemory, Level::kClose,
     "remote memory: puts, gets, updates, notifications and their queues, address translation",
     "to the cycle for an operation alone; else as turns at units and host port have it"},
    {Part::kSplitLines, Level::kRefused, "lines that a host splits",
     "`--split-one-in`; a store of a part of a line"},
    {Part::kGroups, Level::kRefused, "multicast and barriers in hardware",
     "a message to a group; a barrier's registers"},
    {Part::kCongestion, Level::kRefused, "congestion management", "its register"},
    {Part::kWidths, Level::kRefused, "data paths of 64 and 128 bits", "`--width`"},
    {Part::kBitErrors, Level::kRefused, "bit errors and retransmission", "`--error-rate`"},
    {Part::kCards, Level::kRefused, "cards of guests", "`--card`"},
    {Part::kBoards, Level::kRefused, "boards of DIMMnet-2", "`--boards`"},
    {Part::kRecordings, Level::kRefused, "recordings", "`--record`"},
    {Part::kCaptures, Level::kRefused, "captures of frames", "`--capture`"},
    {Part::kWaveforms, Level::kRefused, "waveforms", "`--wave`"},
    {Part::kCustomUnit, Level::kRefused, "the custom unit", "a store to it"},
};

const Entry &entry(Part part)
{
    return *std::find_if(std::begin(kScope), std::end(kScope),
                         [&](const Entry &one) { return one.part == part; });
}

const char *level_name(Level level)
{
    switch (level) {
    case Level::kExact:
        return "to the cycle";
    case Level::kClose:
        return "close";
    default:
        return "refused";
    }
}

} // namespace

std::string why_refused(Part part)
{
    return std::string("the fast model does not have this: ") + entry(part).name +
           "; use --model rtl";
}

std::string scope_table()
{
    std::string table = "| part of the hardware | fast model | |\n| --- | --- | --- |\n";
    for (const Entry &one : kScope)
        table += std::string("| ") + one.name + " | " + level_name(one.level) + " | " + one.note +
                 (one.level == Level::kRefused ? ": “" + why_refused(one.part) + "” |\n" : " |\n");
    return table;
}

} // namespace sim
