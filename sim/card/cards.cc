// SPDX-License-Identifier: Apache-2.0
#include "cards.h"

#include <csignal>
#include <cstring>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace sim::card
{

namespace
{

constexpr uint64_t kSplits = 0xCA4D; // random numbers of their own
constexpr int kStop = -1;
constexpr long kSoonNs = 1000000; // until the next look at a line that waits for its rest

} // namespace

Cards::Cards(const std::map<unsigned, std::string> &sockets, Hardware &hardware,
             const std::map<unsigned, Function *> &functions, unsigned split_one_in, uint64_t seed)
    : hardware_(hardware)
{
    for (const auto &[node, path] : sockets)
        cards_.push_back(std::make_unique<Card>(path, hardware, *functions.at(node), split_one_in,
                                                Random(seed, kSplits + node)));
    watching_.assign(cards_.size(), -1);
}

Cards::~Cards()
{
    if (!watcher_.joinable())
        return;
    (void)eventfd_write(stop_.number(), 1);
    watcher_.join();
}

void Cards::serve()
{
    for (auto &card : cards_)
        card->serve();
    if (watched_)
        update_watch();
}

bool Cards::has_work() const
{
    for (const auto &card : cards_)
        if (card->has_work())
            return true;
    return false;
}

bool Cards::holds_line() const
{
    for (const auto &card : cards_)
        if (card->holds_line())
            return true;
    return false;
}

void Cards::run(const std::function<bool()> &ended)
{
    // Signals come while it waits, so that none comes between a look and the wait.
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    std::vector<pollfd> polls;
    while (!ended()) {
        // Not as soon as nothing has come for long: a card gives up what it waits for only after a
        // time, for which a guest waits, too.
        bool rests = hardware_.is_quiet();
        polls.clear();
        for (const auto &card : cards_)
            polls.push_back(card->waits_for());
        const timespec at_once = {0, 0}, soon = {0, kSoonNs};
        bool holds = holds_line();
        int ready = ppoll(polls.data(), polls.size(),
                          !rests || has_work() ? &at_once
                          : holds              ? &soon
                                               : nullptr,
                          &before);
        if (ready > 0 || holds || has_work())
            serve();
        for (unsigned i = 0; i < kStepsAtATime && !hardware_.is_quiet() && !(i > 0 && has_work());
             i++)
            hardware_.step(hardware_.cycle() + 1);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

void Cards::watch(const std::function<void()> &ring)
{
    watched_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    stop_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = kStop;
    epoll_ctl(watched_.number(), EPOLL_CTL_ADD, stop_.number(), &event);
    update_watch();
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); // signals are the other thread's
    watcher_ = std::thread([file = watched_.number(), ring] {
        for (;;) {
            epoll_event came = {};
            if (epoll_wait(file, &came, 1, -1) < 1)
                continue;
            if (came.data.fd == kStop)
                return;
            ring();
        }
    });
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

// Each socket is told once when something comes: serve() takes all that there is.
void Cards::update_watch()
{
    for (size_t i = 0; i < cards_.size(); i++) {
        int file = cards_[i]->waits_for().fd;
        if (file == watching_[i])
            continue;
        watching_[i] = file;
        epoll_event event = {};
        event.events = EPOLLIN | EPOLLET;
        event.data.fd = file;
        epoll_ctl(watched_.number(), EPOLL_CTL_ADD, file, &event);
    }
}

CardTotals Cards::totals() const
{
    CardTotals sum;
    for (const auto &card : cards_) {
        const CardTotals &one = card->totals();
        sum.stores += one.stores;
        sum.packets += one.packets;
        sum.loads += one.loads;
        sum.interrupts += one.interrupts;
        sum.resets += one.resets;
        sum.lost += one.lost;
    }
    return sum;
}

} // namespace sim::card
