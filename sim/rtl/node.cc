// SPDX-License-Identifier: Apache-2.0
#include "node.h"

#include <algorithm>
#include <cstring>

namespace sim
{

namespace
{

constexpr size_t kWordBytes = 8;
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

Node::Node(unsigned number, const Shape &shape, HostSide &host, uint64_t dma_cycles, bool is_shown)
    : AnyNode(number), host_(host), beat_bytes_(shape.beat_bytes()), dma_cycles_(dma_cycles),
      model_(make_model(shape, "node" + std::to_string(number), is_shown))
{
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
    offer(inputs_.host, host_.stores, store_beat_, beat_bytes_, cycle);
    offer(inputs_.control, host_.controls, control_beat_, beat_bytes_, cycle);
    inputs_.register_read = !host_.controls.empty() && host_.controls.front().read && !reading_ &&
                            host_.controls.front().from_cycle <= cycle;
    if (inputs_.register_read)
        inputs_.register_addr = host_.controls.front().addr;
    drive_dma_answer(cycle);
}

// The node's read sees all that the node wrote before it asked: these writes are in memory by then.
void Node::drive_dma_answer(uint64_t cycle)
{
    for (Read &read : reads_)
        if (!read.looked && read.asked_cycle + dma_cycles_ <= cycle) {
            host_.publish_before(read.asked_cycle);
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
    read.refused = !host_.read(read.addr, read.bytes.data(), read.len_bytes);
}

void Node::collect(uint64_t cycle)
{
    idle_ = false;
    if (inputs_.reset)
        return;
    if (inputs_.host.valid && outputs_.host_ready)
        taken(host_.stores, store_beat_, inputs_.host.eop);
    if (inputs_.control.valid && outputs_.control_ready)
        taken(host_.controls, control_beat_, inputs_.control.eop);
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
        host_.asked(outputs_.dma_read_addr);
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
    host_.register_answers.push_back({host_.controls.front().reader, cycle, answer_});
    host_.controls.pop_front();
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
    if (end % kWordBytes == 0 || beat.eop) {
        host_.write(cycle, end - dma_bytes_.size(), dma_bytes_.data(), dma_bytes_.size());
        dma_bytes_.clear();
    }
    if (beat.eop)
        dma_beat_ = 0;
}

} // namespace sim
