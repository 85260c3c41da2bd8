// SPDX-License-Identifier: Apache-2.0
//
// The command line of velo-sim.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "../spec/sim_channel.h"
#include "cluster_options.h"

namespace sim
{

// The part of a run whose signals are shown.
struct WaveOptions {
    std::string file;
    double from_us = 0, end_us = 0;
};

struct Options {
    std::string topology_file, area_file, result_file, record_file, capture_file;
    std::string model = "rtl"; // of the hardware
    std::string host;          // what the host model's times are called
    bool progress = false, pin = true;
    unsigned boards = 0;
    unsigned threads_max = SIM_CHANNELS_DEFAULT; // threads and processes of all ranks
    WaveOptions wave;
    ClusterOptions cluster;
    std::map<unsigned, std::string> cards; // sockets, by node
    std::vector<std::string> command;      // empty: there are cards only
};

// Where there is nothing to run, prints help or the error and ends the process.
Options parse_options(int argc, char **argv);

} // namespace sim
