/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file lives.h
 * @brief Who lives: one lock file for all ports of a domain that belong to one user.
 *
 * A process that has a segment mapped must hear of the death of the segment's owner, and the owner
 * must hear of the death of each process that uses the segment. A descriptor for each would be too
 * many: a process may have hundreds of peers and few descriptors. So each port, reader of a ring
 * and context of a board has a **life**: a random number, its generation. Its process holds a
 * record lock on the byte of that number in a file beside the segments, from which all others learn
 * with one descriptor whether it lives. The lock ends with the process, is not inherited by fork(),
 * and says the same in all namespaces.
 *
 * The file is named "velo.<domain>+lives.<number>". The number is the user's, as his own namespace
 * has it; a next one where another's file has that name, and for ports that are opened to a group.
 * A segment's header has the number, and the file's inode: if somebody takes the names away, those
 * who have the file open go on with it, and no other is taken for it. A life that sends to segments
 * of another such file is locked in that one, too.
 *
 * The kernel keeps the locks of a file in a list. So a look takes about 5 ns more for each life in
 * the file, 5 us where there are 1,000. That is the price for one descriptor. No message pays it: a
 * process looks when it waits, ten times a second, and when it is asked. velo_connect() has the
 * segment's own file open, and looks there.
 *
 * The last process that closes the file removes it. It does so while it has a lock on all bytes,
 * which it gets only if nobody lives there; and whoever joins looks, with its lock held, whether
 * the file still has its name. A file that a killed process left is removed in the same way by a
 * sweep. tests/model/lives.pml is a model of this.
 */
#ifndef VELO_SHM_LIVES_H
#define VELO_SHM_LIVES_H

#include <sys/stat.h>

#include "layout.h"

/** In the name of such a file, behind its domain. */
#define LIVES_INFIX "+lives."

/* After seg_acquire(): */

/** Begin the life of a segment's owner: sets the segment's generation, and the file by which those
 * that use it live. `path` is set. VELO_ERR_ACCESS, VELO_ERR_SYSTEM, ... */
int lives_join(struct segment *segment, const struct seg_domain *domain);
/** Find the file by which the owner of a segment lives, if it is there. False: it is not, or
 * errno says why not. */
bool lives_find(struct segment *segment, const struct stat *st, const struct seg_header *header);
/** The segment is not used here any more; all lives that began with it have ended. */
void lives_close(struct segment *segment);
/** Remove a file in which nobody lives, if it is one. */
void lives_sweep(const char *path);

/* At any time: */

/** Begin a life beside that of a segment's owner. VELO_ERR_SYSTEM. */
VELO_PRIVATE int life_begin(const struct segment *segment, uint32_t *generation);
VELO_PRIVATE void life_end(const struct segment *segment, uint32_t generation);
/** Show the owner of a segment that our port lives, which is about to use it. VELO_ERR_SYSTEM. */
int life_show(const struct segment *theirs, const struct segment *ours);
/** May this life go on? Where that is unknown, nobody is taken for dead. A system call. */
VELO_PRIVATE bool life_goes_on(const struct segment *segment, uint32_t generation);

#endif
