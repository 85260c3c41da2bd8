/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file bcast.h
 * @brief One to many: messages from one writer to up to 64 readers, with one copy in memory.
 * @example tutorial/broadcast.c
 *
 * A **ring** has one writer, which opens it, and readers, which join and leave at any time. A
 * message is written once, into shared memory, and each reader takes it from there at its own pace.
 * The ring takes the place of one connection for each reader. It is natively in shared memory; no
 * transport carries it.
 *
 * What happens when a reader is slower than the writer is chosen when the ring is opened:
 *  - by default the writer waits for the slowest reader: nothing is lost, and readers may look at
 *    messages in place with velo_bcast_peek();
 *  - with VELO_BCAST_DROP the writer never waits: it overwrites the oldest message. A reader that
 *    was overtaken gets VELO_ERR_MISSED once; velo_bcast_missed() counts what it has missed, and it
 *    goes on with the newest message. It takes messages as copies only, since the writer may
 *    overwrite them at any time: velo_bcast_recv() returns no message that was overwritten while it
 *    was copied.
 *
 * Promises:
 *  - all readers see the messages in the order in which they were sent, intact, and none twice;
 *  - a reader that joins gets the messages that are sent from then on, and no earlier one;
 *  - a reader that has died is dropped: it holds the writer up for a moment, never for ever. A
 *    reader that is stopped, or never takes its messages, holds up a writer that waits for the
 *    slowest reader, within the time that the writer gives; no reader holds up another;
 *  - a writer that closes or dies gives its readers an error, after the last message that it sent,
 *    and never a hang;
 *  - readers that wait for a message spin for a short while and then sleep. The writer wakes all of
 *    them with one system call;
 *  - lengths and places that a peer has written are checked before they are used.
 *
 * Those who may join a ring can write to the words that say how far each reader is, so they can
 * make the writer wait, or no longer wait, for others. Readers cannot change messages by mistake:
 * they have the messages mapped for reading only.
 *
 * Threads, processes, signals, waiting and statuses are as in velo.h: one thread at a time uses a
 * ring's writer, one thread at a time uses a reader; any number of readers may be in one process;
 * after fork() the child joins anew.
 */
#ifndef VELO_BCAST_H
#define VELO_BCAST_H

#include <velo/velo.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The writer of a ring; opaque. */
struct velo_bcast;
/** A reader of a ring; opaque. */
struct velo_bcast_reader;

#define VELO_BCAST_READERS_MAX 64u            /**< Most readers of one ring. */
#define VELO_BCAST_MSG_BYTES_MAX (256u << 20) /**< Longest message of any ring. */
#define VELO_BCAST_INLINE_BYTES 48u           /**< Payload that travels in its slot's line. */

/** Flags of a ring. */
enum velo_bcast_flag {
    /** The writer never waits for readers: the slow ones miss messages. */
    VELO_BCAST_DROP = 1,
};

/**
 * How a ring is to be opened or joined. Start from VELO_BCAST_ATTR_INIT and change what you need; a
 * zero in a size means its default. velo_bcast_join() uses domain, node, vpid and group.
 */
struct velo_bcast_attr {
    /** sizeof(struct velo_bcast_attr): a later release may add members. */
    size_t size_bytes;
    /** Name of the domain, as for a port. NULL: $VELO_DOMAIN, else "u<uid>". */
    const char *domain;
    /** Node id of the ring, 0 to 255. Rings and ports have ids of their own: a port may have the
     *  same. */
    int node;
    /** Context id of the ring, 0 to 255. */
    int vpid;
    /** Messages that the ring holds: a power of two, 8 to 16384. Default 256. */
    uint32_t depth_slots;
    /** Longest message in bytes: 1 to VELO_BCAST_MSG_BYTES_MAX. Default 4096. */
    size_t msg_bytes_max;
    /** Bytes for messages above VELO_BCAST_INLINE_BYTES: a power of two, at least twice
     * msg_bytes_max, at most 1 GiB. Default: the least power of two that holds four of the longest
     * messages, and 64 KiB at least. */
    size_t data_bytes;
    /** Readers that may have joined at once: 1 to VELO_BCAST_READERS_MAX. Default 64. */
    uint32_t readers_max;
    /** Name of the group whose members may join too. NULL: this user only. */
    const char *group;
    /** Of enum velo_bcast_flag, or-ed. */
    uint32_t flags;
};

/** Attributes that ask for the defaults and context 0 of node 0. */
#define VELO_BCAST_ATTR_INIT {sizeof(struct velo_bcast_attr), NULL, 0, 0, 0, 0, 0, 0, NULL, 0}

/**
 * Open a ring, as its writer.
 *
 * Creates the segment `velo.<domain>+bcast.<node>.<vpid>` in /dev/shm ($VELO_SHM_DIR if set). One
 * that a dead process left under that name is removed first. All memory of the ring is allocated
 * here.
 *
 * @param attr   How to open it; NULL asks for the defaults. Not kept.
 * @param bcast  Receives the ring, owned by the caller until velo_bcast_close().
 * @retval VELO_OK            The ring is open and can be joined.
 * @retval VELO_ERR_ARG       bcast is NULL, an attribute is outside its range, a flag is unknown,
 * or the group does not exist.
 * @retval VELO_ERR_IN_USE    A live process has this ring open.
 * @retval VELO_ERR_ACCESS    The directory is not writable, or another user's file has the name.
 * @retval VELO_ERR_NO_SPACE  The shared-memory file system is full.
 * @retval VELO_ERR_NO_MEMORY Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM    Another system call failed.
 * @thread Any thread.
 * @path cold
 * @see velo_bcast_close, velo_bcast_join
 */
VELO_API int velo_bcast_open(const struct velo_bcast_attr *attr, struct velo_bcast **bcast);

/**
 * Close a ring.
 *
 * Readers still take the messages that they have not taken yet, and then get VELO_ERR_PEER_CLOSED.
 * A reservation that is open is dropped.
 *
 * @param bcast  The ring; NULL is allowed and does nothing.
 * @retval VELO_OK  Closed.
 * @thread One thread, while no other uses the ring.
 * @path cold
 * @see velo_bcast_open
 */
VELO_API int velo_bcast_close(struct velo_bcast *bcast);

/**
 * The id of a ring.
 *
 * @param bcast  An open ring.
 * @return The id, VELO_ID() of its node and vpid; messages name it as their source.
 * @thread Any thread.
 * @path hot
 */
VELO_API velo_id_t velo_bcast_id(const struct velo_bcast *bcast);

/**
 * Count the readers that have joined and live. Those that have died are dropped. System calls, one
 * for each reader.
 *
 * @param bcast  An open ring.
 * @return The number, 0 to VELO_BCAST_READERS_MAX, or an error:
 * @retval VELO_ERR_ARG  bcast is NULL.
 * @thread The thread that sends on the ring.
 * @path cold
 */
VELO_API int velo_bcast_readers(struct velo_bcast *bcast);

/**
 * Send a message to all readers if there is room now.
 *
 * Without readers the message is sent to nobody, and there is always room.
 *
 * @param bcast      The ring.
 * @param buf        Payload; may be NULL when len_bytes is 0.
 * @param len_bytes  Payload length, 0 to the ring's msg_bytes_max.
 * @param tag        Delivered with the message.
 * @retval VELO_OK           Sent: each reader finds it behind those before it.
 * @retval VELO_AGAIN        The slowest reader has left no room; nothing was sent. Never with
 *                           VELO_BCAST_DROP.
 * @retval VELO_ERR_ARG      bcast is NULL, or buf is NULL with a length above 0.
 * @retval VELO_ERR_STATE    A reservation is open.
 * @retval VELO_ERR_TOO_BIG  len_bytes is above the ring's msg_bytes_max.
 * @thread One thread at a time per ring.
 * @path hot
 * @see velo_bcast_send
 */
VELO_API int velo_bcast_try_send(struct velo_bcast *bcast, const void *buf, size_t len_bytes,
                                 uint8_t tag);

/**
 * Send a message to all readers, waiting while the slowest of them leaves no room.
 *
 * The wait drops readers that have died.
 *
 * @param bcast       The ring.
 * @param buf         Payload; may be NULL when len_bytes is 0.
 * @param len_bytes   Payload length, 0 to the ring's msg_bytes_max.
 * @param tag         Delivered with the message.
 * @param timeout_ns  Longest wait for room, in ns; 0 tries once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              Sent; see velo_bcast_try_send().
 * @retval VELO_TIMEOUT         There was no room in the time given; nothing was sent.
 * @retval VELO_ERR_ARG         bcast is NULL, buf is NULL with a length above 0, or timeout_ns is
 *                              below -1.
 * @retval VELO_ERR_STATE       A reservation is open.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above the ring's msg_bytes_max.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran while this call slept, or
 *                              velo_bcast_interrupt(); nothing was sent.
 * @thread One thread at a time per ring.
 * @path hot
 * @see velo_bcast_try_send
 */
VELO_API int velo_bcast_send(struct velo_bcast *bcast, const void *buf, size_t len_bytes,
                             uint8_t tag, int64_t timeout_ns);

/**
 * Reserve room in the ring to build a message in place, if there is room now.
 *
 * At most one reservation is open on a ring, until velo_bcast_commit().
 *
 * @param bcast      The ring.
 * @param len_bytes  The most that will be committed, 0 to the ring's msg_bytes_max.
 * @param buf        Receives the address to write to, at least 8-byte aligned; owned by the caller
 *                   until velo_bcast_commit() or velo_bcast_close().
 * @retval VELO_OK           Reserved.
 * @retval VELO_AGAIN        The slowest reader has left no room. Never with VELO_BCAST_DROP.
 * @retval VELO_ERR_ARG      An argument is NULL.
 * @retval VELO_ERR_STATE    A reservation is open already.
 * @retval VELO_ERR_TOO_BIG  len_bytes is above the ring's msg_bytes_max.
 * @thread One thread at a time per ring.
 * @path hot
 * @see velo_bcast_reserve, velo_bcast_commit
 */
VELO_API int velo_bcast_try_reserve(struct velo_bcast *bcast, size_t len_bytes, void **buf);

/**
 * Reserve room in the ring to build a message in place, waiting while there is none.
 *
 * @param bcast       The ring.
 * @param len_bytes   The most that will be committed, 0 to the ring's msg_bytes_max.
 * @param buf         Receives the address to write to; see velo_bcast_try_reserve().
 * @param timeout_ns  Longest wait for room, in ns; 0 tries once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              Reserved.
 * @retval VELO_TIMEOUT         There was no room in the time given; nothing is reserved.
 * @retval VELO_ERR_ARG         An argument is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_STATE       A reservation is open already.
 * @retval VELO_ERR_TOO_BIG     len_bytes is above the ring's msg_bytes_max.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran while this call slept, or
 *                              velo_bcast_interrupt(); nothing is reserved.
 * @thread One thread at a time per ring.
 * @path hot
 * @see velo_bcast_try_reserve, velo_bcast_commit
 */
VELO_API int velo_bcast_reserve(struct velo_bcast *bcast, size_t len_bytes, void **buf,
                                int64_t timeout_ns);

/**
 * Send the message that was built in a reservation.
 *
 * @param bcast      The ring.
 * @param len_bytes  Its length, at most what was reserved.
 * @param tag        Delivered with the message.
 * @retval VELO_OK           Sent; see velo_bcast_try_send().
 * @retval VELO_ERR_ARG      bcast is NULL.
 * @retval VELO_ERR_STATE    No reservation is open.
 * @retval VELO_ERR_TOO_BIG  len_bytes is above what was reserved; the reservation stays open.
 * @thread One thread at a time per ring.
 * @path hot
 * @see velo_bcast_try_reserve, velo_bcast_reserve
 */
VELO_API int velo_bcast_commit(struct velo_bcast *bcast, size_t len_bytes, uint8_t tag);

/**
 * End the writer's wait for room: the one that is under way, or else the next.
 *
 * velo_bcast_send() or velo_bcast_reserve() then returns VELO_ERR_INTERRUPTED, once, and nothing
 * was sent; a wait that was about to sleep ends a tenth of a second later. Calls that find room, or
 * do not wait, take no notice. The ring must stay open until the call has returned, also where the
 * wait that it ends is the last one.
 *
 * @param bcast  An open ring.
 * @thread Any thread, and signal handlers.
 * @path cold
 * @see velo_bcast_send, velo_bcast_reader_interrupt
 */
VELO_API void velo_bcast_interrupt(struct velo_bcast *bcast);

/**
 * Join a ring, as one of its readers, waiting for it to be opened.
 *
 * The first message that the reader gets is the first one sent from now on. The writer takes no
 * part: it may be stopped meanwhile.
 *
 * @param attr        Domain, node, vpid and group of the ring; NULL asks for the defaults. Not
 *                    kept.
 * @param reader      Receives the reader, owned by the caller until velo_bcast_leave().
 * @param timeout_ns  Longest wait for the ring to be open, in ns; 0 tries once, VELO_FOREVER waits
 *                    without limit.
 * @retval VELO_OK              Joined.
 * @retval VELO_ERR_ARG         reader is NULL, an attribute is outside its range, the group does
 * not exist, or timeout_ns is below -1.
 * @retval VELO_ERR_NO_PEER     No such ring was opened in the time given.
 * @retval VELO_ERR_PEER_CLOSED Its writer has closed it.
 * @retval VELO_ERR_PEER_DEAD   Its writer has died.
 * @retval VELO_ERR_FULL        The ring has readers_max readers.
 * @retval VELO_ERR_ACCESS      The ring belongs to another user, and not to a group of both, or
 *                              somebody has removed the file that tells whether its writer lives.
 * @retval VELO_ERR_VERSION     The writer has another layout of segments.
 * @retval VELO_ERR_CORRUPT     The segment makes no sense.
 * @retval VELO_ERR_NO_MEMORY   Out of memory or mappings.
 * @retval VELO_ERR_SYSTEM      Another system call failed.
 * @retval VELO_ERR_INTERRUPTED A signal handler ran during the wait.
 * @thread Any thread.
 * @path cold
 * @see velo_bcast_leave, velo_bcast_open
 */
VELO_API int velo_bcast_join(const struct velo_bcast_attr *attr, struct velo_bcast_reader **reader,
                             int64_t timeout_ns);

/**
 * Leave a ring. The writer no longer waits for this reader.
 *
 * @param reader  The reader; NULL is allowed and does nothing. A message that it holds is released.
 * @retval VELO_OK  Left.
 * @thread One thread, while no other uses the reader.
 * @path cold
 * @see velo_bcast_join
 */
VELO_API int velo_bcast_leave(struct velo_bcast_reader *reader);

/**
 * Take the next message into a buffer if one is there.
 *
 * A writer that has died is noticed only now and then by a reader that never waits;
 * velo_bcast_status() finds out at once.
 *
 * @param reader     The reader.
 * @param buf        Receives the payload; may be NULL when cap_bytes is 0. With VELO_BCAST_DROP its
 *                   contents are undefined after any status but VELO_OK.
 * @param cap_bytes  Size of buf.
 * @param msg        Receives length, tag, and the ring as source; its data points to buf. May be
 *                   NULL.
 * @retval VELO_OK              A message was taken.
 * @retval VELO_AGAIN           None is there.
 * @retval VELO_ERR_MISSED      VELO_BCAST_DROP: messages were overwritten before this reader took
 *                              them; velo_bcast_missed() counts them. The next call goes on with
 * the newest message.
 * @retval VELO_ERR_ARG         reader is NULL, or buf is NULL with cap_bytes above 0.
 * @retval VELO_ERR_STATE       A message is held by velo_bcast_peek().
 * @retval VELO_ERR_TOO_BIG     The next message does not fit; it stays, and msg holds its length
 * and tag.
 * @retval VELO_ERR_PEER_CLOSED The writer closed the ring, and all its messages were taken.
 * @retval VELO_ERR_PEER_DEAD   The writer's process has ended, and all its messages were taken.
 * @retval VELO_ERR_CORRUPT     The ring holds what no correct writer writes, or this reader's place
 *                              was damaged and the writer has dropped it.
 * @thread One thread at a time per reader.
 * @path hot
 * @see velo_bcast_recv, velo_bcast_try_peek
 */
VELO_API int velo_bcast_try_recv(struct velo_bcast_reader *reader, void *buf, size_t cap_bytes,
                                 struct velo_msg *msg);

/**
 * Take the next message into a buffer, waiting for one.
 *
 * Spins for a while, as $VELO_SPIN_NS says, then sleeps until the writer wakes it.
 *
 * @param reader      The reader.
 * @param buf         Receives the payload; see velo_bcast_try_recv().
 * @param cap_bytes   Size of buf.
 * @param msg         Receives length, tag and source. May be NULL.
 * @param timeout_ns  Longest wait, in ns; 0 polls once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              A message was taken.
 * @retval VELO_TIMEOUT         None came in the time given.
 * @retval VELO_ERR_MISSED      VELO_BCAST_DROP: as velo_bcast_try_recv().
 * @retval VELO_ERR_ARG         reader is NULL, buf is NULL with cap_bytes above 0, or timeout_ns is
 *                              below -1.
 * @retval VELO_ERR_STATE       A message is held by velo_bcast_peek().
 * @retval VELO_ERR_TOO_BIG     The next message does not fit; it stays.
 * @retval VELO_ERR_PEER_CLOSED The writer closed the ring, and all its messages were taken.
 * @retval VELO_ERR_PEER_DEAD   The writer's process has ended, and all its messages were taken.
 * @retval VELO_ERR_CORRUPT     As velo_bcast_try_recv().
 * @retval VELO_ERR_INTERRUPTED None came; a signal handler ran, or velo_bcast_reader_interrupt().
 * @thread One thread at a time per reader.
 * @path hot
 * @see velo_bcast_try_recv
 */
VELO_API int velo_bcast_recv(struct velo_bcast_reader *reader, void *buf, size_t cap_bytes,
                             struct velo_msg *msg, int64_t timeout_ns);

/**
 * Look at the next message in place if one is there. Not with VELO_BCAST_DROP.
 *
 * The writer does not overwrite the message until velo_bcast_release().
 *
 * @param reader  The reader.
 * @param msg     Receives address, length, tag and source. The payload is for reading only.
 * @retval VELO_OK              A message is held; call velo_bcast_release() when done.
 * @retval VELO_AGAIN           None is there.
 * @retval VELO_ERR_ARG         An argument is NULL.
 * @retval VELO_ERR_STATE       A message is held already, or the ring drops messages.
 * @retval VELO_ERR_PEER_CLOSED As velo_bcast_try_recv().
 * @retval VELO_ERR_PEER_DEAD   As velo_bcast_try_recv().
 * @retval VELO_ERR_CORRUPT     As velo_bcast_try_recv().
 * @thread One thread at a time per reader.
 * @path hot
 * @see velo_bcast_peek, velo_bcast_release
 */
VELO_API int velo_bcast_try_peek(struct velo_bcast_reader *reader, struct velo_msg *msg);

/**
 * Look at the next message in place, waiting for one. Not with VELO_BCAST_DROP.
 *
 * @param reader      The reader.
 * @param msg         Receives address, length, tag and source.
 * @param timeout_ns  Longest wait, in ns; 0 polls once, VELO_FOREVER waits without limit.
 * @retval VELO_OK              A message is held; call velo_bcast_release() when done.
 * @retval VELO_TIMEOUT         None came in the time given.
 * @retval VELO_ERR_ARG         An argument is NULL, or timeout_ns is below -1.
 * @retval VELO_ERR_STATE       A message is held already, or the ring drops messages.
 * @retval VELO_ERR_PEER_CLOSED As velo_bcast_try_recv().
 * @retval VELO_ERR_PEER_DEAD   As velo_bcast_try_recv().
 * @retval VELO_ERR_CORRUPT     As velo_bcast_try_recv().
 * @retval VELO_ERR_INTERRUPTED None came; a signal handler ran, or velo_bcast_reader_interrupt().
 * @thread One thread at a time per reader.
 * @path hot
 * @see velo_bcast_try_peek, velo_bcast_release
 */
VELO_API int velo_bcast_peek(struct velo_bcast_reader *reader, struct velo_msg *msg,
                             int64_t timeout_ns);

/**
 * Be done with the message held by velo_bcast_peek().
 *
 * @param reader  The reader.
 * @retval VELO_OK         Released; the pointers to it are invalid now.
 * @retval VELO_ERR_ARG    reader is NULL.
 * @retval VELO_ERR_STATE  No message is held.
 * @thread One thread at a time per reader.
 * @path hot
 * @see velo_bcast_try_peek
 */
VELO_API int velo_bcast_release(struct velo_bcast_reader *reader);

/**
 * End a reader's wait: the one that is under way, or else the next.
 *
 * velo_bcast_recv() or velo_bcast_peek() then returns VELO_ERR_INTERRUPTED, once; a wait that was
 * about to sleep ends a tenth of a second later. Calls that find a message, or do not wait, take no
 * notice, and neither do other readers. The reader must not leave until the call has returned, also
 * where the wait that it ends is the last one.
 *
 * @param reader  The reader.
 * @thread Any thread, and signal handlers.
 * @path cold
 * @see velo_bcast_recv, velo_bcast_interrupt
 */
VELO_API void velo_bcast_reader_interrupt(struct velo_bcast_reader *reader);

/**
 * How many messages a reader has missed since it joined.
 *
 * @param reader  The reader.
 * @return The number; always 0 without VELO_BCAST_DROP.
 * @thread The thread that uses the reader.
 * @path cold
 * @see velo_bcast_try_recv
 */
VELO_API uint64_t velo_bcast_missed(const struct velo_bcast_reader *reader);

/**
 * Does the writer of a ring still live? A system call.
 *
 * @param reader  The reader.
 * @retval VELO_OK              It does.
 * @retval VELO_ERR_ARG         reader is NULL.
 * @retval VELO_ERR_PEER_CLOSED It closed the ring; messages may still be there to be taken.
 * @retval VELO_ERR_PEER_DEAD   Its process has ended; messages may still be there to be taken.
 * @thread One thread at a time per reader.
 * @path cold
 */
VELO_API int velo_bcast_status(struct velo_bcast_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
