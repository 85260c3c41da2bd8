// SPDX-License-Identifier: Apache-2.0
//
// The checks of test.h for results of the C++ API, and ports to try it with.

#pragma once

#include <chrono>

#include <velo/velo.hpp>

#include "test.h"

using velo::Status;
using namespace std::chrono_literals;

inline constexpr velo::Timeout patience{TEST_PATIENCE_NS};

#define CHECK_IS(result, expected)                                                                 \
    CHECK_STATUS(static_cast<int>((result).status()), static_cast<int>(expected))
#define CHECK_GOOD(result) CHECK_IS(result, Status::ok)

// A port of node 0 in the domain of the test; zeros ask for the defaults.
inline velo::Port open_port(int vpid, uint32_t flags = 0, uint32_t depth_slots = 0,
                            uint32_t conns_max = 0)
{
    velo::PortAttr attr;
    attr.vpid = vpid;
    attr.flags = flags;
    attr.depth_slots = depth_slots;
    attr.conns_max = conns_max;
    auto port = velo::Port::open(attr);
    CHECK_GOOD(port);
    return *std::move(port);
}

inline velo::Connection connect_to(velo::Port &from, velo_id_t to)
{
    auto connection = from.connect(to, patience);
    CHECK_GOOD(connection);
    return *std::move(connection);
}
