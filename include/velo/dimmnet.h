/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dimmnet.h
 * @brief DIMMnet-2: a network interface in a memory slot, with remote strided and list access.
 * @example botf.c
 *
 * A **board** sits in a memory slot and has a local identifier (LID), its own memory (SO-DIMM) and
 * one or more **processes**, numbered by a WID. A process has a **region** of the SO-DIMM, two
 * Write Windows and four Prefetch Windows of 512 bytes, and 32 KiB of low-latency common memory
 * (LLCM). SO-DIMM is reached through the windows only: by commands that move words between them and
 * regions, its own and those of peers. All sizes and places are in **words** of 64 bits, counted
 * from the begin of a memory.
 *
 * A process names a peer by a PID of 14 bits. The table that leads from it to LID and WID is kept
 * by whoever makes the boards, as are the regions and the process groups (PGID).
 *
 * The ways of moving words:
 *  - velo_dimmnet_send(): words of the program to a peer's memory. Packets of up to 496 bytes are
 *    sent out of a Write Window (BOTF, block on the fly); velo_dimmnet_botf() sends one that was
 *    built there; velo_dimmnet_aotf() sends one word by one store (AOTF, atomic on the fly);
 *  - velo_dimmnet_put(): from the region or Write Windows to a peer's memory;
 *  - velo_dimmnet_get(): from a peer's region to the own one, or to the Prefetch Windows;
 *  - velo_dimmnet_load(), velo_dimmnet_store(): between the own region and the windows.
 *
 * Access to a region is contiguous, strided or by a list of offsets: elements are gathered or
 * scattered where they lie, so that nobody packs them.
 *
 * A packet that asks for it leaves a **status** in its receiver's ring; velo_dimmnet_wait() and
 * velo_dimmnet_poll() take statuses. A get or a load leaves its status with the process that asked.
 * Packets from one process to another arrive in order: if only the last of several asks for a
 * status, all have arrived by then.
 *
 * Promises:
 *  - words are in their place before the status that tells of them can be seen;
 *  - a bad argument is refused before anything is sent;
 *  - a packet is dropped, and counted where it was dropped, if its sender is of another process
 *    group, if its target is not enabled, or if an address is outside the target memory. It touches
 *    nothing. Its sender is not told;
 *  - a status is never overwritten: if a ring of 512 stays full for the board's patience, the
 * status is dropped and counted; the words are in their place all the same;
 *  - a process that dies at any point keeps nobody waiting: its unfinished packet may be lost or
 *    its words be there in part, without a status.
 *
 * Protection. On a board, windows are granted page by page, and hardware stamps and checks groups
 * and bounds. The native engine keeps boards in shared memory, and the library of the sending
 * process carries out the packet. It checks groups and bounds by what stands in the target's board,
 * so that no call of this library breaks them. But processes of one user (or group) that map the
 * board are not kept apart by hardware: a process that writes past its own pointers can change any
 * board that it has sent to.
 *
 * Engines. Without $VELO_DIMMNET a board is native. `velo sim --dimmnet N` runs a program over
 * simulated boards, by VELO_DIMMNET=sim. A board knows less than the native engine: where a call
 * may tell why a command did nothing, a board may only note it, for velo_dimmnet_error(), and a
 * packet for a board that is not there is lost. A board keeps eight reads, from whomever they are,
 * and drops others: a get of more than 512 listed elements is refused there.
 *
 * Nobody may put into the last 4 KiB of LLCM, the status ring. Write Window 0 is used by
 * velo_dimmnet_send() and velo_dimmnet_aotf_header() uses Write Window 1; otherwise they are the
 * program's.
 *
 * Threads: one thread at a time uses a context; one thread at a time uses a board. Processes,
 * signals, waiting and statuses are as in velo.h. Contexts are no ports: a port may have any id
 * beside them.
 */
#ifndef VELO_DIMMNET_H
#define VELO_DIMMNET_H

#include <velo/dimmnet_spec.h>
#include <velo/velo.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A board, for the process that made it; opaque. */
struct velo_dimmnet_board;
/** A process's context on a board; opaque. */
struct velo_dimmnet;

/** Most words that one command moves. */
#define VELO_DIMMNET_COMMAND_WORDS_MAX ((1u << VELO_DIMMNET_COMMAND_WORDS_BITS) - 1u)
/** As a WID: the lowest that no process has open. */
#define VELO_DIMMNET_WID_ANY (-1)
/** Words of LLCM before the status ring. */
#define VELO_DIMMNET_LLCM_FREE_WORDS VELO_DIMMNET_STATUS_LLCM_WORD
/** Headers that velo_dimmnet_aotf_header() has place for. */
#define VELO_DIMMNET_AOTF_HEADERS 32u

/** Memories of a process. */
enum velo_dimmnet_memory {
    VELO_DIMMNET_SODIMM = 0,   /**< Its region of the board's SO-DIMM. */
    VELO_DIMMNET_PREFETCH = 1, /**< Its Prefetch Windows, 256 words. */
    VELO_DIMMNET_LLCM = 2,     /**< Its LLCM, 3584 words that are not the status ring's. */
};

/** In which order words of a region are read or written. */
enum velo_dimmnet_access {
    VELO_DIMMNET_CONTIGUOUS = 0, /**< Word after word. */
    VELO_DIMMNET_STRIDED = 1,    /**< Elements at equal distances. */
    VELO_DIMMNET_LIST = 2,       /**< Elements at listed offsets. */
};

/* ---- boards ---------------------------------------------------------------------------------- */

/**
 * How a board is to be made. Start from VELO_DIMMNET_BOARD_ATTR_INIT and change what you need; a
 * zero means the default.
 */
struct velo_dimmnet_board_attr {
    /** sizeof(struct velo_dimmnet_board_attr): a later release may add members. */
    size_t size_bytes;
    /** Name of the domain, as for a port. NULL: $VELO_DOMAIN, else "u<uid>". */
    const char *domain;
    /** The board's local identifier, 1 to 65535; no default. */
    uint32_t lid;
    /** Processes, 1 to 16. Default 2. */
    uint32_t processes;
    /** Bytes of SO-DIMM: a multiple of 4096, to 32 GiB. Default 16 MiB. Each process gets an equal
     *  part as its region. */
    uint64_t sodimm_bytes;
    /** Process group of all processes, 1 to 65535. Default 1. */
    uint32_t pgid;
    /** How long a packet waits for room in a status ring, in ns: to 10 ms. Default 1 ms. */
    uint32_t patience_ns;
    /** Name of the group whose members may open contexts and send too. NULL: this user only. */
    const char *group;
};

/** Attributes that ask for the defaults; `lid` is to be set. */
#define VELO_DIMMNET_BOARD_ATTR_INIT                                                               \
    {sizeof(struct velo_dimmnet_board_attr), NULL, 0, 0, 0, 0, 0, NULL}

/** What a process is to its board. */
struct velo_dimmnet_process {
    uint32_t pgid;         /**< Its process group, 1 to 65535. */
    uint32_t is_enabled;   /**< 1: it may send, and is sent to; 0: neither. */
    uint32_t region_word;  /**< Where its region begins in SO-DIMM; even. */
    uint32_t region_words; /**< Words of its region; even. */
};

/** Counts of a board since it was made. A packet carries up to 496 bytes. */
struct velo_dimmnet_counters {
    uint64_t sent;              /**< Packets that its processes sent. */
    uint64_t received;          /**< Packets sent to its processes, those dropped among them. */
    uint64_t refused;           /**< Commands of its processes that were refused. */
    uint64_t dropped_pgid;      /**< Dropped: another process group, or not enabled. */
    uint64_t dropped_malformed; /**< Dropped: packets that contradict themselves. */
    uint64_t dropped_bounds;    /**< Dropped: an address outside the target memory. */
    uint64_t dropped_status;    /**< Statuses dropped since their ring stayed full. */
};

/**
 * Make a board. A privileged call: whoever makes it says which process may do what.
 *
 * Natively it creates the segment `velo.<domain>+dimm.<n>.<m>` in /dev/shm ($VELO_SHM_DIR if set),
 * where the LID is 256 n + m. One that a dead process left under that name is removed first. The
 * board lives until velo_dimmnet_board_close(), or until the process ends.
 *
 * @param attr   How to make it. Not kept.
 * @param board  Receives the board, owned by the caller until velo_dimmnet_board_close().
 * @retval VELO_OK            The board is there, its processes are enabled.
 * @retval VELO_ERR_ARG       An argument is NULL, an attribute is outside its range, or the group
 * does not exist.
 * @retval VELO_ERR_IN_USE    A live process has a board of this LID.
 * @retval VELO_ERR_ACCESS    The directory is not writable, or another user's file has the name.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system is full.
 * @retval VELO_ERR_NO_MEMORY Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread Any thread.
 * @path cold
 * @source DIMMnet-2 paper, section 2.3
 * @see velo_dimmnet_board_close, velo_dimmnet_board_pid, velo_dimmnet_open
 */
VELO_API int velo_dimmnet_board_open(const struct velo_dimmnet_board_attr *attr,
                                     struct velo_dimmnet_board **board);

/**
 * Take a board away. Contexts on it, and peers that send to it, get VELO_ERR_PEER_CLOSED.
 *
 * @param board  The board; NULL is allowed and does nothing.
 * @retval VELO_OK  It is gone.
 * @thread One thread, while no other uses the board.
 * @path cold
 * @see velo_dimmnet_board_open
 */
VELO_API int velo_dimmnet_board_close(struct velo_dimmnet_board *board);

/**
 * Say what a process of a board may do. A privileged call.
 *
 * Takes effect for packets that arrive, and commands that start, from now on. A process that is
 * enabled anew and that nobody has open begins without statuses.
 *
 * @param board    The board.
 * @param wid      Which process, 0 to the board's processes - 1.
 * @param process  What it is from now on.
 * @retval VELO_OK       Done.
 * @retval VELO_ERR_ARG  An argument is NULL or outside its range, or the region is not inside the
 * SO-DIMM.
 * @thread The thread that uses the board.
 * @path cold
 * @source DIMMnet-2 paper, section 3.1
 * @see velo_dimmnet_board_process
 */
VELO_API int velo_dimmnet_board_set_process(struct velo_dimmnet_board *board, unsigned wid,
                                            const struct velo_dimmnet_process *process);

/**
 * What a process of a board may do.
 *
 * @param board    The board.
 * @param wid      Which process.
 * @param process  Receives what it is.
 * @retval VELO_OK       Filled in.
 * @retval VELO_ERR_ARG  An argument is NULL or outside its range.
 * @thread The thread that uses the board.
 * @path cold
 * @see velo_dimmnet_board_set_process
 */
VELO_API int velo_dimmnet_board_process(const struct velo_dimmnet_board *board, unsigned wid,
                                        struct velo_dimmnet_process *process);

/**
 * Enter a PID into a board's table, for the processes of that board. A privileged call.
 *
 * @param board  The board whose processes will use the PID.
 * @param pid    The PID, 0 to 16383.
 * @param lid    The board that it leads to; 0 takes the entry away.
 * @param wid    The process there, 0 to 15.
 * @retval VELO_OK       Entered.
 * @retval VELO_ERR_ARG  board is NULL, or a number is outside its range.
 * @thread The thread that uses the board.
 * @path cold
 * @source DIMMnet-2 paper, section 3.1
 * @see velo_dimmnet_lookup
 */
VELO_API int velo_dimmnet_board_pid(struct velo_dimmnet_board *board, unsigned pid, unsigned lid,
                                    unsigned wid);

/**
 * Read a board's counters. The snapshot is not atomic.
 *
 * @param board           The board.
 * @param counters        Receives the values; owned by the caller.
 * @param counters_bytes  sizeof *counters: a later release may add counters at the end.
 * @retval VELO_OK       Filled in; counters that this library does not know are 0.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread Any thread; not during velo_dimmnet_board_close().
 * @path cold
 */
VELO_API int velo_dimmnet_board_counters(const struct velo_dimmnet_board *board,
                                         struct velo_dimmnet_counters *counters,
                                         size_t counters_bytes);

/* ---- contexts -------------------------------------------------------------------------------- */

/** How a context is to be opened. Start from VELO_DIMMNET_ATTR_INIT. */
struct velo_dimmnet_attr {
    /** sizeof(struct velo_dimmnet_attr): a later release may add members. */
    size_t size_bytes;
    /** Name of the domain, as for a port. NULL: $VELO_DOMAIN, else "u<uid>". */
    const char *domain;
    /** The board's local identifier, 1 to 65535; no default. */
    uint32_t lid;
    /** The process on it, 0 to 15, or VELO_DIMMNET_WID_ANY. */
    int wid;
    /** The process group that it must be of; 0: any. */
    uint32_t pgid;
    /** Name of the group whose members' boards may be used. NULL: this user's only. */
    const char *group;
};

/** Attributes that ask for any free process; `lid` is to be set. */
#define VELO_DIMMNET_ATTR_INIT                                                                     \
    {sizeof(struct velo_dimmnet_attr), NULL, 0, VELO_DIMMNET_WID_ANY, 0, NULL}

/** What a context is. */
struct velo_dimmnet_identity {
    uint32_t lid;          /**< Its board. */
    uint32_t wid;          /**< Its process there. */
    uint32_t pgid;         /**< Its process group. */
    uint32_t region_words; /**< Words of its region of SO-DIMM. */
};

/**
 * Open a process's context on a board, waiting for the board to be made.
 *
 * Memories and statuses are as they were left: what peers sent before is there.
 *
 * @param attr        Which process of which board. Not kept.
 * @param context     Receives the context, owned by the caller until velo_dimmnet_close().
 * @param timeout_ns  Longest wait for the board, in ns; 0 tries once, VELO_FOREVER waits without
 *                    limit.
 * @retval VELO_OK              Open.
 * @retval VELO_ERR_ARG         An argument is NULL, an attribute is outside its range, the board
 * has no such process, or the group does not exist.
 * @retval VELO_ERR_NO_PEER     No such board was made in the time given.
 * @retval VELO_ERR_PEER_CLOSED The board has been taken away.
 * @retval VELO_ERR_PEER_DEAD   The process that made the board has ended.
 * @retval VELO_ERR_IN_USE      A live process has this context open.
 * @retval VELO_ERR_FULL        VELO_DIMMNET_WID_ANY found no free process.
 * @retval VELO_ERR_ACCESS      The board belongs to another user, or the process is of another
 * process group than asked for, or somebody has removed the file that tells whether the board's
 * process lives.
 * @retval VELO_ERR_VERSION     The board was made by another version of velo.
 * @retval VELO_ERR_CORRUPT     The board's segment makes no sense.
 * @retval VELO_ERR_NO_MEMORY   Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM      Another system call failed.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran in the wait.
 * @thread Any thread.
 * @path cold
 * @source DIMMnet-2 paper, section 3.1
 * @see velo_dimmnet_close, velo_dimmnet_board_open
 */
VELO_API int velo_dimmnet_open(const struct velo_dimmnet_attr *attr, struct velo_dimmnet **context,
                               int64_t timeout_ns);

/**
 * Close a context. The pointers to its windows become invalid; another process may open it.
 *
 * @param context  The context; NULL is allowed and does nothing.
 * @retval VELO_OK  Closed.
 * @thread One thread, while no other uses the context.
 * @path cold
 * @see velo_dimmnet_open
 */
VELO_API int velo_dimmnet_close(struct velo_dimmnet *context);

/**
 * What a context is.
 *
 * @param context   An open context.
 * @param identity  Receives it.
 * @retval VELO_OK       Filled in.
 * @retval VELO_ERR_ARG  An argument is NULL.
 * @thread Any thread.
 * @path cold
 */
VELO_API int velo_dimmnet_identity(const struct velo_dimmnet *context,
                                   struct velo_dimmnet_identity *identity);

/**
 * Where a PID leads.
 *
 * @param context  An open context; its board's table is asked.
 * @param pid      The PID, 0 to 16383.
 * @param lid      Receives the board; may be NULL.
 * @param wid      Receives the process there; may be NULL.
 * @retval VELO_OK           Found.
 * @retval VELO_ERR_ARG      context is NULL, or the PID is outside its range.
 * @retval VELO_ERR_NO_PEER  The table has no entry for the PID.
 * @thread Any thread.
 * @path cold
 * @see velo_dimmnet_board_pid
 */
VELO_API int velo_dimmnet_lookup(const struct velo_dimmnet *context, unsigned pid, unsigned *lid,
                                 unsigned *wid);

/**
 * Is the board behind a PID still there? An engine that cannot know says yes. A system call.
 *
 * @param context  An open context.
 * @param pid      The PID.
 * @retval VELO_OK              It is.
 * @retval VELO_ERR_ARG         context is NULL, or the PID is outside its range.
 * @retval VELO_ERR_NO_PEER     The table has no entry for the PID, or no such board was made.
 * @retval VELO_ERR_PEER_CLOSED The board has been taken away.
 * @retval VELO_ERR_PEER_DEAD   The process that made the board has ended.
 * @retval VELO_ERR_ACCESS      The board belongs to another user, or somebody has removed the file
 *                              that tells whether its process lives.
 * @retval VELO_ERR_VERSION     The board was made by another version of velo.
 * @retval VELO_ERR_CORRUPT     The board's segment makes no sense.
 * @retval VELO_ERR_NO_MEMORY   Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM      Another system call failed.
 * @thread The thread that uses the context.
 * @path cold
 */
VELO_API int velo_dimmnet_peer_status(struct velo_dimmnet *context, unsigned pid);

/**
 * A Write Window, for building packets in place and as the source of put and store. Write-only: on
 * a board, what is read from it is not what was written.
 *
 * @param context  An open context.
 * @param window   0 or 1.
 * @return Its 64 words; NULL: there is no such window.
 * @thread Any thread.
 * @path hot
 * @see velo_dimmnet_botf
 */
VELO_API uint64_t *velo_dimmnet_write_window(struct velo_dimmnet *context, unsigned window);

/**
 * The Prefetch Windows, one behind the other, for reading only.
 *
 * On a board the processor's caches do not see what arrives there: call velo_dimmnet_refresh()
 * before words that may have changed are read again.
 *
 * @param context  An open context.
 * @return 256 words; NULL: context is NULL.
 * @thread Any thread.
 * @path hot
 * @see velo_dimmnet_refresh
 */
VELO_API const uint64_t *velo_dimmnet_prefetch(const struct velo_dimmnet *context);

/**
 * The LLCM. A word that a peer sends alone arrives there in one piece.
 *
 * @param context  An open context.
 * @return VELO_DIMMNET_LLCM_FREE_WORDS words; NULL: context is NULL.
 * @thread Any thread.
 * @path hot
 */
VELO_API uint64_t *velo_dimmnet_llcm(struct velo_dimmnet *context);

/**
 * Have words of the Prefetch Windows read anew: the processor forgets what it has cached of them.
 * Natively it has nothing to forget.
 *
 * @param context     An open context.
 * @param first_word  First word.
 * @param len_words   How many.
 * @retval VELO_OK       Loads that follow read what is there now.
 * @retval VELO_ERR_ARG  context is NULL, or the words are not inside the windows.
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 2.3 (CLFLUSH)
 * @see velo_dimmnet_prefetch
 */
VELO_API int velo_dimmnet_refresh(struct velo_dimmnet *context, uint32_t first_word,
                                  uint32_t len_words);

/* ---- packets --------------------------------------------------------------------------------- */

/** Where a packet goes. */
struct velo_dimmnet_target {
    uint32_t pid;    /**< The peer. */
    uint32_t memory; /**< Its memory, enum velo_dimmnet_memory. */
    uint32_t word;   /**< First word there. */
    uint8_t tag;     /**< Tag of the status. */
    uint8_t status;  /**< 1: leave a status with the peer when the words are there. */
};

/**
 * Make the header of a packet that writes contiguous words.
 *
 * @param context    An open context; its table of PIDs is asked.
 * @param target     Where the packet goes.
 * @param header     Receives two words, to be put before the payload in a Write Window.
 * @retval VELO_OK           Made.
 * @retval VELO_ERR_ARG      An argument is NULL, or a member of target is outside its range.
 * @retval VELO_ERR_NO_PEER  The table has no entry for the PID.
 * @thread Any thread.
 * @path hot
 * @see velo_dimmnet_botf
 */
VELO_API int velo_dimmnet_header(const struct velo_dimmnet *context,
                                 const struct velo_dimmnet_target *target, uint64_t *header);

/**
 * Send the packet that stands in a Write Window (BOTF).
 *
 * Sender, process group and length in the header need not be right: the controller sets them. The
 * window may be written again once velo_dimmnet_quiet() says so.
 *
 * @param context     An open context.
 * @param window      Which Write Window, 0 or 1.
 * @param first_word  Word of the window where the header begins.
 * @param len_words   Words of header and payload: 2 to 64 - first_word.
 * @retval VELO_OK              The controller has it.
 * @retval VELO_ERR_ARG         An argument is outside its range, or the header is no write's.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_NO_PEER     There is no board of that LID, and the engine knows.
 * @retval VELO_ERR_PEER_CLOSED A board, its own or the peer's, has been taken away.
 * @retval VELO_ERR_PEER_DEAD   A board's process has ended; found out if its status ring is full,
 * or by velo_dimmnet_peer_status().
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 3.2
 * @see velo_dimmnet_header, velo_dimmnet_send
 */
VELO_API int velo_dimmnet_botf(struct velo_dimmnet *context, unsigned window, uint32_t first_word,
                               uint32_t len_words);

/**
 * Send words of the program to a peer's memory, by BOTF out of Write Window 0.
 *
 * More than 62 words travel in several packets, of which only the last asks for the status. The
 * buffer is free for reuse on return.
 *
 * @param context    An open context.
 * @param target     Where they go.
 * @param words      The words; any alignment.
 * @param len_words  How many, 1 to VELO_DIMMNET_COMMAND_WORDS_MAX.
 * @retval VELO_OK              Sent.
 * @retval VELO_ERR_ARG         An argument is NULL or outside its range.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_NO_PEER     The table has no entry for the PID, or there is no such board.
 * @retval VELO_ERR_PEER_CLOSED A board, its own or the peer's, has been taken away.
 * @retval VELO_ERR_PEER_DEAD   A board's process has ended; see velo_dimmnet_botf().
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 3.2
 * @see velo_dimmnet_botf, velo_dimmnet_wait
 */
VELO_API int velo_dimmnet_send(struct velo_dimmnet *context,
                               const struct velo_dimmnet_target *target, const void *words,
                               uint32_t len_words);

/**
 * Prepare sends of single words: put a header into Write Window 1.
 *
 * @param context  An open context.
 * @param slot     Which header, 0 to VELO_DIMMNET_AOTF_HEADERS - 1.
 * @param target   Where words sent with it go.
 * @retval VELO_OK           velo_dimmnet_aotf() may use the slot, until the window is overwritten.
 * @retval VELO_ERR_ARG      An argument is NULL or outside its range.
 * @retval VELO_ERR_NO_PEER  The table has no entry for the PID.
 * @thread The thread that uses the context.
 * @path cold
 * @see velo_dimmnet_aotf
 */
VELO_API int velo_dimmnet_aotf_header(struct velo_dimmnet *context, unsigned slot,
                                      const struct velo_dimmnet_target *target);

/**
 * Send one word by one store (AOTF).
 *
 * @param context  An open context.
 * @param slot     A slot that velo_dimmnet_aotf_header() has filled.
 * @param word     The word. It arrives in one piece.
 * @retval VELO_OK              The controller has it.
 * @retval VELO_ERR_ARG         An argument is outside its range, or there is no header in the slot.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_NO_PEER     There is no board of that LID, and the engine knows.
 * @retval VELO_ERR_PEER_CLOSED A board, its own or the peer's, has been taken away.
 * @retval VELO_ERR_PEER_DEAD   A board's process has ended; see velo_dimmnet_botf().
 * @thread The thread that uses the context.
 * @path hot
 * @see velo_dimmnet_aotf_header
 */
VELO_API int velo_dimmnet_aotf(struct velo_dimmnet *context, unsigned slot, uint64_t word);

/* ---- commands -------------------------------------------------------------------------------- */

/** How words lie in a region. All zero: contiguous. */
struct velo_dimmnet_pattern {
    uint32_t access;        /**< enum velo_dimmnet_access. */
    uint32_t element_words; /**< Strided, list: words of an element, 1 to 32. If neither side of a
                               put or get is contiguous, both have the same. */
    int32_t step_words;     /**< Strided: from one element to the next. */
    uint32_t list_word;     /**< List: word of the own LLCM where the offsets begin, two of 32 bits
                                 in each word, the lower half first. An offset counts words from the
                                 transfer's first word in the region. */
};

/** What a command moves. */
struct velo_dimmnet_transfer {
    uint32_t pid;           /**< The peer; load and store: of no meaning. */
    uint32_t len_words;     /**< Words, 1 to VELO_DIMMNET_COMMAND_WORDS_MAX: whole elements. */
    uint32_t local_memory;  /**< Put: region, or VELO_DIMMNET_PREFETCH for the Write Windows. Get:
                                 region or Prefetch Windows. */
    uint32_t local_word;    /**< First word there; load and store: in the region. */
    uint32_t remote_memory; /**< Put: the peer's memory. Get: its region. */
    uint32_t remote_word; /**< First word there; load: in the Prefetch Windows; store: in the Write
                               Windows. */
    uint8_t tag;          /**< Tag of the status. */
    uint8_t status;       /**< 1: leave a status. */
    struct velo_dimmnet_pattern local;  /**< Order in the own region; else contiguous. */
    struct velo_dimmnet_pattern remote; /**< Order in the peer's region; else contiguous. */
};

/**
 * Move words from the own region or Write Windows to a peer's memory. A status is the peer's.
 *
 * @param context   An open context.
 * @param transfer  What to move. Not kept.
 * @retval VELO_OK              The controller has it; velo_dimmnet_quiet() tells when its source
 * may change.
 * @retval VELO_ERR_ARG         A member is outside its range, or the own words are not inside the
 * own memory.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_NO_PEER     The table has no entry for the PID, or there is no such board.
 * @retval VELO_ERR_PEER_CLOSED A board, its own or the peer's, has been taken away.
 * @retval VELO_ERR_PEER_DEAD   A board's process has ended; see velo_dimmnet_botf().
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 2.3 and table 1
 * @see velo_dimmnet_get
 */
VELO_API int velo_dimmnet_put(struct velo_dimmnet *context,
                              const struct velo_dimmnet_transfer *transfer);

/**
 * Move words from a peer's region to the own region or Prefetch Windows.
 *
 * They are there when the status is, which is the only way to know. If the peer's board drops the
 * request, no status comes. The access to the own region is contiguous or strided.
 *
 * @param context   An open context.
 * @param transfer  What to move. Not kept.
 * @retval VELO_OK              The controller has it.
 * @retval VELO_ERR_ARG         A member is outside its range, or the own words are not inside the
 * own memory.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_NO_PEER     The table has no entry for the PID, or there is no such board.
 * @retval VELO_ERR_PEER_CLOSED A board, its own or the peer's, has been taken away.
 * @retval VELO_ERR_PEER_DEAD   A board's process has ended; see velo_dimmnet_botf().
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 2.3 and table 1
 * @see velo_dimmnet_put, velo_dimmnet_wait
 */
VELO_API int velo_dimmnet_get(struct velo_dimmnet *context,
                              const struct velo_dimmnet_transfer *transfer);

/**
 * Move words from the own region to the Prefetch Windows.
 *
 * @param context   An open context.
 * @param transfer  What to move: local_word, remote_word, len_words, local, tag, status. Not kept.
 * @retval VELO_OK              The controller has it.
 * @retval VELO_ERR_ARG         A member is outside its range, or words are not inside the region or
 * the windows.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_PEER_CLOSED The board has been taken away.
 * @retval VELO_ERR_PEER_DEAD   The process that made the board has ended.
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 2.3 and table 1
 * @see velo_dimmnet_store, velo_dimmnet_refresh
 */
VELO_API int velo_dimmnet_load(struct velo_dimmnet *context,
                               const struct velo_dimmnet_transfer *transfer);

/**
 * Move words from the Write Windows to the own region.
 *
 * @param context   An open context.
 * @param transfer  What to move: local_word, remote_word, len_words, local, tag, status. Not kept.
 * @retval VELO_OK              The controller has it.
 * @retval VELO_ERR_ARG         A member is outside its range, or words are not inside the region or
 * the windows.
 * @retval VELO_ERR_STATE       The process is not enabled.
 * @retval VELO_ERR_PEER_CLOSED The board has been taken away.
 * @retval VELO_ERR_PEER_DEAD   The process that made the board has ended.
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 2.3 and table 1
 * @see velo_dimmnet_load
 */
VELO_API int velo_dimmnet_store(struct velo_dimmnet *context,
                                const struct velo_dimmnet_transfer *transfer);

/**
 * Wait until the controller has finished all commands: Write Windows and the sources of puts may
 * change. Words of a get may still be on their way; its status tells.
 *
 * @param context     An open context.
 * @param timeout_ns  Longest wait, in ns; 0 looks once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              All are finished.
 * @retval VELO_TIMEOUT         Not in the time given.
 * @retval VELO_ERR_ARG         context is NULL, or timeout_ns is below -1.
 * @thread The thread that uses the context.
 * @path hot
 */
VELO_API int velo_dimmnet_quiet(struct velo_dimmnet *context, int64_t timeout_ns);

/**
 * Why the controller refused a command, the last one that it refused. Reading it clears it.
 *
 * The library checks what it can before a command starts. What only the controller sees, it notes
 * here, such as an offset in a list that leads out of the own region.
 *
 * @param context  An open context.
 * @return A VELO_DIMMNET_ERROR_ value of <velo/dimmnet_spec.h>, 0 if none was, or an error:
 * @retval VELO_ERR_ARG  context is NULL.
 * @thread The thread that uses the context.
 * @path cold
 */
VELO_API int velo_dimmnet_error(struct velo_dimmnet *context);

/* ---- statuses -------------------------------------------------------------------------------- */

/** What a status tells: words have arrived. */
struct velo_dimmnet_status {
    uint8_t kind;   /**< VELO_DIMMNET_KIND_WRITE: a peer's send or put. VELO_DIMMNET_KIND_ANSWER:
                         a get. 0: a load or store. */
    uint8_t memory; /**< Where the words are, enum velo_dimmnet_memory. */
    uint8_t tag;    /**< Its tag. */
    uint8_t wid;    /**< The process that they came from, */
    uint16_t lid;   /**< and its board. */
    uint16_t len_words; /**< Words of the payload of the packet that asked for the status. */
};

/**
 * Take the next status if one is there.
 *
 * @param context  An open context.
 * @param status   Receives it; may be NULL.
 * @retval VELO_OK       Taken.
 * @retval VELO_AGAIN    None is there.
 * @retval VELO_ERR_ARG  context is NULL.
 * @thread The thread that uses the context.
 * @path hot
 * @see velo_dimmnet_wait
 */
VELO_API int velo_dimmnet_poll(struct velo_dimmnet *context, struct velo_dimmnet_status *status);

/**
 * Take the next status, waiting for one. Spins for a while, as $VELO_SPIN_NS says, then sleeps
 * until a sender wakes it.
 *
 * @param context     An open context.
 * @param status      Receives it; may be NULL.
 * @param timeout_ns  Longest wait, in ns; 0 polls once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              Taken.
 * @retval VELO_TIMEOUT         None came in the time given.
 * @retval VELO_ERR_ARG         context is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_PEER_CLOSED None is there, and the own board has been taken away.
 * @retval VELO_ERR_PEER_DEAD   None is there, and the process that made the own board has ended.
 * @retval VELO_ERR_INTERRUPTED None came; a signal handler ran.
 * @thread The thread that uses the context.
 * @path hot
 * @source DIMMnet-2 paper, section 3.2
 * @see velo_dimmnet_poll
 */
VELO_API int velo_dimmnet_wait(struct velo_dimmnet *context, struct velo_dimmnet_status *status,
                               int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
