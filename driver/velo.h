/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the files of the driver share.
 *
 * Locks, the outer ones first:
 *
 *  velo_context.lock	one VELO_CARD_TAKE of a file at a time; mmap_lock is taken inside
 *  velo_card.state	contexts, settings of the node, its registers
 *  velo_card.send	the lines of stores that the kernel keeps for itself, and in whose share
 *			they are
 *  mmap_lock
 *  velo_card.live	readers use card and context; a writer ends either, or changes the grants.
 *			Nobody takes mmap_lock inside, so nobody copies from or to user space
 *  velo_card.pages	the table of pages. An MMU notifier takes it, so nothing is allocated inside
 *  velo_vector.lock	who sleeps; the interrupt's handler takes it
 *  velo_card.numbers_lock	which numbers are taken, and what means them
 *  velo_card.users_lock	what users have
 */
#ifndef VELO_H
#define VELO_H

#include <linux/bitmap.h>
#include <linux/cdev.h>
#include <linux/cgroup_rdma.h>
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/poll.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/velo.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "velo/spec.h"
#include "velo/pcie_spec.h"
#include "velo/regs.h"

#define VELO_BAR_REGISTERS 0
#define VELO_BAR_WINDOW 2
#define VELO_BAR_FUNCTION 4

/*
 * A page of the card, by which it keeps processes apart: a context's registers, its stores to one
 * target, and what an entry of the node's table names are one each.
 */
#define VELO_PAGE_BYTES BIT(VELO_ADDRESS_PAGE_BITS)

/*
 * Whether a process can be given single pages of the card. A larger page of the kernel's would give
 * it those of other contexts, so there the kernel stores for all.
 */
#define VELO_MAPS_PAGES (PAGE_SHIFT == VELO_ADDRESS_PAGE_BITS)
static_assert(PAGE_SHIFT >= VELO_ADDRESS_PAGE_BITS);

/* Most contexts whose rings and queues lie in one region of memory, which a vector watches. */
#define VELO_CONTEXTS_PER_VECTOR_MAX 32
#define VELO_VECTORS_MAX (VELO_VPIDS / VELO_CONTEXTS_PER_VECTOR_MAX)
#define VELO_LINKS_MAX 8
/* A word of the routing table that means: no way (spec/velo_regs.rdl). */
#define VELO_ROUTE_NONE 14

struct seq_buf;
struct velo_card;

/**
 * struct velo_vector - a vector of interrupts, and the memory that it watches
 * @card: whose it is
 * @index: its number
 * @lock: guards the members below, and who of its contexts is armed
 * @memory: rings of its contexts, then their queues; NULL before the first context is taken
 * @memory_dma: its address for the card, a multiple of its size
 * @watching: the card has been told to interrupt
 * @contexts: contexts that are taken, by place
 */
struct velo_vector {
	struct velo_card *card;
	unsigned int index;
	spinlock_t lock; /* contexts' heads and armed, watching */
	void *memory;
	dma_addr_t memory_dma;
	bool watching;
	struct velo_context *contexts[VELO_CONTEXTS_PER_VECTOR_MAX];
};

/**
 * struct velo_grant - who may send where
 * @everyone: all users
 * @user: else the one
 * @node_first: first node
 * @node_last: last node
 * @context_first: first context of these nodes
 * @context_last: last context
 */
struct velo_grant {
	bool everyone;
	kuid_t user;
	u8 node_first;
	u8 node_last;
	u8 context_first;
	u8 context_last;
};

#define VELO_GRANTS_MAX 64

/* What users have shares of. */
enum velo_resource {
	VELO_RESOURCE_CONTEXT,
	VELO_RESOURCE_TABLE, /* entries of the table of pages */
	VELO_RESOURCES,
};

/**
 * struct velo_number - the number of a context, see numbers.c
 * @user: whose it is, if @is_owned; both under velo_card.state
 * @is_owned: it is somebody's
 * @is_taken: a process has the context; written under velo_card.state and .numbers_lock
 * @named: how many regions and contexts mean it, under velo_card.numbers_lock; rises only while
 *	it is taken
 * @opened: how often it has been taken
 * @left: the count of stores behind the last one of who had it, under velo_card.state; does not
 *	change while it is taken
 */
struct velo_number {
	kuid_t user;
	bool is_owned;
	bool is_taken;
	unsigned int named;
	u32 opened;
	u32 left;
};

struct velo_grants {
	unsigned int count;
	struct velo_grant rules[VELO_GRANTS_MAX];
};

/**
 * struct velo_setup - what an administrator has set; it outlives a reset
 * @node: the node's number
 * @routes: words of the routing table
 * @links: links that may come up
 * @ring_patience: cycles that each context's full ring may hold up others; 0: for ever
 * @moderation: cycles between two interrupts of a vector, at least
 * @access_patience: cycles until an access of the host is given up, and until a link that is down
 *	is dead; 0: never
 * @answer_patience: cycles until a get or an update that nobody answers is over; 0: never
 */
struct velo_setup {
	u8 node;
	u16 routes[VELO_NODES];
	u8 links;
	u32 ring_patience;
	u32 moderation;
	u32 access_patience;
	u32 answer_patience;
};

/**
 * struct velo_card - a card
 * @dev: the class device, parent of @cdev
 * @cdev: /dev/veloN
 * @pdev: the function
 * @regs: BAR0
 * @function: BAR4
 * @window: address of BAR2
 * @state: see above
 * @send: see above
 * @live: see above
 * @pages: see above
 * @dead: neither open nor register may be used, also while the card sleeps; written under @state
 *	and @live
 * @broken: the card has not answered and is no bus master any more
 * @rescue: ends all contexts of a broken card
 * @vectors: as many as @vector_count
 * @vector_count: that many, each for velo_contexts_per_vector() contexts
 * @numbers_lock: see above
 * @numbers: of contexts
 * @number_next: where the search for a free number begins
 * @context_count: contexts that are taken
 * @lines: stores that the card holds while the node takes none
 * @lines_free: those that no context has
 * @lines_left: those of contexts that have ended, until their stores have gone on
 * @left: the count of stores behind the last one of these contexts
 * @lent_to: the context in whose share the kernel's lines are, under @send
 * @sent: the count of stores behind the last one that the kernel's lines may hold, under @send
 * @grants: under @live
 * @setup: under @state
 * @users_lock: guards @users
 * @users: who has anything of the card, and how much
 * @cgroups: the card, as the rdma controller of cgroups knows it
 * @table: the node's table of pages
 * @table_dma: its address for the card
 * @table_used: bit n: entry n is in use
 * @table_next: where the search for free entries begins
 * @pages_entered: entries of the table that name memory
 * @resets: resets of the function
 * @counters: attributes of the folder counters
 */
struct velo_card {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	void __iomem *regs;
	void __iomem *function;
	phys_addr_t window;

	struct mutex state; /* contexts and settings */
	struct mutex send; /* the kernel's own lines */
	struct rw_semaphore live; /* that card and contexts are not dead; grants */
	struct mutex pages; /* the table of pages */

	bool dead;
	bool broken;
	struct work_struct rescue;

	struct velo_vector vectors[VELO_VECTORS_MAX];
	unsigned int vector_count;
	spinlock_t numbers_lock; /* which numbers are taken, and what means them */
	struct velo_number numbers[VELO_VPIDS];
	unsigned int number_next;
	unsigned int context_count;
	unsigned int lines;
	unsigned int lines_free;
	unsigned int lines_left;
	u32 left;
	struct velo_context *lent_to;
	u32 sent;

	struct velo_grants grants;
	struct velo_setup setup;

	spinlock_t users_lock; /* what users have */
	struct list_head users;
#ifdef CONFIG_CGROUP_RDMA
	struct rdmacg_device cgroups;
#endif

	u64 *table;
	dma_addr_t table_dma;
	unsigned long *table_used;
	unsigned long table_next;
	unsigned long pages_entered;

	unsigned int resets;
	struct attribute_group counters;
};

/**
 * struct velo_context - an open file, and the context that it may have taken
 * @card: of this card
 * @user: who opened the file
 * @lock: see above
 * @taken: all below but @dead and @regions is valid and stays so; read with acquire
 * @dead: the context has ended; written under velo_card.live
 * @mm: whose it is
 * @owner: tells when @mm ends
 * @cgroup: that its context counts against
 * @mapping: of the file
 * @number: of the context
 * @vector: that its memory belongs to
 * @lines: its share of the card's lines of stores
 * @page: of the window, that the kernel last stored to for it, under velo_card.send
 * @page_address: where that is
 * @ring: its ring
 * @queue: its queue
 * @wait: who sleeps in poll()
 * @armed: wake these when there is news; like the heads under velo_vector.lock
 * @ring_head: slots that its process has seen
 * @queue_head: entries that its process has seen
 * @regions: memory that it has entered, under velo_card.pages
 * @stored_to: numbers of this card that it may store to, and that count it as a user
 * @nowhere: pages that are mapped once the context has ended, NULL before the first access
 */
struct velo_context {
	struct velo_card *card;
	kuid_t user;
	struct mutex lock; /* taking the context */
	bool taken;
	bool dead;
	struct mm_struct *mm;
	struct mmu_notifier owner;
	struct rdma_cgroup *cgroup;
	struct address_space *mapping;
	unsigned int number;
	struct velo_vector *vector;
	unsigned int lines;
	void __iomem *page;
	u64 page_address;
	void *ring;
	void *queue;
	wait_queue_head_t wait;
	bool armed;
	u16 ring_head;
	u16 queue_head;
	struct list_head regions;
	DECLARE_BITMAP(stored_to, VELO_VPIDS);
	struct page *nowhere;
};

/*
 * Lines of stores that the kernel keeps for itself: as many as one line takes if the host splits it
 * into its words.
 */
static inline unsigned int velo_lines_kernel(const struct velo_card *card)
{
	return min_t(unsigned int, VELO_LINE_BYTES / 8, card->lines / 2);
}

/* pci.c */
void velo_card_end_contexts(struct velo_card *card);
void velo_card_put_awake(struct velo_card *card);

/* dump.c */
void velo_dump(struct velo_card *card, const char *why, bool answers);

/* node.c */
int velo_node_check(struct velo_card *card);
void velo_node_set_up(struct velo_card *card);
void velo_node_shut_down(struct velo_card *card);
int velo_node_set_number(struct velo_card *card, u8 node);
int velo_node_set_links(struct velo_card *card, u8 links);
int velo_node_set_routes(struct velo_card *card, const u16 *routes);
u32 velo_node_moderation(struct velo_card *card);
int velo_node_set_moderation(struct velo_card *card, u32 cycles);
int velo_node_set_patience(struct velo_card *card, u32 *patience, u32 cycles);
int velo_routes_parse(const char *text, u16 *routes);
void velo_node_forget_page(struct velo_card *card, unsigned long page);
void velo_node_settle(struct velo_card *card);
bool velo_node_was_reset(struct velo_card *card);
bool velo_node_wait_room(struct velo_card *card, unsigned int number);
bool velo_node_wait_stores(struct velo_card *card);
u64 velo_node_stores(struct velo_card *card);
void velo_node_share(struct velo_card *card, unsigned int number, unsigned int lines);
void velo_node_change_share(struct velo_card *card, unsigned int number, unsigned int lines);
u64 velo_node_share_word(struct velo_card *card, unsigned int number);
void velo_node_leave_lines(struct velo_card *card, unsigned int number, unsigned int lines);
bool velo_node_has_left(struct velo_card *card, unsigned int number);
void velo_node_reclaim_lines(struct velo_card *card);

static inline u64 velo_reg_read(struct velo_card *card, u32 offset)
{
	return readq(card->regs + offset);
}

static inline void velo_reg_write(struct velo_card *card, u32 offset, u64 value)
{
	writeq(value, card->regs + offset);
}

/* context.c */
int velo_context_take(struct velo_context *ctx, struct velo_card_take *take);
void velo_context_end(struct velo_context *ctx);
void velo_context_close(struct velo_context *ctx);
int velo_context_check(void);
unsigned long velo_ring_bytes(void);
unsigned long velo_queue_bytes(void);
size_t velo_vector_bytes(void);
unsigned int velo_contexts_per_vector(void);

/* Whether the file has taken a context, and the caller may look at it. */
static inline bool velo_context_taken(struct velo_context *ctx)
{
	return smp_load_acquire(&ctx->taken); /* Pairs with the release in velo_context_begin(). */
}

/* numbers.c */
int velo_number_take(struct velo_card *card, u32 wanted, kuid_t user);
void velo_number_leave(struct velo_card *card, unsigned int number);
bool velo_number_name(struct velo_card *card, unsigned int number);
void velo_number_unname(struct velo_card *card, unsigned int number);
void velo_number_stored_to(struct velo_context *ctx, u32 target);
void velo_numbers_forget(struct velo_context *ctx);
void velo_numbers_release(struct velo_card *card, kuid_t user);
unsigned int velo_numbers_kept(struct velo_card *card);

/* memory.c */
int velo_memory_init(struct velo_card *card);
int velo_memory_enter(struct velo_context *ctx, struct velo_card_enter *enter);
int velo_memory_withdraw(struct velo_context *ctx, u32 first_page);
void velo_memory_end(struct velo_context *ctx);
void velo_memory_count(struct velo_context *ctx, unsigned int *regions, unsigned long *pages);
void velo_memory_void(struct velo_card *card, unsigned int number);
void velo_memory_free(struct velo_context *ctx);
u64 velo_memory_pages_word(struct velo_card *card);

/* interrupt.c */
int velo_interrupt_init(struct velo_card *card);
void velo_interrupt_quiet(struct velo_card *card);
int velo_interrupt_arm(struct velo_context *ctx, struct velo_card_arm *arm);
void velo_interrupt_join(struct velo_context *ctx);
void velo_interrupt_leave(struct velo_context *ctx);
__poll_t velo_interrupt_poll(struct velo_context *ctx, struct file *file, poll_table *wait);

/* map.c */
int velo_map(struct velo_context *ctx, struct vm_area_struct *vma);
void velo_map_free(struct velo_context *ctx);
void velo_map_zap(struct velo_context *ctx);
void velo_map_zap_stores(struct velo_context *ctx);

/* send.c */
ssize_t velo_send(struct velo_context *ctx, const u64 *line, size_t len_bytes, loff_t offset);
void velo_send_end(struct velo_context *ctx);

/* grants.c */
int velo_grants_parse(const char *text, struct velo_grants *grants);
ssize_t velo_grants_show(const struct velo_grants *grants, char *text);
int velo_grants_replace(struct velo_card *card, const struct velo_grants *grants);
bool velo_granted(struct velo_context *ctx, u32 target);
bool velo_granted_all(struct velo_context *ctx);
bool velo_grants_name(const struct velo_grants *grants, u8 node, u8 context);
int velo_grants_init(struct velo_card *card);

/* shares.c */
int velo_share_take(struct velo_card *card, kuid_t uid, enum velo_resource what,
		    unsigned long count, unsigned long total);
void velo_share_give_back(struct velo_card *card, kuid_t uid, enum velo_resource what,
			  unsigned long count);
void velo_shares_init(struct velo_card *card);
void velo_shares_free(struct velo_card *card);
int velo_cgroup_charge(struct velo_card *card, enum rdmacg_resource_type what,
		       struct rdma_cgroup **cgroup);
void velo_cgroup_uncharge(struct velo_card *card, enum rdmacg_resource_type what,
			  struct rdma_cgroup *cgroup);

/* file.c */
extern const struct file_operations velo_file_operations;

/* sysfs.c, counters.c */
extern const struct attribute_group velo_settings_group;
int velo_counters_init(struct velo_card *card);
void velo_counters_dump(struct velo_card *card, struct seq_buf *out);

#endif
