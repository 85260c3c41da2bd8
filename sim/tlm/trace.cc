// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "traffic.h"

namespace tlm
{

namespace
{

class Trace final : public Traffic
{
  public:
    explicit Trace(std::vector<std::vector<Message>> messages)
        : messages_(std::move(messages)), next_(messages_.size())
    {
        for (auto &list : messages_)
            std::stable_sort(list.begin(), list.end(),
                             [](const Message &a, const Message &b) { return a.born < b.born; });
    }

    Cycle next_born(unsigned node) const override
    {
        return next_[node] < messages_[node].size() ? messages_[node][next_[node]].born : kNever;
    }
    Message take(unsigned node, Cycle /*now*/) override { return messages_[node][next_[node]++]; }

  private:
    std::vector<std::vector<Message>> messages_; // by source
    std::vector<size_t> next_;
};

[[noreturn]] void refuse(uint64_t line, const std::string &why)
{
    throw std::runtime_error("trace, line " + std::to_string(line) + ": " + why);
}

} // namespace

std::unique_ptr<Traffic> read_trace(std::istream &in, unsigned nodes, double clock_mhz)
{
    constexpr uint64_t kMostBytes = uint64_t{1} << 31;
    std::vector<std::vector<Message>> messages(nodes);
    std::string text, rest;
    for (uint64_t number = 1; std::getline(in, text); number++) {
        size_t first = text.find_first_not_of(" \t\r");
        if (first == std::string::npos || text[first] == '#')
            continue;
        std::istringstream line(text);
        uint64_t time_ps = 0, source = 0, target = 0, bytes = 0;
        if (text.find('-') != std::string::npos ||
            !(line >> time_ps >> source >> target >> bytes) || line >> rest)
            refuse(number, "not of the form 'time_ps source target bytes'");
        if (source >= nodes || target >= nodes)
            refuse(number, "there is no such node");
        if (bytes > kMostBytes)
            refuse(number, "a message of more than 2 GiB");
        // In the first clock edge that is not before it.
        auto born = static_cast<Cycle>(std::ceil(static_cast<double>(time_ps) * clock_mhz * 1e-6));
        messages[source].push_back(
            {born, static_cast<uint32_t>(target), static_cast<uint32_t>(bytes)});
    }
    return std::make_unique<Trace>(std::move(messages));
}

} // namespace tlm
