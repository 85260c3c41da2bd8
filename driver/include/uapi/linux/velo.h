/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * Calls of /dev/veloN, a card of a VELO interconnect: what its driver and user space share.
 *
 * One open of /dev/veloN is one context of the card's node, once VELO_CARD_TAKE has succeeded. It
 * belongs to the process that took it: what it has mapped is not inherited by fork(), and in
 * another process every call but close() and poll() fails with EPERM. When the process ends, in
 * whatever way, or the last descriptor is closed, the node forgets the context.
 *
 * ENODEV: the card was reset or is gone, or the machine slept. poll() then gives POLLHUP, and what
 * is mapped shows nothing and takes stores that go nowhere; close the file and open it anew.
 *
 * Structs may grow at their end, and so each begins with its size. A process sets @size to the size
 * of the struct that it was built with, and all that it does not know to 0. What its struct lacks,
 * the driver takes as 0. What the driver's lacks has to be 0, else E2BIG; the driver leaves it as
 * it is, so 0 in what a process reads there means that the driver does not tell. EINVAL: @size is
 * less than the struct's first version has, or @flags or a reserved member is not 0 where this
 * driver knows of nothing. ENOTTY: this driver does not know the call. So a call once made stays as
 * it is.
 */
#ifndef _UAPI_LINUX_VELO_H
#define _UAPI_LINUX_VELO_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Numbers 0xB9 00 to 1F; see Documentation/userspace-api/velo.rst. */
#define VELO_CARD_IOC 0xB9

#define VELO_CARD_ANY 0xffffffffu

/*
 * Layouts of memory that card and process share, as the project's specification has them. When one
 * changes, its number does; a process must not go on with one that it does not know.
 *
 * Slots of the ring, and lines that are stored to targets; entries of the queue; descriptors, with
 * the addresses that they hold; the word of VELO_CARD_STORES.
 */
#define VELO_CARD_RING_LAYOUT 1
#define VELO_CARD_QUEUE_LAYOUT 1
#define VELO_CARD_DESCRIPTOR_LAYOUT 1
#define VELO_CARD_STORES_LAYOUT 1

/**
 * struct velo_card_take - take a context
 * @size: in: size of the struct
 * @flags: in: 0
 * @number: in: the context that is wanted, or VELO_CARD_ANY; out: its number
 * @store_lines: in: how many stores at most shall be under way at once; out: how many may be, 0 if
 *	all of the card's lines are given away, or its pages cannot be mapped. See VELO_CARD_STORES.
 * @node: out: the number of the card's node
 * @opened: out: how often this context has been taken, this time included
 * @ring_slots: out: slots of 64 bytes in the receive ring, a power of two
 * @queue_entries: out: entries of 16 bytes in the notification queue, a power of two
 * @ring_layout: out: see VELO_CARD_RING_LAYOUT
 * @queue_layout: out: likewise
 * @descriptor_layout: out: likewise
 * @stores_layout: out: likewise
 */
struct velo_card_take {
	__u32 size;
	__u32 flags;
	__u32 number;
	__u32 store_lines;
	__u32 node;
	__u32 opened;
	__u32 ring_slots;
	__u32 queue_entries;
	__u32 ring_layout;
	__u32 queue_layout;
	__u32 descriptor_layout;
	__u32 stores_layout;
};

/* Rights to memory, or-ed. */
#define VELO_CARD_READ 1
#define VELO_CARD_WRITE 2
#define VELO_CARD_ATOMIC 4

/* Only @peer and the owner may access the memory; without it all may. */
#define VELO_CARD_ONE_PEER 1

/**
 * struct velo_card_enter - memory of the process to enter into the node's table of pages
 * @size: in: size of the struct
 * @flags: in: VELO_CARD_ONE_PEER or 0
 * @address: in: its address, a multiple of 4096
 * @len_bytes: in: its length, a multiple of 4096
 * @rights: in: VELO_CARD_READ and so on, not 0
 * @peer: in: id of the one peer, node in the upper byte; 0 without VELO_CARD_ONE_PEER
 * @first_page: out: entry of the table for the first page; the others follow
 * @reserved: in: 0
 */
struct velo_card_enter {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 len_bytes;
	__u32 rights;
	__u32 peer;
	__u32 first_page;
	__u32 reserved;
};

/**
 * struct velo_card_withdraw - memory to take out of the table
 * @size: in: size of the struct
 * @flags: in: 0
 * @first_page: in: as VELO_CARD_ENTER told it
 */
struct velo_card_withdraw {
	__u32 size;
	__u32 flags;
	__u32 first_page;
};

/**
 * struct velo_card_arm - say what has been seen, before sleeping in poll()
 * @size: in: size of the struct
 * @flags: in: 0
 * @ring_head: in: slots taken out of the ring so far, modulo 65536
 * @queue_head: in: entries taken out of the queue so far, modulo 65536
 * @ready: out: 1: there is more already
 *
 * From now on poll() gives POLLIN when the ring has a slot, or the queue an entry, behind these.
 */
struct velo_card_arm {
	__u32 size;
	__u32 flags;
	__u16 ring_head;
	__u16 queue_head;
	__u32 ready;
};

/*
 * EBUSY: another process has the wanted context, or another user its number. ENOSPC: no context is
 * free. EDQUOT: those that are free are kept for other users, or the process's cgroup may have no
 * more (rdma.max). EEXIST: this file has one already.
 * EINVAL: there is no such context, or as above.
 */
#define VELO_CARD_TAKE _IO(VELO_CARD_IOC, 0x00)

/*
 * The pages are pinned until VELO_CARD_WITHDRAW, and counted against RLIMIT_MEMLOCK. When a part of
 * them is unmapped or moved, the node is first made to forget all of them. They keep their place in
 * the table until VELO_CARD_WITHDRAW. Where the kernel's pages are larger, those that the memory
 * lies in are pinned and counted; the node reaches what was entered, and nothing beside it.
 *
 * EINVAL: not multiples of 4096, no right, a peer that is none, or as above. ENXIO: the peer is of
 * this card and nobody has its number. ENOMEM: beyond RLIMIT_MEMLOCK. ENOSPC: no room in the table.
 * EDQUOT: the room that is left is kept for other users, or the process's cgroup may have no more
 * regions (rdma.max). EFAULT: not all of it is memory that can
 * be pinned with these rights. EOPNOTSUPP: the card could not reach it, as it is encrypted, or the
 * kernel would give the card copies.
 */
#define VELO_CARD_ENTER _IO(VELO_CARD_IOC, 0x01)

/*
 * The node does not access the memory any more when this returns. ENOENT: this context has entered
 * nothing there.
 */
#define VELO_CARD_WITHDRAW _IO(VELO_CARD_IOC, 0x02)

#define VELO_CARD_ARM _IO(VELO_CARD_IOC, 0x03)

/*
 * Offsets for mmap(), pread() and pwrite(): a kind and what it is about. Mappings are shared ones.
 * Before VELO_CARD_TAKE there is nothing (EBADFD).
 *
 * Pages of the card have 4096 bytes, and neighbours are those of other contexts. So a kernel with
 * larger pages maps none of them: EOPNOTSUPP for the kinds VELO_CARD_RING_POINTER to
 * VELO_CARD_TARGETS. There, and wherever a process likes, pwrite() does the same, by one call for
 * each store.
 */
#define VELO_CARD_KIND_SHIFT 40
#define VELO_CARD_OFFSET(kind, rest) ((__u64)(kind) << VELO_CARD_KIND_SHIFT | (__u64)(rest))

/* mmap(), PROT_READ: the receive ring. */
#define VELO_CARD_RING 0
/* mmap(): the notification queue. */
#define VELO_CARD_QUEUE 1
/*
 * mmap(): page whose first word is the ring's read pointer, for stores only. pwrite() of 8 bytes:
 * the same store.
 */
#define VELO_CARD_RING_POINTER 2
/* The same of the queue's read pointer. */
#define VELO_CARD_QUEUE_POINTER 3
/*
 * pwrite() of 24 or 40 bytes: one descriptor. Without a grant for the context that it names EPERM;
 * other errors as of VELO_CARD_TARGETS.
 *
 * mmap(): page to store descriptors to; write-combining, for stores only. Each store takes a line,
 * see VELO_CARD_STORES. Where a descriptor goes stands in it, so the page is for users to whom one
 * grant gives all contexts of all nodes; else EPERM, and SIGBUS when that is taken away later.
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
 * 8 to 64 bytes, whole words: one line, at an address as in layout `address`. pwrite() of nothing
 * asks whether there is a grant: 0, or EPERM.
 *
 * pwrite() is for contexts that have no lines of their own. The kernel has lines for one at a time,
 * and waits until they are free. EAGAIN: not in time; nothing was stored. EIO: the card has dropped
 * stores of this context, which has more under way than it may, and perhaps this line: it must not
 * be repeated.
 */
#define VELO_CARD_TARGETS 5
/*
 * pread() of 8 bytes: layout pcie_stores, counts of stores that came to the card and that have gone
 * on. A line of the context's share is free again when the count `taken` has reached what
 * `accepted` was when this was read after the store. A context that never has more than its
 * `store_lines` under way loses none; what it stores beyond, the card drops.
 */
#define VELO_CARD_STORES 6
/*
 * pread() of 8 bytes: layout pcie_share, the context's share of lines, and how many of its stores
 * were dropped since it was taken, as that many were under way.
 */
#define VELO_CARD_SHARE 7

#endif
