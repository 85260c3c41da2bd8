/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file host_io.h
 * @brief The functions of a node's host port that transports need.
 *
 * A back gives a process contexts of a node. The transport itself reads what a context has in
 * memory, its receive ring and its notification queue; for the rest it calls the back. sim.c is the
 * back for the simulated cluster, driver.c that for a card with a kernel driver. Layouts are those
 * of the spec, registers those of spec/velo_regs.rdl.
 *
 * All functions may be called by any thread, but for one context only one at a time. Those that
 * return a status have told host_fail() why when they fail.
 */
#ifndef VELO_NIC_HOST_IO_H
#define VELO_NIC_HOST_IO_H

#include <stdbool.h>
#include <stdint.h>

#include <velo/velo.h>

/** The unit of registered memory [bytes]. */
#define HOST_PAGE_BYTES UINT64_C(4096)

/** A context that this process has open. The back fills it in; it may keep more behind it. */
struct host_context {
    uint32_t node;
    uint32_t number; /**< Of the context, at its node. */
    /** How often it has been opened: messages to an earlier owner may still come in. */
    uint32_t opened;
    uint32_t ring_slots;    /**< A power of two. */
    const uint64_t *ring;   /**< Of lines, as the node writes them. */
    uint64_t *queue;        /**< Of notifications of two words; NULL: not open. */
    uint32_t queue_entries; /**< A power of two. */
    void *back;             /**< The back's own. */
    /** Lines and notifications that the transport has taken out: what comes after them is new to a
     *  thread that waits. Any thread may look. */
    uint64_t ring_head, queue_head;
};

/** Offset of context 0's among the node's registers (spec/velo_regs.rdl). */
#define HOST_REG_READ_POINTERS UINT64_C(0x8100000)
#define HOST_REG_QUEUE_READ_POINTERS UINT64_C(0x8400000)

/** Work of the host itself, for a back that charges time for it. */
enum host_work {
    HOST_CALL, /**< A call of the library. */
    HOST_COPY, /**< Copying one line from or to memory. */
};

struct host_io {
    /* ---- contexts ---- */

    /** The place of this process: its node, which replaces node 0, and the contexts that it takes
     * where the caller names none: `first`, and every `step` from there on. */
    void (*place)(int *node, uint32_t *first, uint32_t *step);
    /** Open a context for a port that is on a node, or (`is_unit`) for its RMA unit.
     * VELO_ERR_STATE: there is no node to be had; VELO_ERR_FULL: all its contexts are in use. */
    int (*context_open)(uint32_t node, velo_id_t id, bool is_unit, struct host_context *context);
    /** From now on the node drops all that comes for it. */
    void (*context_close)(struct host_context *context);
    /** Give it an empty notification queue. If it has one already, that is no error.
     *  VELO_ERR_STATE. */
    int (*queue_open)(struct host_context *context);

    /* ---- towards the node ---- */

    /** May the context send to another one, (node << 8 | number)? What is stored for one to which
     * it may not is dropped. */
    bool (*may_send)(const struct host_context *context, uint16_t target);

    /** Store a line of 1 to 8 words to a unit of the node (VELO_UNIT_), as one write. `address`: as
     *  layout `address` for messages; 0 for descriptors. False: the way to the node is full, and
     *  nothing was written. A card that is gone takes everything, and nothing comes of it. */
    bool (*store)(const struct host_context *context, unsigned unit, uint64_t address,
                  const uint64_t *line, uint32_t len_words);
    /** Write one of the context's own registers. `offset`: of context 0's. */
    void (*register_write)(const struct host_context *context, uint64_t offset, uint64_t value);
    /** Enter memory of this process into the node's table: whole pages, which need not be there
     *  before they are accessed. `rights`: as layout `registered_page`. False: there is no room. */
    bool (*memory_enter)(const struct host_context *context, uint64_t address, uint64_t len_bytes,
                         uint64_t rights, uint32_t *first_page);
    /** Take the memory out again. The node does not access it any more when this returns. */
    void (*memory_withdraw)(const struct host_context *context, uint32_t first_page);
    /** Does an entry name addresses, whatever is mapped there? Else it names memory, and is void
     * once any of that is unmapped. */
    bool enters_addresses;

    /* ---- what comes, for all contexts of this process ---- */

    /** Call `take` after each poll(), wait() and sleep of this process, in the thread that made it.
     *  To be called once, before a context is opened. */
    void (*on_news)(void (*take)(void));
    /** The caller has looked in vain. Return when another look may make sense. */
    void (*poll)(void);
    /** Wait until something may have come, at most that long. True: a signal handler ran. */
    bool (*wait)(int64_t timeout_ns);

    /* ---- what comes, for one context ---- */

    /** A descriptor that poll() shows readable once something has come behind what `arm` was told.
     *  -1: there is none; then whoever waits has to poll(). */
    int (*descriptor)(const struct host_context *context);
    /** Before a wait for the descriptor. False: something is there already, or may be. */
    bool (*arm)(const struct host_context *context);

    /* ---- hints ---- */

    /** The calling thread has done this work: the host model lets it cost virtual time. Where time
     *  is real the call does nothing. */
    void (*work)(enum host_work work);
    /** The calling thread has found a message, so its polls so far do not count as idle. */
    void (*found)(void);
};

/** The back of this process: the simulated cluster if $VELO_SIM names one, else the card. It is
 *  chosen when the plug-in is loaded. */
extern const struct host_io *host_io;

extern const struct host_io host_io_sim;
extern const struct host_io host_io_card;

/** May the context send to another one, (node << 8 | number)? VELO_ERR_ACCESS, told, if not. */
int host_check_grant(const struct host_context *context, uint16_t target);

/** Enter the whole pages that memory lies in; as `memory_enter`. */
bool host_enter_pages(const struct host_context *context, uint64_t address, uint64_t len_bytes,
                      uint64_t rights, uint32_t *first_page);

/** Keeps a sentence for velo_last_error() and returns the status. The transport sets it before it
 *  calls a back. */
extern int (*host_fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
