/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file sim_channel.h
 * @brief The interface of a process to the simulated cluster: one shared file, one channel a
 * thread.
 *
 * The simulator (sim/) creates the file `velo-sim.<session>` and names it in $VELO_SIM; the
 * library of the simulated cluster (sim/client) maps it. It holds this head, then the channels,
 * then the memory of each node, with its receive rings, its notification queues and its table of
 * registered pages:
 *
 *     struct sim_area | channels x struct sim_channel | node 0's memory | node 1's memory | ...
 *         | board 0's memory | board 1's memory | ...
 *
 * A thread claims a free channel and keeps it. It uses its node's hardware by calls: it fills in
 * `call`, gives it the turn SIM_TURN_CALL, raises `calls` and sleeps on `turn` until it is
 * SIM_TURN_PROCESS again. Between two calls the thread runs in no virtual time, except the time
 * that it adds to its own clock. The simulator answers a call when the hardware has come to the
 * caller's time, and lets no other thread go on before this one calls again. So a thread that reads
 * its node's memory right after a call sees it as it is at that very time, whatever the host does
 * meanwhile.
 *
 * A thread that starts another thread or a process first claims a channel for it, and the new one
 * takes it over. The simulator waits for the new one from then on, unless it sleeps or has not
 * called after some seconds.
 *
 * The first process of each rank of a job claims a channel before its program begins, and says so
 * in `begun`. Virtual time stands still until all ranks have.
 *
 * A cluster may also have boards of DIMMnet-2 (sim/boards), with a PC before each. A process
 * reaches a board's slot by calls; what it would load from LLCM stands in the board's memory here.
 *
 * Times are picoseconds of virtual time since the cluster was switched on [ps].
 */
#ifndef VELO_SPEC_SIM_CHANNEL_H
#define VELO_SPEC_SIM_CHANNEL_H

#include <stdint.h>

#ifdef __cplusplus
#define SIM_ALIGNED alignas(64)
#else
#define SIM_ALIGNED _Alignas(64)
#endif

#define SIM_AREA_MAGIC UINT64_C(0x314d49534f4c4556) /* "VELOSIM1" */
/** Raised with every incompatible change of this file. */
#define SIM_AREA_VERSION 9u

/** Channels of a cluster: as many threads and processes as its jobs have at once. */
#define SIM_CHANNELS_MIN 16u
#define SIM_CHANNELS_DEFAULT 16384u
#define SIM_CHANNELS_MAX 1048576u
/** A name of a context has so many bits: its node's number, then its own. */
#define SIM_NAME_BITS 16u
/** Contexts of a node, of a cluster of up to 256 nodes; of twice as many nodes half as many. */
#define SIM_CONTEXTS_LOG2 8u
#define SIM_CONTEXTS (1u << SIM_CONTEXTS_LOG2)
#define SIM_NODES_MAX 4096u
/** Ranks of a job: each has a context. */
#define SIM_RANKS_MAX (1u << SIM_NAME_BITS)
/** Each context's receive ring: a power of two of slots, each one line of the spec. */
#define SIM_RING_SLOTS_LOG2 12u
#define SIM_RING_SLOTS (1u << SIM_RING_SLOTS_LOG2)
#define SIM_RING_BYTES (SIM_RING_SLOTS * 64u)
/** Each context's notification queue: a power of two of entries of 16 bytes. */
#define SIM_QUEUE_ENTRIES_LOG2 11u
#define SIM_QUEUE_ENTRIES (1u << SIM_QUEUE_ENTRIES_LOG2)
#define SIM_QUEUE_BYTES (SIM_QUEUE_ENTRIES * 16u)
/** The table of registered pages, one word each. */
#define SIM_PAGES_LOG2 18u
#define SIM_PAGES (1u << SIM_PAGES_LOG2)
#define SIM_PAGE_BYTES 4096u
/** In a node's memory: the ring of context c at c * SIM_RING_BYTES, its notification queue at
 *  SIM_QUEUES_AT + c * SIM_QUEUE_BYTES, the table at SIM_TABLE_AT. */
#define SIM_QUEUES_AT (SIM_CONTEXTS * SIM_RING_BYTES)
#define SIM_TABLE_AT (SIM_QUEUES_AT + SIM_CONTEXTS * SIM_QUEUE_BYTES)
#define SIM_MEMORY_BYTES (SIM_TABLE_AT + SIM_PAGES * 8u)
/** The node sees the host memory of registered page p at this address + p * SIM_PAGE_BYTES. */
#define SIM_FRAMES_AT UINT64_C(0x100000000)

/** Processes of a board of DIMMnet-2, and LLCM of each (spec/dimmnet.toml). */
#define SIM_BOARD_PROCESSES 2u
#define SIM_LLCM_BYTES 32768u
/** A board's memory: LLCM of each process as the process sees it, which it may change; then all of
 *  it as the board has it. What a process changed is different in the two, until it stores it. */
#define SIM_BOARD_BYTES (2u * SIM_BOARD_PROCESSES * SIM_LLCM_BYTES)
/** Bytes of a board's slot, and words that one call moves. */
#define SIM_SLOT_BYTES (1u << 21)
#define SIM_SLOT_WORDS 64u

#define SIM_NEVER UINT64_MAX /**< As a deadline [ps]: none. */

/** The side that has the turn; a futex of the process, an atomic of both. */
enum sim_turn {
    SIM_TURN_FREE = 0,    /**< No thread has the channel. One claims it: FREE -> PROCESS. */
    SIM_TURN_PROCESS = 1, /**< The thread runs, or is being started. */
    SIM_TURN_CALL = 2,    /**< The simulator's, until it has answered. */
};

/** The calls of a thread. Arguments and results of each are a member of struct sim_call. */
enum sim_op {
    SIM_ATTACH = 1,
    SIM_PORT_OPEN = 2,
    SIM_PORT_CLOSE = 3,
    SIM_STORE = 4,
    SIM_REGISTER_WRITE = 5,
    SIM_REGISTER_READ = 6,
    SIM_POLL = 7,
    SIM_SLEEP = 8,
    SIM_OUTSIDE = 9,
    SIM_DETACH = 10, /**< The channel is free again after this. No arguments. */
    SIM_QUEUE_OPEN = 11,
    SIM_MEMORY_ENTER = 12,
    SIM_MEMORY_WITHDRAW = 13,
    SIM_BOARD_OPEN = 14,
    SIM_BOARD_CLOSE = 15,
    SIM_SLOT_STORE = 16,
    SIM_SLOT_LOAD = 17,
    SIM_SLOT_LINES = 18,
    SIM_SLOT_AWAIT = 19,
};

/** The result of a call. */
enum sim_status {
    SIM_OK = 0,
    SIM_AGAIN = 1,
    SIM_TIMEOUT = 2,
    SIM_ERR_NODE = 3, /**< The cluster has no such node. */
    SIM_ERR_FULL = 4, /**< All contexts, or pages, of the node are in use. */
    SIM_ERR_CALL = 5, /**< The call makes no sense. */
};

/** What makes a run depend on real time or on chance, so that it need not repeat itself. The part
 *  that sees it reports it: a process, or the simulator. */
enum sim_cause {
    SIM_CAUSE_CLOCK,     /**< The program read a clock that is not virtual. */
    SIM_CAUSE_WAIT,      /**< The program waited, or looked, in real time. */
    SIM_CAUSE_SOCKET,    /**< What comes by a socket comes in real time. */
    SIM_CAUSE_RANDOM,    /**< The program asked the kernel for random numbers. */
    SIM_CAUSE_SIGNAL,    /**< A signal came at a moment of real time. */
    SIM_CAUSE_ADDRESSES, /**< A process has registered memory, and its addresses are random. */
    SIM_CAUSE_COMPUTING, /**< Computing costs its real processor time. */
    SIM_CAUSE_CARDS,     /**< Guests with cards live in real time. */
    SIM_CAUSE_LATE,      /**< A thread called after virtual time had gone on without it. */
    SIM_CAUSE_STRANGER,  /**< A thread or process called that nobody had told of. */
    SIM_CAUSE_ASIDE,     /**< A thread with the turn slept, and others went on meanwhile. */
    SIM_CAUSE_FENCE,     /**< A thread polled in vain while others were outside. */
    SIM_CAUSE_DEATH,     /**< A process ended with ports open, which its peers noticed. */
    SIM_CAUSE_CUT,       /**< The run was ended before its end. */
    SIM_CAUSES
};

/** A cause, as the first who reports it says. */
struct sim_seen {
    uint32_t is_seen; /**< 0: no; 1: it is being written; 2: yes. An atomic of all. */
    uint32_t rank;    /**< UINT32_MAX: of none. */
    char what[24];    /**< The call, or the like; ends with a zero. */
};

/** A call and its answer. The process fills in `op`, the times and the arguments, which are the
 *  member of that name; the simulator fills in the rest. Members are inputs unless they say "out".
 *  sim/client/client.h has a function for each. The simulator trusts no argument. */
struct sim_call {
    uint32_t op;          /**< enum sim_op. */
    int32_t status;       /**< Out: enum sim_status. */
    uint64_t time_ps;     /**< The caller's clock. Out: its clock on return, never earlier. */
    uint64_t computed_ps; /**< How much of that was computing, since the last call. */
    union {
        /** First call of a channel. */
        struct {
            /** Decides between threads that call for the same time; SIM_NEVER: the order in which
             *  they attached does. */
            uint64_t rank;
            uint64_t is_repeatable; /**< The run must give the same times again. */
        } attach;
        /** The driver's part of opening a port: an empty ring and a context that takes messages.
         *  Takes no virtual time. SIM_ERR_NODE, SIM_ERR_FULL. */
        struct {
            uint64_t node;
            uint64_t context; /**< The one that is wanted. Out: the one that is opened. */
            /** Out: how often that context has been opened. Messages to an earlier port of this
             *  context may still come in. */
            uint64_t opened;
        } port_open;
        /** The node drops and counts what still comes for the context. SIM_ERR_NODE, SIM_ERR_CALL.
         */
        struct {
            uint64_t node;
            uint64_t context;
        } port_close;
        /** One posted write of whole words to the node's window. Returns when the store has left
         *  the processor. SIM_AGAIN: the way to the node is full; nothing was written. With a
         *  period the caller looks and tries again in each of them, until the line is written, or
         *  a look finds something: SIM_AGAIN. SIM_ERR_NODE, SIM_ERR_CALL. */
        struct {
            uint64_t node;
            uint64_t address;   /**< Layout `window`. */
            uint64_t len_words; /**< 1 to 8. */
            uint64_t period_ps; /**< From one try to the next; 0: one try. */
            uint64_t arrivals;  /**< As in `poll`, of the looks between tries. */
            uint64_t line[8];
        } store;
        /** A posted write to one register. Never SIM_AGAIN. SIM_ERR_NODE. */
        struct {
            uint64_t node;
            uint64_t offset;
            uint64_t value;
        } register_write;
        /** Returns when the answer is there. SIM_ERR_NODE. */
        struct {
            uint64_t node;
            uint64_t offset;
            uint64_t value; /**< Out. */
        } register_read;
        /** Poll the rings of all contexts that this process has open, in their nodes' memory.
         *  SIM_OK: `arrivals` has changed. SIM_AGAIN: it has not: the call was to look once, or
         *  nothing can arrive because everybody waits. SIM_TIMEOUT: the deadline came first. */
        struct {
            /** How many messages and notifications were published for this process when it last
             *  looked. Out: how many there are now. */
            uint64_t arrivals;
            uint64_t deadline_ps;
            uint64_t until_new; /**< 0: look once, at the caller's time. 1: poll until SIM_OK. */
            uint64_t period_ps; /**< From one poll to the next. */
        } poll;
        /** Do nothing until a time, or until another thread of the process sets `woken_ps`. */
        struct {
            uint64_t end_ps;
        } sleep;
        /** The thread goes on outside of the simulated cluster, for example into a fence of the
         *  job's launcher. Answered at once. All threads that are outside with the same number come
         *  back together, at the clock of the last one: the next call of each waits for that,
         * unless it is SIM_OUTSIDE with that number again. */
        struct {
            uint64_t number; /**< Each thread counts its own; all count alike. */
        } outside;
        /** The driver's part of remote memory: the context gets an empty notification queue, and
         *  its node the table of registered pages. Returns when the node's registers are written.
         *  The process gives entries back by writing the queue's register. SIM_ERR_CALL. */
        struct {
            uint64_t node;
            uint64_t context;
        } queue_open;
        /** Enter memory of this process into its node's table. It need not be there before it is
         *  accessed, and may change: pages name addresses. Takes no virtual time. SIM_ERR_FULL,
         *  SIM_ERR_CALL. */
        struct {
            uint64_t node;
            uint64_t context;    /**< Its owner. */
            uint64_t address;    /**< Of a page. */
            uint64_t len_bytes;  /**< Whole pages. */
            uint64_t rights;     /**< With the peer: layout `registered_page`. */
            uint64_t first_page; /**< Out; the other pages follow it. */
        } memory_enter;
        /** Take it out again. Returns when the node accesses nothing of it any more and all that
         *  it wrote can be seen. SIM_ERR_NODE, SIM_ERR_CALL. */
        struct {
            uint64_t node;
            uint64_t first_page;
        } memory_withdraw;
        /** Switch a board of DIMMnet-2 on, for this process; other boards begin anew with it.
         *  Returns when it can be set up. SIM_ERR_FULL, SIM_ERR_CALL: another board's LID, or the
         *  lowest four bits of it. */
        struct {
            uint64_t lid;
            uint64_t board; /**< Out. */
        } board_open;
        /** The board is nobody's any more. It goes on until its place or LID is taken.
         * SIM_ERR_CALL.
         */
        struct {
            uint64_t board;
        } board_close;
        /** A processor accesses a board's slot. SIM_ERR_NODE: no such board is on. SIM_ERR_CALL.
         *  SIM_SLOT_STORE: store the words, and fence; returns when they have left the processor.
         *  SIM_SLOT_LOAD: load one word that is not cached.
         *  SIM_SLOT_LINES: flush the lines of the words from the cache, and load the words.
         *  SIM_SLOT_AWAIT: load one word, which is not cached, until it is another one than
         *  `words[0]`. SIM_TIMEOUT: the deadline came first. */
        struct {
            uint64_t board;
            uint64_t address;   /**< Layout dimmnet_slot; a multiple of 8. */
            uint64_t len_words; /**< 1 to SIM_SLOT_WORDS; one of a load. */
            uint64_t deadline_ps;
            uint64_t words[SIM_SLOT_WORDS]; /**< Stored; or out: loaded. */
        } slot;
    };
};

/** One thread's channel. The side that has the turn may write it. */
struct sim_channel {
    SIM_ALIGNED uint32_t turn; /**< enum sim_turn. */
    int32_t pid;               /**< Of the process, for as long as the channel is not free. */
    int32_t tid;               /**< Of the thread; 0: it is still being started, by one of `pid`. */
    /** How many threads of the process were started before it: decides between those that call for
     *  the same time. */
    uint32_t number;
    struct sim_call call;
    /** Of a SIM_SLEEP: the clock of the thread that has woken this one; 0: nobody has. The one word
     *  that another thread of the process may write, as long as it has its own turn. */
    uint64_t woken_ps;
    /** Of the simulator's answer: so much the process had seen when it last looked, and a look
     *  before this time [ps] finds no more, in rings or in memory. */
    uint64_t seen, blind_ps;
    /* The process's own: */
    uint64_t place;    /**< What the thread waits for; 0: no other thread. */
    uint64_t since_ps; /**< Since when. */
    uint64_t thread;   /**< Its name; 0: the one that the process began with. */
};

/** The head of the file. Constant once the file has its name, except where noted. */
struct sim_area {
    uint64_t magic;
    uint32_t version;
    uint32_t nodes;
    int32_t pid;    /**< Of the simulator: without it nobody will answer, whatever `ended` says. */
    uint32_t ranks; /**< Of the job, as each of them says that begins; 0: none has yet. */
    uint32_t channels;     /**< How many there are. */
    uint32_t context_bits; /**< Of a name, those of the context: SIM_CONTEXTS_LOG2 or less. */
    uint64_t memory_at;    /**< Where node 0's memory starts in the file [bytes]. */
    uint64_t memory_bytes; /**< Of each node; a multiple of a page. */
    uint64_t boards;       /**< Of DIMMnet-2. */
    uint64_t boards_at;    /**< Where board 0's memory starts in the file [bytes]. */
    /* The host model: what the processor pays, and so adds to its own clock. */
    uint64_t poll_ps;      /**< One look at a ring in memory, in vain. */
    uint64_t clock_ps;     /**< One reading of a clock. */
    uint64_t copy_ps;      /**< Copying one line from or to memory. */
    uint64_t call_ps;      /**< A call of the library, by itself. */
    uint64_t slot_call_ps; /**< As call_ps, in a PC with a board. */
    uint64_t gap_ps;       /**< A pause after each line that the node is to send. */
    /* The time that a program computes between two calls of the simulator: a constant, and a number
     * of thousandths of its real processor time. Both 0: none. */
    uint64_t compute_ps;
    uint64_t compute_permille;

    SIM_ALIGNED uint32_t calls; /**< Callers raise it and wake the simulator, who sleeps on it. */
    uint32_t ended;             /**< The simulator has ended; nobody will answer. A futex wait on
                                     `turn` therefore looks here once a second. */
    uint64_t now_ps;            /**< For onlookers: how far the hardware has come. */
    uint32_t claimed_end;       /**< Channels that were ever claimed are before it. */
    uint32_t claims;            /**< How often a channel was claimed. */
    uint32_t ranks_begun;       /**< How many ranks have begun. */
    uint32_t begun[SIM_RANKS_MAX / 32]; /**< A bit for each of them. */
    struct sim_seen causes[SIM_CAUSES]; /**< By enum sim_cause. */
};

#endif
