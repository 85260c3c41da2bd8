// SPDX-License-Identifier: Apache-2.0
#include "client.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "velo/spec.h"

namespace client
{

namespace
{

constexpr uint64_t kRegReadPointers = 0x8100000; // spec/velo_regs.rdl
constexpr useconds_t kBarrierLookUs = 200;

void futex(uint32_t *word, int op, uint32_t value)
{
    timespec second = {1, 0};
    (void)syscall(SYS_futex, word, op, value, &second, nullptr, 0);
}

sim_area *map_area()
{
    const char *path = getenv("VELO_SIM");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        fail("no cluster");
    void *base = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file, 0);
    close(file);
    if (base == MAP_FAILED)
        fail("the cluster's file cannot be mapped");
    auto *area = static_cast<sim_area *>(base);
    if (area->magic != SIM_AREA_MAGIC || area->version != SIM_AREA_VERSION)
        fail("not a cluster's file");
    return area;
}

sim_area *the_area()
{
    static sim_area *const area = map_area();
    return area;
}

} // namespace

void fail(const std::string &why)
{
    std::fprintf(stderr, "client %d: %s\n", getpid(), why.c_str());
    std::exit(1);
}

const sim_area &Channel::area() { return *the_area(); }

Channel::Channel(uint64_t rank, bool repeatable)
{
    auto *channels = reinterpret_cast<sim_channel *>(the_area() + 1);
    std::atomic_ref end(the_area()->claimed_end);
    for (unsigned c = 0; c < the_area()->channels && !channel_; c++) {
        uint32_t free = SIM_TURN_FREE;
        if (!std::atomic_ref(channels[c].turn).compare_exchange_strong(free, SIM_TURN_PROCESS))
            continue;
        channel_ = &channels[c];
        for (uint32_t seen = end; seen <= c && !end.compare_exchange_weak(seen, c + 1);)
            ;
        std::atomic_ref(the_area()->claims)++;
    }
    if (!channel_)
        fail("no channel is free");
    channel_->pid = getpid();
    channel_->tid = static_cast<int32_t>(syscall(SYS_gettid));
    channel_->call.time_ps = 0;
    if (sim_attach(channel_, rank, repeatable) != SIM_OK)
        fail("not attached");
}

Channel::~Channel() { sim_detach(channel_); }

void Channel::sleep_until(uint64_t end_ps)
{
    if (sim_sleep(channel_, end_ps) != SIM_OK)
        fail("no sleep");
}

unsigned Channel::open(unsigned node, unsigned context)
{
    uint64_t given = context, opened = 0;
    if (sim_port_open(channel_, node, &given, &opened) != SIM_OK)
        fail("no port");
    return static_cast<unsigned>(given);
}

void Channel::close(unsigned node, unsigned context)
{
    if (sim_port_close(channel_, node, context) != SIM_OK)
        fail("not closed");
}

int Channel::try_send(unsigned node, unsigned context, unsigned to_node, unsigned to_context,
                      unsigned words, uint64_t value)
{
    uint64_t len = 8 * (words - 1);
    uint64_t line[8] = {velo_header_pack(0, 0, static_cast<uint16_t>(len), 0, 0)};
    for (unsigned i = 1; i < words; i++)
        line[i] = value + i - 1;
    uint64_t address =
        velo_address_pack(0, static_cast<uint8_t>(words - 1), static_cast<uint8_t>(to_context),
                          static_cast<uint8_t>(to_node));
    return sim_store(channel_, node,
                     velo_window_pack(static_cast<uint32_t>(address), static_cast<uint8_t>(context),
                                      VELO_UNIT_VELO),
                     line, words);
}

void Channel::send(unsigned node, unsigned context, unsigned to_node, unsigned to_context,
                   unsigned words, uint64_t value)
{
    charge_ps(area().call_ps + area().copy_ps);
    while (try_send(node, context, to_node, to_context, words, value) == SIM_AGAIN)
        charge_ps(area().poll_ps);
}

const uint64_t *Channel::slot(unsigned node, unsigned context) const
{
    const auto *memory = reinterpret_cast<const uint8_t *>(the_area()) + area().memory_at +
                         node * area().memory_bytes + uint64_t{context} * SIM_RING_BYTES;
    return reinterpret_cast<const uint64_t *>(memory + head_ % SIM_RING_SLOTS * 64);
}

uint64_t Channel::header(unsigned node, unsigned context) const
{
    uint64_t word = std::atomic_ref(*const_cast<uint64_t *>(slot(node, context))).load();
    return velo_header_valid(word) && velo_header_seq(word) == (head_ & 0xFFFF) ? word : 0;
}

int Channel::poll(uint64_t deadline_ps)
{
    return sim_poll(channel_, &arrivals_, deadline_ps, area().poll_ps);
}

int Channel::look() { return sim_look(channel_, &arrivals_); }

uint64_t Channel::receive(unsigned node, unsigned context)
{
    charge_ps(area().call_ps);
    while (!header(node, context)) {
        poll();
        charge_ps(area().poll_ps);
    }
    uint64_t value = slot(node, context)[1];
    charge_ps(area().copy_ps);
    head_++;
    if (head_ % 64 == 0) // The sender needs room.
        sim_register_write(channel_, node, kRegReadPointers + (uint64_t{context} << 12),
                           head_ & 0xFFFF);
    return value;
}

void Channel::open_queue(unsigned node, unsigned context)
{
    if (sim_queue_open(channel_, node, context) != SIM_OK)
        fail("no notification queue");
}

uint32_t Channel::enter(unsigned node, unsigned context, void *memory, uint64_t bytes,
                        unsigned rights)
{
    uint64_t word = velo_registered_page_pack(0, static_cast<uint8_t>(rights), 0, 0, 0);
    uint64_t first_page = 0;
    if (sim_memory_enter(channel_, node, context, reinterpret_cast<uint64_t>(memory), bytes, word,
                         &first_page) != SIM_OK)
        fail("no pages");
    return static_cast<uint32_t>(first_page);
}

void Channel::post(unsigned node, unsigned context, uint64_t word0, uint64_t local, uint64_t remote,
                   uint64_t compare, uint64_t add)
{
    const uint64_t words[] = {word0, local, remote, compare, add};
    bool update = velo_rma_descriptor_op(word0) == VELO_RMA_OP_FETCH_COMPARE_ADD;
    uint64_t address = velo_window_pack(0, static_cast<uint8_t>(context), VELO_UNIT_RMA);
    while (sim_store(channel_, node, address, words, update ? 5 : 3) == SIM_AGAIN)
        charge_ps(area().poll_ps);
}

uint64_t Channel::notification(unsigned node, unsigned context)
{
    uint64_t at = area().memory_at + node * area().memory_bytes + SIM_QUEUES_AT +
                  uint64_t{context} * SIM_QUEUE_BYTES + queue_head_ % SIM_QUEUE_ENTRIES * 16;
    auto *word = reinterpret_cast<uint64_t *>(reinterpret_cast<uint8_t *>(the_area()) + at);
    while (!velo_rma_notification_valid(std::atomic_ref(*word).load()))
        sim_poll(channel_, &arrivals_, SIM_NEVER, 1);
    queue_head_++;
    return std::atomic_ref(*word).exchange(0);
}

void Channel::barrier(const std::string &path, unsigned parties)
{
    sim_outside(channel_, barriers_ + 1);
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, "x", 1) != 1)
        fail("barrier");
    barriers_++;
    struct stat status;
    while (fstat(file, &status) == 0 && status.st_size < off_t{parties} * barriers_)
        usleep(kBarrierLookUs);
    ::close(file);
}

} // namespace client

int sim_submit(sim_channel *channel, sim_op op)
{
    sim_area *area = client::the_area();
    channel->call.op = op;
    std::atomic_ref turn(channel->turn);
    turn.store(SIM_TURN_CALL);
    std::atomic_ref(area->calls).fetch_add(1);
    client::futex(&area->calls, FUTEX_WAKE, 1);
    while (turn.load() == SIM_TURN_CALL) {
        if (std::atomic_ref(area->ended).load())
            client::fail("the cluster has ended");
        client::futex(&channel->turn, FUTEX_WAIT, SIM_TURN_CALL);
    }
    return channel->call.status;
}
