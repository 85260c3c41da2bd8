// SPDX-License-Identifier: Apache-2.0
//
// All cards of a cluster. Guests are not in virtual time: their accesses come at the cluster's
// present, and the cluster goes on while anything is under way.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../hardware.h"
#include "card.h"

namespace sim::card
{

class Cards
{
  public:
    // `sockets`: their names by node; `functions`: those of the same nodes. Throws
    // std::runtime_error if a socket cannot be made.
    Cards(const std::map<unsigned, std::string> &sockets, Hardware &hardware,
          const std::map<unsigned, Function *> &functions, unsigned split_one_in, uint64_t seed);
    ~Cards();
    Cards(const Cards &) = delete;
    Cards &operator=(const Cards &) = delete;

    bool any() const { return !cards_.empty(); }
    // Takes what has come over the sockets, and sends what is due. Never waits.
    void serve();
    // A guest waits for the next cycles: a few of them between two calls of serve().
    static constexpr unsigned kStepsAtATime = 32;
    bool has_work() const;
    bool holds_line() const;
    // Goes on until `ended`, which a signal brings about. Sleeps while the cluster rests.
    void run(const std::function<bool()> &ended);
    // From now on `ring` is called, by another thread, when something has come over a socket.
    void watch(const std::function<void()> &ring);
    CardTotals totals() const;

  private:
    Hardware &hardware_;
    std::vector<std::unique_ptr<Card>> cards_;
    Descriptor watched_, stop_; // epoll, of all sockets; ends the thread
    std::vector<int> watching_; // by card: the socket that is watched
    std::thread watcher_;

    void update_watch();
};

} // namespace sim::card
