// SPDX-License-Identifier: Apache-2.0
//
// The messages of a run, each with its source, target and time: patterns at a load, or a trace.

#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "params.h"
#include "random.h"
#include "topology.h"

namespace tlm
{

struct Message {
    Cycle born = 0;
    uint32_t to = 0;
    uint32_t bytes = 0;
    uint16_t words = 0; // not a message but a packet of so many words, which goes as it is
};

constexpr Cycle kNever = UINT64_MAX;
constexpr uint32_t kNoTarget = UINT32_MAX;

class Traffic
{
  public:
    virtual ~Traffic() = default;
    // The time at which the source's next message is born, kNever if there is none.
    virtual Cycle next_born(unsigned source) const = 0;
    // That message, which is under way now; then there is another.
    virtual Message take(unsigned source, Cycle now) = 0;
    // No further messages.
    virtual void stop() {}
};

enum class Pattern { Uniform, Neighbour, Transpose, Complement, HotSpot, AllToAll };

// Throws std::invalid_argument.
Pattern read_pattern(const std::string &name);

struct PatternOptions {
    Pattern pattern = Pattern::Uniform;
    double load = 0.1; // words offered to a host port in a cycle
    unsigned bytes = 8;
    unsigned hot_node = 0;
    double hot_share = 0.2; // of all messages; the rest is uniform
    uint64_t seed = 1;
};

// Each node sends at random times, a Poisson process. Nodes that a pattern maps to themselves are
// silent.
std::unique_ptr<Traffic> make_pattern(const PatternOptions &options, const Topology &topology,
                                      const Params &params);

// Flows that have nothing to do with a hot node but for links that its traffic uses, too.
struct VictimOptions {
    unsigned hot_node = 0;
    unsigned victims = 0; // flows, each from a node of its own; 0: one for 32 nodes
    unsigned senders = 0; // that send to the hot node as fast as they can; 0: all other nodes
    uint32_t from = kNoTarget, to = kNoTarget; // the only victim, if it is not to be chosen
    bool is_hot = true;                        // do they send?
    double load = 0.2; // of each victim, words offered in a cycle, a Poisson process
    unsigned bytes = 8;
    uint64_t seed = 1;
};

// `flows`: how many victims there are. Throws std::invalid_argument.
std::unique_ptr<Traffic> make_victims(const VictimOptions &options, const Topology &topology,
                                      const Params &params, unsigned &flows);

// Lines `time_ps source target bytes`, in any order; empty ones and those that begin with # do not
// count. A message is not born before all earlier ones of its source have gone. Throws
// std::runtime_error, with the number of the line.
std::unique_ptr<Traffic> read_trace(std::istream &in, unsigned nodes, double clock_mhz);

// A single message.
std::unique_ptr<Traffic> make_single(unsigned from, unsigned to, unsigned bytes);

} // namespace tlm
