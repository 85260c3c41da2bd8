// SPDX-License-Identifier: Apache-2.0
//
// The cycles of the RMA unit on a path of 32 bits, each with the RTL that it is counted in. None is
// fitted to a result; sim/test compares whole operations with the RTL, to the cycle.

#pragma once

#include <cstdint>

namespace sim::rma
{

// --- descriptors (velo_rma_intake.sv, velo_rma_requester.sv) ---
// First beat of the host's store to `StJudge`, beside the beats: crossbar, the name before them,
// two of the queue, the last beat taken.
constexpr unsigned kStoreToJudge = 4;
constexpr unsigned kName = 1; // of a descriptor that waited: `StName` before its beats
// `StJudge` to the first packet: of an operation that is one packet; of one that is cut.
constexpr unsigned kJudgeToWhole = 2, kJudgeToCut = 5;
// A packet taken by velo_rma_emit to the next one of the operation (`StNext`, velo_rma_fragment).
constexpr unsigned kNextPacket = 6;
constexpr unsigned kQueueBeats = 512, kDescriptorBeatsMax = 10; // QueueBeats, MaxBeats

// --- packets (velo_rma_emit.sv, velo_rma_take.sv) ---
constexpr unsigned kHeadWords = 8;       // header and command
constexpr unsigned kTakenToFirst = 1;    // a job taken to its first word
constexpr unsigned kHeadToJob = 9;       // a packet's first word at the unit to `StJob`
constexpr unsigned kFragmentBytes = 448; // velo_rma_fragment.sv
constexpr unsigned kPageBytes = 4096;

// --- writing what came (velo_rma_completer.sv) ---
constexpr unsigned kJobToTranslate = 2; // and to `StOutcome`, where there are no data
constexpr unsigned kAnswerToWrite = 1;
constexpr unsigned kOutcome = 1;    // last beat to `StOutcome`, and from there on
constexpr unsigned kDoneToHead = 1; // `StDone` to the next packet's first word

// --- gets and updates that wait at their requester (velo_rma_pending.sv) ---
constexpr unsigned kPendingAsks = 16, kAsksPerNode = 5; // Entries, PerNode
constexpr unsigned kPlaceToPacket = 2; // `busy_i` or `ended_i` to `ask_ready_o`: a register each

// --- and at their target (velo_rma_accept.sv, velo_rma_asks.sv) ---
constexpr unsigned kKeptToHead = 1; // to the next packet's first word
constexpr unsigned kKeptToJob = 4;  // count, `StLoad` of two rows, `StJob`
constexpr unsigned kDoneToJob = 3;  // of one that was kept meanwhile: its first row is read already
constexpr unsigned kOperandsRow = 1;
constexpr unsigned kOperandBeats = 4;

// --- answering them (velo_rma_responder.sv) ---
constexpr unsigned kJobToDrain = 1;
constexpr unsigned kDrainToCut = 5; // to the read, or to the packet where nothing is read

// --- updates (velo_rma_responder.sv) ---
constexpr unsigned kResultToAdd = 5; // `StOld`, `StCompare`, `StAdd`
constexpr unsigned kAddToNext = 1;   // to the write, or to the packet
constexpr unsigned kWrittenToLand = 2,
                   kLandToPacket = 1; // last beat to `StLand`, and from there on

// --- outcomes of puts (velo_rma_reply.sv) ---
constexpr unsigned kHold = 2; // a reply taken, or its writes gone, to its first word

// --- reading (velo_rma_reader.sv, velo_rma_mux.sv, crossbar) ---
constexpr unsigned kAnswerToAsk = 1;
constexpr unsigned kAskToHost = 2; // turn, crossbar
constexpr unsigned kReadTurn = 2;  // from one read to the next
constexpr unsigned kHostToUnit = 1;
constexpr unsigned kResultToPacket = 1;

// --- writing (velo_rma_mux.sv, velo_rma_host.sv, crossbar) ---
constexpr unsigned kTurn = 1;        // a write offered to its first beat
constexpr unsigned kBeatToHost = 2;  // FIFO, crossbar
constexpr unsigned kWriteBuffer = 4; // beats between the writer and a host port that is in use

// --- translation (velo_atu.sv, velo_atu_cache.sv) ---
constexpr unsigned kAtuHit = 5;       // request to answer
constexpr unsigned kAtuMissToAsk = 4; // request to `StAsk`
constexpr unsigned kAtuMissToEnd = 3; // first beat of the entry to the answer
constexpr unsigned kAtuLinesLog2 = 6;

// --- notifications (velo_rma_notifier.sv) ---
constexpr unsigned kNotifyToRoom = 5; // request to `StRoom`
constexpr unsigned kRoomToWrite = 1;  // and to `StDone`, if it is refused
constexpr unsigned kBetweenWords = 1, kNotified = 1;
constexpr unsigned kPointerToRoom = 3; // velo_contexts.sv

} // namespace sim::rma
