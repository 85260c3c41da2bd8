// SPDX-License-Identifier: Apache-2.0
//
// What benches are told on their command line: numbers that are numbers, options that have a value.

#pragma once

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace bench
{

[[noreturn]] inline void fail(const std::string &what)
{
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
    std::exit(1);
}

// Decimal, octal or hexadecimal as in C, without a sign, and no larger than the type holds; a bool
// is 0 or 1.
template <typename Number> Number number(const std::string &text)
{
    static_assert(std::numeric_limits<Number>::is_integer);
    char *end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
    const auto most = static_cast<unsigned long long>(std::numeric_limits<Number>::max());
    if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0])) || *end || errno ||
        value > most)
        fail("'" + text + "' is no number from 0 to " + std::to_string(most));
    return static_cast<Number>(value);
}

// How many of what is tried: one or more. A run that tries none has checked nothing.
template <typename Number> Number count(const std::string &text)
{
    const auto value = number<Number>(text);
    if (value == 0)
        fail("0 of them would check nothing");
    return value;
}

// A rate or a share: finite, not negative.
inline double real(const std::string &text)
{
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !std::isfinite(value) || value < 0)
        fail("'" + text + "' is no finite number from 0 on");
    return value;
}

// The options from argument `first` on: a name and a value each.
inline std::vector<std::pair<std::string, std::string>> options_of(int argc, char **argv, int first)
{
    std::vector<std::pair<std::string, std::string>> options;
    for (int i = first; i < argc; i += 2) {
        if (i + 1 == argc)
            fail(std::string(argv[i]) + " has no value");
        options.emplace_back(argv[i], argv[i + 1]);
    }
    return options;
}

} // namespace bench
