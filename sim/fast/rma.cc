// SPDX-License-Identifier: Apache-2.0
#include "rma.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "../process.h"
#include "rma_cycles.h"
#include "scope.h"
#include "velo/spec.h"

namespace sim
{

namespace
{

constexpr unsigned kBeatBytes = 4, kBeatsAWord = 2, kWordBytes = 8;
constexpr unsigned kEntryBytes = 16; // of a notification queue
constexpr uint8_t kMayRead = 1, kMayWrite = 2, kMayUpdate = 4;

unsigned beats_of(size_t bytes)
{
    return static_cast<unsigned>((bytes + kBeatBytes - 1) / kBeatBytes);
}

// velo_rma_fragment.sv: whole lines, within a page at both ends.
unsigned cut(uint64_t read_address, uint64_t write_address, uint32_t left)
{
    uint64_t later = std::max(read_address % rma::kPageBytes, write_address % rma::kPageBytes);
    uint64_t limit = std::min<uint64_t>(rma::kPageBytes - later, rma::kFragmentBytes);
    return static_cast<unsigned>(std::min<uint64_t>(left, limit));
}

bool is_update(const RmaPacket &packet)
{
    return packet.kind == VELO_PACKET_KIND_FETCH_COMPARE_ADD_REQUEST;
}

bool asks(const RmaPacket &packet)
{
    return packet.kind == VELO_PACKET_KIND_GET_REQUEST || is_update(packet);
}

} // namespace

unsigned RmaPacket::words() const
{
    size_t data_words = (data.size() + kWordBytes - 1) / kWordBytes;
    return rma::kHeadWords + static_cast<unsigned>(data_words) * kBeatsAWord;
}

FastRma::FastRma(unsigned node, const Names &names, HostSide &host, uint64_t dma_cycles,
                 RmaNode &hardware)
    : node_(node), names_(names), hardware_(hardware), dma_(host, dma_cycles, hardware),
      translation_(dma_, hardware), queues_(kEntryBytes),
      accept_{kRequests, Translation::kAccept, Dma::kAccept, kAccept, {}, {}},
      finish_{kResponses, Translation::kFinish, Dma::kFinish, kFinish, {}, {}}
{
    accept_.failures.resize(1U << (SIM_NAME_BITS - names.context_bits()));
    finish_.failures.resize(1U << (SIM_NAME_BITS - names.context_bits()));
}

// ----- packets out

void FastRma::emit(RmaClass which, uint64_t cycle, Packet packet,
                   std::function<void(uint64_t)> taken)
{
    Emitter &emitter = emitters_[which];
    auto begin = [this, which, cycle, taken = std::move(taken),
                  packet = std::make_shared<Packet>(std::move(packet))](uint64_t free) {
        uint64_t now = std::max(cycle, free), first = now + rma::kTakenToFirst;
        // The requester is told when all that was written has left.
        if (which == kCompletions)
            first = std::max(now + rma::kHold, dma_.left_cycle(now) + rma::kHold - 1);
        unsigned words = (*packet)->words();
        emitters_[which].busy = true;
        hardware_.send(which, first, std::move(*packet), [this, which, words](uint64_t went) {
            hardware_.at(went + words - 1, [this, which](uint64_t end) {
                emitters_[which].busy = false;
                if (auto next = std::exchange(emitters_[which].next, nullptr))
                    next(end);
            });
        });
        taken(now);
    };
    if (emitter.busy)
        emitter.next = std::move(begin);
    else
        begin(cycle);
}

// ----- descriptors

bool FastRma::has_room() const
{
    return queued_beats_ + rma::kDescriptorBeatsMax + 2 <= rma::kQueueBeats;
}

void FastRma::post(uint64_t cycle, uint8_t context, const uint64_t *words, unsigned count)
{
    Descriptor added;
    added.context = context;
    added.op = velo_rma_descriptor_op(words[0]);
    added.notify = velo_rma_descriptor_notify(words[0]);
    added.add_always = velo_rma_descriptor_add_always(words[0]);
    added.cookie = velo_rma_descriptor_cookie(words[0]);
    added.to = Names::of_fields(velo_rma_descriptor_dst_node(words[0]),
                                velo_rma_descriptor_dst_ctx(words[0]));
    added.len = velo_rma_descriptor_len(words[0]);
    added.local = words[1];
    added.remote = words[2];
    added.operands = {words[3], words[4]};
    added.beats = count * kBeatsAWord;
    added.judge_cycle = cycle + added.beats + rma::kStoreToJudge;
    descriptors_.push_back(added);
    queued_beats_ += added.beats + 1;
    if (!requesting_)
        next_descriptor(cycle);
}

void FastRma::next_descriptor(uint64_t cycle)
{
    requesting_ = !descriptors_.empty();
    if (!requesting_)
        return;
    const Descriptor &next = descriptors_.front();
    request_offset_ = 0;
    hardware_.at(std::max(cycle + rma::kName + next.beats, next.judge_cycle),
                 [this](uint64_t now) { judge(now); });
}

// The library posts nothing that the requester refuses; hardware.cc has looked at that.
void FastRma::judge(uint64_t cycle)
{
    const Descriptor &now = descriptors_.front();
    queued_beats_ -= now.beats + 1;
    hardware_.room_for_descriptors(cycle);
    bool is_immediate = now.op == VELO_RMA_OP_PUT_IMMEDIATE;
    bool crosses = is_immediate && now.remote % rma::kPageBytes + now.len > rma::kPageBytes;
    if (now.op == VELO_RMA_OP_PUT || crosses) {
        hardware_.at(cycle + rma::kJudgeToCut, [this](uint64_t then) { cut_request(then); });
        return;
    }
    Dma::Bytes value;
    for (unsigned i = 0; is_immediate && i < now.len; i++)
        value.push_back(static_cast<uint8_t>(now.local >> (8 * i)));
    if (now.op == VELO_RMA_OP_FETCH_COMPARE_ADD) {
        value.resize(sizeof now.operands);
        std::memcpy(value.data(), now.operands.data(), value.size());
    }
    send_request(cycle + rma::kJudgeToWhole, std::move(value), now.len);
}

void FastRma::cut_request(uint64_t cycle)
{
    const Descriptor &now = descriptors_.front();
    uint64_t local = now.local + request_offset_, remote = now.remote + request_offset_;
    uint32_t left = now.len - request_offset_;
    if (now.op != VELO_RMA_OP_PUT) { // The value is shifted past the bytes that went.
        unsigned count = cut(request_offset_, remote, left);
        Dma::Bytes value;
        for (unsigned i = request_offset_; i < request_offset_ + count; i++)
            value.push_back(static_cast<uint8_t>(now.local >> (8 * i)));
        send_request(cycle + request_offset_, std::move(value), count);
        return;
    }
    unsigned count = cut(local, remote, left);
    if (count == 0) {
        send_request(cycle, {}, 0);
        return;
    }
    auto us = names_.name(node_, now.context);
    read(Translation::kSource, cycle, {local, count, now.context, us, true, kMayRead}, false,
         [this, count](uint64_t then, Got got) {
             if (got.error == VELO_ERROR_NONE)
                 send_request(then + rma::kResultToPacket, std::move(got.bytes), count);
             else
                 refuse(then + rma::kResultToPacket, got.error);
         });
}

void FastRma::send_request(uint64_t cycle, Dma::Bytes data, unsigned count)
{
    static constexpr uint8_t kKinds[] = {0,
                                         VELO_PACKET_KIND_PUT,
                                         VELO_PACKET_KIND_GET_REQUEST,
                                         VELO_PACKET_KIND_PUT_IMMEDIATE,
                                         VELO_PACKET_KIND_FETCH_COMPARE_ADD_REQUEST,
                                         VELO_PACKET_KIND_NOTIFICATION};
    const Descriptor &now = descriptors_.front();
    auto packet = std::make_unique<RmaPacket>();
    packet->kind = kKinds[now.op];
    packet->op = now.op;
    packet->notify = now.notify;
    packet->add_always = now.add_always;
    packet->cookie = now.cookie;
    packet->from = names_.name(node_, now.context);
    packet->to = now.to;
    packet->len = now.len;
    packet->offset = request_offset_;
    packet->remote = now.remote;
    packet->local = now.local;
    packet->data = std::move(data);
    request_offset_ += count;
    if (asks(*packet)) {
        ask_ = {std::move(packet), cycle};
        try_to_ask(cycle);
        return;
    }
    emit(kRequests, cycle, std::move(packet), [this](uint64_t taken) { request_taken(taken); });
}

// A get or an update waits for a place, and all descriptors behind it.
void FastRma::try_to_ask(uint64_t cycle)
{
    if (!ask_.packet)
        return;
    unsigned node = names_.node(ask_.packet->to);
    if (!pending_.has_place(node))
        return;
    ask_.packet->number = pending_.open(node);
    emit(kRequests, std::max(cycle, ask_.cycle), std::move(ask_.packet),
         [this](uint64_t taken) { request_taken(taken); });
}

void FastRma::request_taken(uint64_t cycle)
{
    if (request_offset_ < descriptors_.front().len) {
        hardware_.at(cycle + rma::kNextPacket, [this](uint64_t then) { cut_request(then); });
        return;
    }
    descriptors_.pop_front();
    next_descriptor(cycle + 1);
}

void FastRma::refuse(uint64_t cycle, uint8_t error)
{
    hardware_.at(cycle, [this, error](uint64_t now) {
        const Descriptor &refused = descriptors_.front();
        RmaPacket about;
        about.op = refused.op;
        about.cookie = refused.cookie;
        about.error = error;
        notify(kSource, now, refused.context, about, refused.to, VELO_RMA_PLACE_ERROR,
               refused.local, [this](uint64_t then, uint8_t) {
                   descriptors_.pop_front();
                   next_descriptor(then + 1);
               });
    });
}

// ----- reads

void FastRma::read(Translation::Client client, uint64_t cycle, const Translation::Request &request,
                   bool keep, const std::function<void(uint64_t cycle, Got got)> &done)
{
    auto ask = [=, this, count = request.count](uint64_t cycle_asked, uint64_t address) {
        dma_.read(cycle_asked, address, count, [=, this](uint64_t came, Dma::Bytes bytes) {
            bool failed = bytes.empty();
            if (failed || !keep)
                hardware_.at(came + std::max(1U, beats_of(bytes.size())) - 1,
                             [=, this](uint64_t over) { translation_.release(client, over); });
            uint8_t error = failed ? VELO_ERROR_HOST : VELO_ERROR_NONE;
            done(came, {error, address, std::move(bytes)});
        });
    };
    translation_.ask(client, cycle, request, [=, this](uint64_t now, Translation::Answer answer) {
        if (answer.error != VELO_ERROR_NONE)
            done(now, {answer.error, 0, {}});
        else
            hardware_.at(now + rma::kAnswerToAsk,
                         [=](uint64_t asks) { ask(asks, answer.address); });
    });
}

// ----- packets in

void FastRma::came(RmaClass which, Packet packet, uint64_t first)
{
    hardware_.read(which, first, rma::kHeadWords, packet->data.empty());
    came_[which] = std::move(packet);
    hardware_.at(first + rma::kHeadToJob, [this, which](uint64_t now) { begin_job(which, now); });
}

void FastRma::begin_job(RmaClass which, uint64_t cycle)
{
    if (which == kCompletions) {
        Packet packet = std::move(came_[which]);
        bool failed = packet->error != VELO_ERROR_NONE;
        notify(kCompletion, cycle, names_.context(packet->to), *packet, packet->from,
               failed ? VELO_RMA_PLACE_ERROR : VELO_RMA_PLACE_REQUESTER, packet->local,
               [this, which](uint64_t now, uint8_t) { hardware_.took(which, now + 1); });
    } else if (asks(*came_[which])) {
        keep(cycle);
    } else {
        Completer &completer = which == kRequests ? accept_ : finish_;
        completer.job = {};
        completer.job.packet = std::move(came_[which]);
        if (which == kResponses)
            answered(cycle, completer.job.packet->number, false);
        complete(completer, cycle);
    }
}

void FastRma::complete(Completer &completer, uint64_t cycle)
{
    Job &job = completer.job;
    const RmaPacket &packet = *job.packet;
    bool answers = completer.which == kResponses;
    job.error = packet.error;
    job.is_last = packet.offset + packet.data.size() == packet.len || packet.error != 0 ||
                  packet.op == VELO_RMA_OP_NOTIFY;
    hardware_.at(cycle + rma::kJobToTranslate, [this, &completer, &packet, answers](uint64_t now) {
        if (packet.data.empty()) {
            outcome(completer, now);
            return;
        }
        uint64_t address = (answers ? packet.local : packet.remote) + packet.offset;
        translation_.ask(completer.client, now,
                         {address, static_cast<unsigned>(packet.data.size()),
                          names_.context(packet.to), packet.from, answers, kMayWrite},
                         [this, &completer](uint64_t then, Translation::Answer answer) {
                             completer.job.error = answer.error;
                             auto go_on = [this, &completer, answer](uint64_t next) {
                                 if (answer.error == VELO_ERROR_NONE)
                                     write_data(completer, next, answer.address);
                                 else
                                     outcome(completer, next);
                             };
                             hardware_.at(then + rma::kAnswerToWrite, go_on);
                         });
    });
}

void FastRma::write_data(Completer &completer, uint64_t cycle, uint64_t addr)
{
    Dma::Bytes data = std::move(completer.job.packet->data);
    unsigned beats = beats_of(data.size()), padding = beats % kBeatsAWord;
    completer.job.words_left = padding;
    dma_.write(completer.writer, cycle, addr, std::move(data),
               [this, &completer, beats, padding](uint64_t first, uint64_t last) {
                   hardware_.read(completer.which, first, beats, padding == 0);
                   hardware_.at(last, [this, &completer](uint64_t now) {
                       translation_.release(completer.client, now);
                   });
                   hardware_.at(last + rma::kOutcome,
                                [this, &completer](uint64_t now) { outcome(completer, now); });
               });
}

void FastRma::outcome(Completer &completer, uint64_t cycle)
{
    Job &job = completer.job;
    const RmaPacket &packet = *job.packet;
    if (!packet.data.empty()) // It was refused.
        job.words_left = packet.words() - rma::kHeadWords;
    uint8_t &failure = completer.failures[names_.node(packet.from)];
    if (packet.offset != 0 && failure != VELO_ERROR_NONE)
        job.error = failure;
    failure = job.error;

    bool answers = completer.which == kResponses, failed = job.error != VELO_ERROR_NONE;
    bool asks_us = packet.notify & (answers ? VELO_RMA_PLACE_REQUESTER : VELO_RMA_PLACE_COMPLETER);
    uint64_t next = cycle + rma::kOutcome;
    if (job.is_last && (answers ? failed || asks_us : !failed && asks_us)) {
        hardware_.at(next, [this, &completer](uint64_t now) { tell_here(completer, now); });
        return;
    }
    bool asks_reply = failed || packet.notify & VELO_RMA_PLACE_REQUESTER;
    if (job.is_last && !answers && asks_reply)
        tell_requester(completer, next);
    else
        end_job(completer, next);
}

void FastRma::tell_here(Completer &completer, uint64_t cycle)
{
    Job &job = completer.job;
    bool answers = completer.which == kResponses;
    job.packet->error = job.error;
    uint8_t place = !answers                       ? VELO_RMA_PLACE_COMPLETER
                    : job.error != VELO_ERROR_NONE ? VELO_RMA_PLACE_ERROR
                                                   : VELO_RMA_PLACE_REQUESTER;
    notify(completer.source, cycle, names_.context(job.packet->to), *job.packet, job.packet->from,
           place, answers ? job.packet->local : job.packet->remote,
           [this, &completer, answers](uint64_t now, uint8_t error) {
               if (error != VELO_ERROR_NONE)
                   completer.job.error = error;
               bool asks_reply = completer.job.packet->notify & VELO_RMA_PLACE_REQUESTER;
               if (!answers && (error != VELO_ERROR_NONE || asks_reply))
                   tell_requester(completer, now + 1);
               else
                   end_job(completer, now + 1);
           });
}

void FastRma::tell_requester(Completer &completer, uint64_t cycle)
{
    const RmaPacket &about = *completer.job.packet;
    auto reply = std::make_unique<RmaPacket>(about);
    reply->data.clear();
    reply->kind = VELO_PACKET_KIND_NOTIFICATION;
    reply->from = about.to;
    reply->to = about.from;
    reply->error = completer.job.error;
    emit(kCompletions, cycle, std::move(reply),
         [this, &completer](uint64_t taken) { end_job(completer, taken + 1); });
}

// In this cycle the completer is done with the packet. What nobody read of it is passed over.
void FastRma::end_job(Completer &completer, uint64_t cycle)
{
    unsigned left = completer.job.words_left;
    uint64_t next = cycle + rma::kDoneToHead;
    if (completer.which == kResponses && completer.job.is_last)
        answered(cycle, completer.job.packet->number, true);
    completer.job = {};
    if (left > 0)
        hardware_.read(completer.which, next, left, true);
    hardware_.took(completer.which, next + left);
}

// ----- gets and updates

// Of that operation a packet of the answer has come, or the last one is written.
void FastRma::answered(uint64_t cycle, uint8_t number, bool ends)
{
    hardware_.at(cycle + rma::kPlaceToPacket, [this, number, ends](uint64_t now) {
        if (ends)
            pending_.end(number);
        else
            pending_.begin(number);
        try_to_ask(now);
    });
}

// Others' requests are taken whatever the responder does, so what comes behind them passes them.
void FastRma::keep(uint64_t cycle)
{
    Packet packet = std::move(came_[kRequests]);
    uint64_t kept = cycle;
    if (is_update(*packet)) {
        hardware_.read(kRequests, cycle, rma::kOperandBeats, true);
        kept += rma::kOperandBeats - 1;
    }
    hardware_.took(kRequests, kept + rma::kKeptToHead);
    asks_.push_back({std::move(packet), kept});
    if (!asked_)
        next_ask(0);
}

// The last one was done in this cycle.
void FastRma::next_ask(uint64_t done)
{
    if (asks_.empty())
        return;
    uint64_t job = std::max(asks_.front().cycle + rma::kKeptToJob, done + rma::kDoneToJob);
    asked_ = std::move(asks_.front().packet);
    asks_.pop_front();
    if (is_update(*asked_))
        job += rma::kOperandsRow;
    hardware_.at(job, [this](uint64_t now) { serve(now); });
}

void FastRma::serve(uint64_t cycle)
{
    answer_offset_ = 0;
    // Memory is read when what was written before has left.
    uint64_t drained = std::max(cycle + rma::kJobToDrain, dma_.left_cycle(cycle));
    if (is_update(*asked_))
        hardware_.at(drained, [this](uint64_t now) { read_old(now); });
    else
        hardware_.at(drained + rma::kDrainToCut, [this](uint64_t now) { cut_answer(now); });
}

// An update begins when its answer can go.
void FastRma::read_old(uint64_t cycle)
{
    if (emitters_[kResponses].busy) {
        emitters_[kResponses].next = [this](uint64_t end) { read_old(end); };
        return;
    }
    hardware_.at(cycle + rma::kDrainToCut, [this](uint64_t now) {
        read(Translation::kServe, now,
             {asked_->remote, kWordBytes, names_.context(asked_->to), asked_->from, false,
              kMayUpdate},
             true, [this](uint64_t then, Got got) {
                 if (got.error != VELO_ERROR_NONE) {
                     send_answer(then + rma::kResultToPacket, std::move(got), asked_->len);
                     return;
                 }
                 hardware_.at(then + rma::kResultToAdd,
                              [this, got = std::move(got)](uint64_t adds) { update(adds, got); });
             });
    });
}

// The old word is answered when the new one has left.
void FastRma::update(uint64_t cycle, const Got &old)
{
    uint64_t word = 0, compare = 0, add = 0;
    std::memcpy(&word, old.bytes.data(), sizeof word);
    std::memcpy(&compare, asked_->data.data(), sizeof compare);
    std::memcpy(&add, asked_->data.data() + sizeof compare, sizeof add);
    if (!asked_->add_always && word != compare) {
        translation_.release(Translation::kServe, cycle);
        send_answer(cycle + rma::kAddToNext, old, asked_->len);
        return;
    }
    word += add;
    Dma::Bytes sum(sizeof word);
    std::memcpy(sum.data(), &word, sizeof word);
    hardware_.at(cycle + rma::kAddToNext, [=, this](uint64_t now) {
        dma_.write(Dma::kServe, now, old.addr, sum, [=, this](uint64_t, uint64_t last) {
            hardware_.at(
                last, [this](uint64_t then) { translation_.release(Translation::kServe, then); });
            uint64_t lands = std::max(last + rma::kWrittenToLand, dma_.left_cycle(last + 1));
            send_answer(lands + rma::kLandToPacket, old, asked_->len);
        });
    });
}

void FastRma::cut_answer(uint64_t cycle)
{
    uint64_t remote = asked_->remote + answer_offset_;
    unsigned count = cut(remote, asked_->local + answer_offset_, asked_->len - answer_offset_);
    if (count == 0) {
        send_answer(cycle, {}, 0);
        return;
    }
    read(Translation::kServe, cycle,
         {remote, count, names_.context(asked_->to), asked_->from, false, kMayRead}, false,
         [this, count](uint64_t now, Got got) {
             send_answer(now + rma::kResultToPacket, std::move(got), count);
         });
}

void FastRma::send_answer(uint64_t cycle, Got got, unsigned count)
{
    auto packet = std::make_unique<RmaPacket>(*asked_);
    packet->kind = packet->op == VELO_RMA_OP_GET ? VELO_PACKET_KIND_GET_RESPONSE
                                                 : VELO_PACKET_KIND_FETCH_COMPARE_ADD_RESPONSE;
    packet->from = asked_->to;
    packet->to = asked_->from;
    packet->offset = answer_offset_;
    packet->error = got.error;
    packet->data = std::move(got.bytes);
    bool failed = got.error != VELO_ERROR_NONE;
    answer_offset_ += count;
    emit(kResponses, cycle, std::move(packet), [this, failed](uint64_t taken) {
        if (!failed && answer_offset_ < asked_->len) {
            hardware_.at(taken + rma::kNextPacket, [this](uint64_t now) { cut_answer(now); });
        } else if (!failed && asked_->notify & VELO_RMA_PLACE_RESPONDER) {
            hardware_.at(taken + 1, [this](uint64_t now) {
                notify(kServe, now, names_.context(asked_->to), *asked_, asked_->from,
                       VELO_RMA_PLACE_RESPONDER, asked_->remote,
                       [this](uint64_t then, uint8_t) { end_answer(then); });
            });
        } else {
            end_answer(taken);
        }
    });
}

void FastRma::end_answer(uint64_t cycle)
{
    hardware_.at(cycle, [this](uint64_t now) {
        asked_ = nullptr;
        next_ask(now);
    });
}

// ----- notifications

void FastRma::notify(unsigned source, uint64_t cycle, uint8_t context, const RmaPacket &about,
                     uint16_t them, uint8_t place, uint64_t address, Told told)
{
    uint64_t word = velo_rma_notification_word0_pack(
        place, about.op, about.error, static_cast<uint8_t>(them),
        static_cast<uint8_t>(them >> SIM_CONTEXTS_LOG2),
        about.error == VELO_ERROR_NONE ? about.len : 0, about.cookie);
    notifications_[source] = {context, {word, address}, std::move(told)};
    if (!notifying_)
        next_notification(cycle);
}

void FastRma::next_notification(uint64_t cycle)
{
    for (unsigned tried = 0; tried < kSources && !notifying_; tried++) {
        std::optional<Notification> next = std::exchange(notifications_[notify_turn_], {});
        notify_turn_ = (notify_turn_ + 1) % kSources;
        notifying_ = next.has_value();
        if (next)
            notification_ = std::move(*next);
    }
    if (notifying_)
        hardware_.at(cycle + rma::kNotifyToRoom, [this](uint64_t now) { look_for_room(now); });
}

// A full queue stops the unit.
void FastRma::look_for_room(uint64_t cycle)
{
    unsigned context = notification_.context;
    waits_for_room_ = queues_.is_open(context) && queues_.is_full(context);
    if (waits_for_room_)
        return;
    bool is_open = queues_.is_open(context);
    hardware_.at(cycle + rma::kRoomToWrite, [this, is_open](uint64_t now) {
        if (is_open)
            write_entry(now);
        else
            end_notification(now, VELO_ERROR_CONTEXT);
    });
}

void FastRma::queue_changed(uint64_t cycle)
{
    if (!std::exchange(waits_for_room_, false))
        return;
    hardware_.at(cycle + rma::kPointerToRoom, [this](uint64_t now) { look_for_room(now); });
}

// The word that makes it valid goes last.
void FastRma::write_entry(uint64_t cycle)
{
    uint64_t slot = queues_.take(notification_.context).addr;
    auto write = [this](uint64_t when, uint64_t addr, uint64_t word, Dma::Begun begun) {
        const auto *bytes = reinterpret_cast<const uint8_t *>(&word);
        dma_.write(Dma::kNotifier, when, addr, {bytes, bytes + sizeof word}, std::move(begun));
    };
    write(cycle, slot + kWordBytes, notification_.entry[1], [=, this](uint64_t, uint64_t last) {
        hardware_.at(last + rma::kBetweenWords, [=, this](uint64_t then) {
            write(then, slot, notification_.entry[0], [this](uint64_t, uint64_t end) {
                hardware_.at(end + rma::kNotified,
                             [this](uint64_t done) { end_notification(done, VELO_ERROR_NONE); });
            });
        });
    });
}

void FastRma::end_notification(uint64_t cycle, uint8_t error)
{
    Told told = std::move(notification_.told);
    hardware_.at(cycle + 1, [this](uint64_t now) {
        notifying_ = false;
        next_notification(now);
    });
    told(cycle, error);
}

} // namespace sim
