// SPDX-License-Identifier: Apache-2.0
#include "node.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "host_model.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

constexpr size_t kWordBytes = 8, kEntryBytes = 16;
constexpr unsigned kReadsUnderWay = 4; // DMA reads that memory has taken and not answered

void offer(Beat &beat, const std::deque<HostAccess> &queue, unsigned number, unsigned beat_bytes,
           uint64_t cycle)
{
    beat.valid = !queue.empty() && !queue.front().read && queue.front().from_cycle <= cycle;
    if (!beat.valid)
        return;
    const HostAccess &access = queue.front();
    beat.addr = access.addr;
    beat.len_bytes = static_cast<uint16_t>(access.words * sizeof(uint64_t));
    beat.eop = (number + 1) * beat_bytes >= beat.len_bytes;
    beat.data = 0;
    std::memcpy(&beat.data, reinterpret_cast<const uint8_t *>(access.line) + number * beat_bytes,
                beat_bytes);
}

void taken(std::deque<HostAccess> &queue, unsigned &number, bool eop)
{
    number++;
    if (eop) {
        number = 0;
        queue.pop_front();
    }
}

} // namespace

Node::Node(unsigned number, const Shape &shape, uint8_t *memory, uint64_t dma_cycles, bool is_shown)
    : AnyNode(number), beat_bytes_(shape.beat_bytes()), memory_(memory), dma_cycles_(dma_cycles),
      model_(make_model(shape, "node" + std::to_string(number), is_shown)),
      pages_(reinterpret_cast<uint64_t *>(memory + SIM_TABLE_AT))
{
}

bool Node::store_fits() const { return stores_.size() < kStoreQueueLines; }

uint64_t Node::next_access_cycle() const
{
    uint64_t next = UINT64_MAX;
    if (!stores_.empty())
        next = stores_.front().from_cycle;
    if (!controls_.empty())
        next = std::min(next, controls_.front().from_cycle);
    return next;
}

void Node::settle(uint64_t cycle, const PhyWords &in)
{
    drive(cycle);
    model_->settle(inputs_, in, outputs_);
}

void Node::edge(uint64_t cycle, PhyWords &out)
{
    model_->edge(out);
    collect(cycle);
}

void Node::drive(uint64_t cycle)
{
    offer(inputs_.host, stores_, store_beat_, beat_bytes_, cycle);
    offer(inputs_.control, controls_, control_beat_, beat_bytes_, cycle);
    inputs_.register_read = !controls_.empty() && controls_.front().read && !reading_ &&
                            controls_.front().from_cycle <= cycle;
    if (inputs_.register_read)
        inputs_.register_addr = controls_.front().addr;
    drive_dma_answer(cycle);
}

// The node's read sees all that the node wrote before it asked: these writes are in memory by then.
void Node::drive_dma_answer(uint64_t cycle)
{
    for (Read &read : reads_)
        if (!read.looked && read.asked_cycle + dma_cycles_ <= cycle) {
            publish_before(read.asked_cycle);
            look(read);
        }
    inputs_.dma_read_ready = reads_.size() < kReadsUnderWay;
    inputs_.answer = !reads_.empty() && reads_.front().asked_cycle + 2 * dma_cycles_ <= cycle;
    if (!inputs_.answer)
        return;
    const Read &read = reads_.front();
    inputs_.answer_tag = read.tag;
    inputs_.answer_error = read.refused;
    inputs_.answer_eop = read.refused || read_offset_ + beat_bytes_ >= read.len_bytes;
    std::memcpy(&inputs_.answer_data, read.bytes.data() + read_offset_, beat_bytes_);
}

void Node::look(Read &read)
{
    read.looked = true;
    read.bytes.resize(read.len_bytes + beat_bytes_); // whole beats
    if (read.addr < SIM_MEMORY_BYTES && read.addr + read.len_bytes <= SIM_MEMORY_BYTES)
        std::memcpy(read.bytes.data(), memory_ + read.addr, read.len_bytes);
    else if (!pages_.read(read.addr, read.bytes.data(), read.len_bytes))
        read.refused = true;
    lost_ += read.refused;
}

void Node::collect(uint64_t cycle)
{
    idle_ = false;
    if (inputs_.reset)
        return;
    if (inputs_.host.valid && outputs_.host_ready)
        taken(stores_, store_beat_, inputs_.host.eop);
    if (inputs_.control.valid && outputs_.control_ready)
        taken(controls_, control_beat_, inputs_.control.eop);
    if (inputs_.register_read && outputs_.register_ready)
        reading_ = true;
    if (outputs_.register_answer)
        take_register_answer(cycle);
    if (inputs_.answer && outputs_.answer_ready) {
        read_offset_ += beat_bytes_;
        if (inputs_.answer_eop) {
            read_offset_ = 0;
            reads_.pop_front();
        }
    }
    if (outputs_.dma_read && inputs_.dma_read_ready) {
        last_dma_cycle_ = cycle;
        reads_.push_back(
            {cycle, outputs_.dma_read_addr, outputs_.dma_read_len_bytes, outputs_.dma_read_tag});
        if (outputs_.dma_read_addr >= SIM_TABLE_AT && outputs_.dma_read_addr < SIM_MEMORY_BYTES)
            pages_.look_up(outputs_.dma_read_addr - SIM_TABLE_AT);
    }
    if (outputs_.dma_write.valid) {
        last_dma_cycle_ = cycle;
        take_dma_write(cycle);
    }
    idle_ = !inputs_.host.valid && !inputs_.control.valid && !inputs_.register_read && !reading_ &&
            !outputs_.register_answer && reads_.empty() && !outputs_.dma_write.valid;
}

void Node::take_register_answer(uint64_t cycle)
{
    answer_ |= outputs_.register_data << (8 * beat_bytes_ * answer_beats_++);
    if (answer_beats_ * beat_bytes_ < kWordBytes)
        return;
    register_answers.push_back({controls_.front().reader, cycle, answer_});
    controls_.pop_front();
    reading_ = false;
    answer_ = answer_beats_ = 0;
}

// A reader never sees half of an aligned word: bytes are kept until the word is whole.
void Node::take_dma_write(uint64_t cycle)
{
    const Beat &beat = outputs_.dma_write;
    unsigned from = dma_beat_++ * beat_bytes_;
    for (unsigned i = 0; i < beat_bytes_ && from + i < beat.len_bytes; i++)
        dma_bytes_.push_back(static_cast<uint8_t>(beat.data >> (8 * i)));
    uint64_t end = beat.addr + std::min<unsigned>(from + beat_bytes_, beat.len_bytes);
    if (end % kWordBytes == 0 || beat.eop)
        flush_dma(cycle, end - dma_bytes_.size());
    if (beat.eop)
        dma_beat_ = 0;
}

void Node::flush_dma(uint64_t cycle, uint64_t addr)
{
    for (size_t done = 0; done < dma_bytes_.size();) {
        size_t bytes = std::min(dma_bytes_.size() - done, kWordBytes - (addr + done) % kWordBytes);
        Write write = {cycle, addr + done, static_cast<unsigned>(bytes), 0};
        std::memcpy(&write.data, dma_bytes_.data() + done, bytes);
        writes_.push_back(write);
        if (bytes == kWordBytes)
            note_arrival(cycle, write.addr, write.data);
        done += bytes;
    }
    dma_bytes_.clear();
}

void Node::note_arrival(uint64_t cycle, uint64_t addr, uint64_t word)
{
    if (addr < SIM_QUEUES_AT) {
        if (addr % VELO_LINE_BYTES == 0 && velo_header_valid(word))
            arrivals.push_back({number(), static_cast<unsigned>(addr / SIM_RING_BYTES), cycle, word,
                                written_word(addr + kWordBytes), false});
    } else if (addr < SIM_TABLE_AT && addr % kEntryBytes == 0 &&
               velo_rma_notification_valid(word)) {
        auto context = static_cast<unsigned>((addr - SIM_QUEUES_AT) / SIM_QUEUE_BYTES);
        arrivals.push_back({number(), context, cycle, word, 0, true});
    }
}

// The last word that the node has written there, be it in memory or on its way.
uint64_t Node::written_word(uint64_t addr) const
{
    auto write = std::find_if(writes_.rbegin(), writes_.rend(),
                              [&](const Write &one) { return one.addr == addr; });
    if (write != writes_.rend())
        return write->data;
    uint64_t word = 0;
    if (addr + sizeof word <= SIM_MEMORY_BYTES)
        std::memcpy(&word, memory_ + addr, sizeof word);
    return word;
}

void Node::publish_before(uint64_t cycle)
{
    while (!writes_.empty() && writes_.front().cycle < cycle) {
        if (writes_.front().addr >= SIM_FRAMES_AT) {
            put_run(cycle);
        } else {
            put_word(writes_.front());
            writes_.pop_front();
        }
    }
}

// Writes that follow each other in one page need one system call.
void Node::put_run(uint64_t cycle)
{
    uint64_t addr = writes_.front().addr;
    std::vector<uint8_t> bytes;
    while (!writes_.empty() && writes_.front().cycle < cycle &&
           writes_.front().addr == addr + bytes.size() &&
           writes_.front().addr / SIM_PAGE_BYTES == addr / SIM_PAGE_BYTES) {
        const Write &write = writes_.front();
        const auto *data = reinterpret_cast<const uint8_t *>(&write.data);
        bytes.insert(bytes.end(), data, data + write.bytes);
        writes_.pop_front();
    }
    lost_ += !pages_.write(addr, bytes.data(), bytes.size());
}

void Node::put_word(const Write &write)
{
    if (write.addr + write.bytes > SIM_MEMORY_BYTES) {
        lost_++; // a ring or page that nobody here has set up
        return;
    }
    if (write.bytes != sizeof(uint64_t)) {
        std::memcpy(memory_ + write.addr, &write.data, write.bytes);
        return;
    }
    auto *word = reinterpret_cast<uint64_t *>(memory_ + write.addr);
    std::atomic_ref(*word).store(write.data, std::memory_order_release);
}

void Node::empty_ring(unsigned context)
{
    std::memset(memory_ + uint64_t{context} * SIM_RING_BYTES, 0, SIM_RING_BYTES);
}

void Node::empty_queue(unsigned context)
{
    std::memset(memory_ + SIM_QUEUES_AT + uint64_t{context} * SIM_QUEUE_BYTES, 0, SIM_QUEUE_BYTES);
}

} // namespace sim
