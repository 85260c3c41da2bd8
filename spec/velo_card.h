/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * What the driver of a card (driver/, velo.ko) and user space share. Layouts of ring, queue, pages
 * and descriptors are those of spec/velo.toml, registers those of spec/velo_regs.rdl.
 *
 * One open of /dev/veloN is one context of the card's node, once VELO_CARD_TAKE has succeeded. It
 * belongs to the process that took it: what it has mapped is not inherited by fork(), and in
 * another process every call but close() and poll() fails with EPERM. When the process ends, in
 * whatever way, or the last descriptor is closed, the node forgets the context.
 *
 * ENODEV: the card was reset or is gone. poll() then gives POLLHUP, and an access to what is mapped
 * SIGBUS; close the file and open it anew.
 */
#ifndef VELO_CARD_H
#define VELO_CARD_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VELO_CARD_ANY 0xffffffffu

/**
 * struct velo_card_take - take a context
 * @spec_hash: in: VELO_SPEC_HASH of <velo/spec.h>
 * @number: in: the context that is wanted, or VELO_CARD_ANY; out: its number
 * @store_lines: in: how many stores at most shall be under way at once; out: how many may be, 0 if
 *	all of the card's lines are given away. See VELO_CARD_STORES.
 * @node: out: the number of the card's node
 * @opened: out: how often this context has been taken, this time included
 * @ring_slots: out: slots of 64 bytes in the receive ring, a power of two
 * @queue_entries: out: entries of 16 bytes in the notification queue, a power of two
 */
struct velo_card_take {
	__u64 spec_hash;
	__u32 number;
	__u32 store_lines;
	__u32 node;
	__u32 opened;
	__u32 ring_slots;
	__u32 queue_entries;
};

/**
 * struct velo_card_memory - memory of the process to enter into the node's table of pages
 * @address: in: its address, a multiple of 4096
 * @len_bytes: in: its length, a multiple of 4096
 * @rights: in: as in layout registered_page, not 0
 * @one_peer: in: 1: only @peer and the owner may access it; 0: all
 * @peer: in: id of the peer, node in the upper byte; 0 if @one_peer is 0
 * @first_page: out: entry of the table for the first page; the others follow
 */
struct velo_card_memory {
	__u64 address;
	__u64 len_bytes;
	__u32 rights;
	__u32 one_peer;
	__u32 peer;
	__u32 first_page;
};

/**
 * struct velo_card_arm - say what has been seen, before sleeping in poll()
 * @ring_head: in: slots taken out of the ring so far, modulo 65536
 * @queue_head: in: entries taken out of the queue so far, modulo 65536
 * @ready: out: 1: there is more already
 * @reserved: in: 0
 *
 * From now on poll() gives POLLIN when the ring has a slot, or the queue an entry, behind these.
 */
struct velo_card_arm {
	__u16 ring_head;
	__u16 queue_head;
	__u16 ready;
	__u16 reserved;
};

/*
 * EBUSY: another process has the wanted context. ENOSPC: no context is free. EDQUOT: those that are
 * free are kept for other users. EEXIST: this file has one already. EPROTO: the caller was built from another spec. EINVAL: there is no such context.
 */
#define VELO_CARD_TAKE _IOWR('V', 0x40, struct velo_card_take)

/*
 * The pages are pinned until VELO_CARD_WITHDRAW, and counted against RLIMIT_MEMLOCK. When a part of
 * them is unmapped or moved, the node is first made to forget all of them. They keep their place in
 * the table until VELO_CARD_WITHDRAW.
 *
 * EINVAL: not whole pages, no right, or a peer that is none. ENOMEM: beyond RLIMIT_MEMLOCK. ENOSPC:
 * no room in the table. EDQUOT: what room there is is kept for other users. EFAULT: not all of it is memory that can be pinned with these rights.
 */
#define VELO_CARD_ENTER _IOWR('V', 0x41, struct velo_card_memory)

/*
 * The argument points to the first page. The node does not access the memory any more when this
 * returns. ENOENT: this context has entered nothing there.
 */
#define VELO_CARD_WITHDRAW _IOW('V', 0x42, __u32)

#define VELO_CARD_ARM _IOWR('V', 0x43, struct velo_card_arm)

/*
 * Offsets for mmap(), pread() and pwrite(): a kind and what it is about. Mappings are shared ones.
 * Before VELO_CARD_TAKE there is nothing (EBADFD).
 */
#define VELO_CARD_KIND_SHIFT 40
#define VELO_CARD_OFFSET(kind, rest) ((__u64)(kind) << VELO_CARD_KIND_SHIFT | (__u64)(rest))

/* mmap(), PROT_READ: the receive ring. */
#define VELO_CARD_RING 0
/* mmap(): the notification queue. */
#define VELO_CARD_QUEUE 1
/* mmap(): page whose first word is the ring's read pointer, for stores only. */
#define VELO_CARD_RING_POINTER 2
/* mmap(): page whose first word is the queue's read pointer, for stores only. */
#define VELO_CARD_QUEUE_POINTER 3
/*
 * mmap(): page to store descriptors to; write-combining, for stores only. Each store takes a line,
 * see VELO_CARD_STORES. pwrite() of 24 or 40 bytes: one descriptor.
 *
 * The node refuses a descriptor that the host has split, as it may do when the store is
 * interrupted, with notifications of an error. One that was refused so can be stored again. A
 * pwrite() splits none, unless the host splits what no interrupt comes between.
 */
#define VELO_CARD_DESCRIPTORS 4
/*
 * mmap(): pages to store lines to, one for each target; write-combining, for stores only. The rest
 * of the offset is that of the target page, (node << 8 | context) << 12. Without a grant for the
 * target EPERM, and SIGBUS when the grant is taken away later. Each store takes a line. pwrite() of
 * 8 to 64 bytes, whole words: one line, at an address as in layout `address`.
 *
 * pwrite() is for contexts that have no lines of their own: it waits until the node has taken the
 * line, and is no faster for it. EAGAIN: the node did not take it in time; the line is lost.
 */
#define VELO_CARD_TARGETS 5
/*
 * pread() of 8 bytes: layout pcie_stores, counts of stores that came to the card and that have gone
 * on. A line of the context's share is free again when the count `taken` has reached what
 * `accepted` was when this was read after the store. A context that never has more than its
 * `store_lines` under way loses none; of others the card drops what it must hold for too long.
 */
#define VELO_CARD_STORES 6

#endif
