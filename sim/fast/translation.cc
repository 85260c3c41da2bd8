// SPDX-License-Identifier: Apache-2.0
#include "translation.h"

#include <cstring>
#include <utility>

#include "velo/spec.h"

namespace sim
{

namespace
{

// spec/velo_regs.rdl, `pages`
constexpr uint64_t kTableEnable = 1 << 8, kTableBits = 31;
constexpr uint64_t kTableBase = (uint64_t{1} << 48) - (1 << 12);
constexpr uint64_t kPageNumberEnd = uint64_t{1} << 24;

uint64_t page_of(uint64_t address) { return address / rma::kPageBytes; }

} // namespace

void Translation::set_table(uint64_t value)
{
    table_ = value;
    lines_.assign(lines_.size(), Line());
}

void Translation::ask(Client client, uint64_t cycle, const Request &request, Answered answered)
{
    asked_[client] = {request, std::move(answered)};
    if (!busy_)
        take_turn(cycle);
}

bool Translation::in_table(const Request &request) const
{
    uint64_t page = page_of(request.address);
    return (table_ & kTableEnable) && page < kPageNumberEnd &&
           page < uint64_t{1} << (table_ & kTableBits);
}

void Translation::take_turn(uint64_t cycle)
{
    if (drop_due_)
        drop(cycle);
    unsigned tried = 0;
    while (tried < kClients && !asked_[turn_].answered) {
        turn_ = (turn_ + 1) % kClients;
        tried++;
    }
    if (tried == kClients)
        return;
    auto client = static_cast<Client>(turn_);
    turn_ = (turn_ + 1) % kClients;
    busy_ = true;
    const Request &request = asked_[client].request;
    uint64_t page = page_of(request.address);
    const Line &line = lines_[page % lines_.size()];
    bool is_hit = line.is_valid && line.page == page;
    if (is_hit || !in_table(request)) {
        uint64_t entry = is_hit ? line.entry : 0;
        timer_.at(cycle + rma::kAtuHit, [=, this](uint64_t now) { judge(now, client, entry); });
        return;
    }
    timer_.at(cycle + rma::kAtuMissToAsk, [=, this](uint64_t now) {
        uint64_t at = (table_ & kTableBase) + page * sizeof(uint64_t);
        dma_.read(now, at, sizeof(uint64_t), [=, this](uint64_t came, Dma::Bytes bytes) {
            std::optional<uint64_t> entry;
            if (!bytes.empty())
                std::memcpy(&entry.emplace(), bytes.data(), sizeof *entry);
            if (entry && velo_registered_page_rights(*entry) != 0)
                lines_[page % lines_.size()] = {true, static_cast<uint32_t>(page), *entry};
            // An error is one beat.
            timer_.at(came + rma::kAtuMissToEnd - (entry ? 0 : 1),
                      [=, this](uint64_t end) { judge(end, client, entry); });
        });
    });
}

void Translation::judge(uint64_t cycle, Client client, std::optional<uint64_t> entry)
{
    busy_ = false;
    Asked asked = std::exchange(asked_[client], {});
    uint8_t error = verdict(asked.request, entry);
    uint64_t address = 0;
    if (error == VELO_ERROR_NONE) {
        open_[client]++;
        address = velo_registered_page_frame(entry.value_or(0)) * rma::kPageBytes +
                  asked.request.address % rma::kPageBytes;
    }
    asked.answered(cycle, {error, address});
    if (!busy_)
        take_turn(cycle);
}

uint8_t Translation::verdict(const Request &request, std::optional<uint64_t> entry) const
{
    if (!in_table(request))
        return VELO_ERROR_UNREGISTERED;
    if (!entry)
        return VELO_ERROR_HOST;
    uint8_t rights = velo_registered_page_rights(*entry);
    if (rights == 0)
        return VELO_ERROR_UNREGISTERED;
    if (request.address % rma::kPageBytes + request.count > rma::kPageBytes)
        return VELO_ERROR_OVERSIZE;
    bool is_peers = !velo_registered_page_one_peer(*entry) || request.is_own ||
                    velo_registered_page_peer(*entry) == request.peer;
    bool may = velo_registered_page_ctx(*entry) == request.context &&
               (request.rights & ~rights) == 0 && is_peers;
    return may ? VELO_ERROR_NONE : VELO_ERROR_RIGHT;
}

// ----- deregistration

void Translation::invalidate(uint64_t cycle, uint32_t page)
{
    if (dropping_)
        return;
    dropping_ = drop_due_ = true;
    drop_page_ = page;
    if (!busy_)
        take_turn(cycle);
}

// Accesses that were granted before may still be under way.
void Translation::drop(uint64_t cycle)
{
    drop_due_ = false;
    lines_[drop_page_ % lines_.size()].is_valid = false;
    waited_ = open_;
    end_drop(cycle);
}

void Translation::release(Client client, uint64_t cycle)
{
    open_[client]--;
    if (!dropping_ || drop_due_ || waited_[client] == 0)
        return;
    waited_[client]--;
    end_drop(cycle);
}

// It is over when what they wrote has left, too.
void Translation::end_drop(uint64_t cycle)
{
    if (waited_ != std::array<unsigned, kClients>{})
        return;
    timer_.at(std::max(cycle, dma_.left_cycle(cycle + 1)), [this](uint64_t) { dropping_ = false; });
}

} // namespace sim
