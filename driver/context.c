// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Contexts: who has which, and that nothing of it is left when its process is gone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pm_runtime.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "trace.h"
#include "velo.h"

/* Settings of a ring or queue (spec/velo_regs.rdl): enabled, address, size as a power of two. */
#define VELO_RING_ENABLE BIT_ULL(0)
#define VELO_RING_SIZE_SHIFT 48

/* The kernel gives no more in one piece, if there is no IOMMU. */
#define VELO_VECTOR_BYTES_MAX (4ul << 20)

static unsigned int ring_slots_log2 = 11;
module_param(ring_slots_log2, uint, 0444);
MODULE_PARM_DESC(ring_slots_log2, "slots of a receive ring, as a power of two, 6 to 12 (11)");

/* Whole pages: 12 where these have 64 KiB. */
#define VELO_QUEUE_PAGE_LOG2 (PAGE_SHIFT - ilog2(8 * VELO_RMA_NOTIFICATION_WORDS))

static unsigned int queue_entries_log2 = VELO_QUEUE_PAGE_LOG2 > 10 ? VELO_QUEUE_PAGE_LOG2 : 10;
module_param(queue_entries_log2, uint, 0444);
MODULE_PARM_DESC(queue_entries_log2,
		 "entries of a notification queue, likewise, 8 to 12 (10, or a page if that is more)");

static unsigned int lines_max = 32;
module_param(lines_max, uint, 0644);
MODULE_PARM_DESC(lines_max, "lines of stores that one context may have (32)");

unsigned long velo_ring_bytes(void)
{
	return (unsigned long)VELO_LINE_BYTES << ring_slots_log2;
}

unsigned long velo_queue_bytes(void)
{
	return 8ul * VELO_RMA_NOTIFICATION_WORDS << queue_entries_log2;
}

/**
 * velo_contexts_per_vector() - how many contexts share a vector and its memory
 *
 * Return: as many as go into what the kernel gives in one piece.
 */
unsigned int velo_contexts_per_vector(void)
{
	return min_t(unsigned long, VELO_CONTEXTS_PER_VECTOR_MAX,
		     VELO_VECTOR_BYTES_MAX / (velo_ring_bytes() + velo_queue_bytes()));
}

/**
 * velo_vector_bytes() - the size of the memory that a vector watches
 *
 * Return: a power of two, a page or more.
 */
size_t velo_vector_bytes(void)
{
	return roundup_pow_of_two(velo_contexts_per_vector() *
				  (velo_ring_bytes() + velo_queue_bytes()));
}

/**
 * velo_context_check() - check the parameters for rings and queues, which processes map
 *
 * Return: 0, or -EINVAL.
 */
int velo_context_check(void)
{
	if (ring_slots_log2 < 6 || ring_slots_log2 > 12 || queue_entries_log2 < 8 ||
	    queue_entries_log2 > 12) {
		pr_err("ring_slots_log2 is 6 to 12 and queue_entries_log2 8 to 12\n");
		return -EINVAL;
	}
	if (!PAGE_ALIGNED(velo_ring_bytes()) || !PAGE_ALIGNED(velo_queue_bytes())) {
		pr_err("a ring of %lu bytes and a queue of %lu have to be whole pages of %lu: raise ring_slots_log2 or queue_entries_log2\n",
		       velo_ring_bytes(), velo_queue_bytes(), PAGE_SIZE);
		return -EINVAL;
	}
	return 0;
}

/* --- the node's part -------------------------------------------------------------------------- */

static dma_addr_t velo_context_dma(struct velo_context *ctx, void *memory)
{
	return ctx->vector->memory_dma + (memory - ctx->vector->memory);
}

static void velo_context_enable(struct velo_context *ctx)
{
	u32 at = VELO_PAGE_BYTES * ctx->number;

	memset(ctx->ring, 0, velo_ring_bytes());
	memset(ctx->queue, 0, velo_queue_bytes());
	velo_reg_write(ctx->card, VELO_REG_RINGS + at,
		       VELO_RING_ENABLE | velo_context_dma(ctx, ctx->ring) |
			       (u64)ring_slots_log2 << VELO_RING_SIZE_SHIFT);
	velo_reg_write(ctx->card, VELO_REG_QUEUES + at,
		       VELO_RING_ENABLE | velo_context_dma(ctx, ctx->queue) |
			       (u64)queue_entries_log2 << VELO_RING_SIZE_SHIFT);
	velo_node_share(ctx->card, ctx->number, ctx->lines);
	/* From here on the node accepts what comes: nobody is told of the context before. */
	velo_reg_read(ctx->card, VELO_REG_ID);
}

static void velo_context_disable(struct velo_context *ctx)
{
	u32 at = VELO_PAGE_BYTES * ctx->number;

	if (READ_ONCE(ctx->card->broken))
		return;
	velo_reg_write(ctx->card, VELO_REG_RINGS + at, 0);
	velo_reg_write(ctx->card, VELO_REG_QUEUES + at, 0);
	velo_node_share(ctx->card, ctx->number, 0);
}

/* --- the driver's part ------------------------------------------------------------------------ */

/* A piece of memory that has a part at a multiple of @bytes; false: there is none. */
static bool velo_vector_allocate(struct velo_vector *vector, size_t bytes, size_t piece, gfp_t gfp)
{
	struct device *dev = &vector->card->pdev->dev;
	dma_addr_t dma, aligned;
	void *memory;

	memory = dmam_alloc_coherent(dev, piece, &dma, gfp | __GFP_NOWARN);
	if (!memory)
		return false;
	aligned = ALIGN(dma, bytes);
	if (aligned + bytes > dma + piece) {
		dmam_free_coherent(dev, piece, memory, dma);
		return false;
	}
	vector->memory = memory + (aligned - dma);
	vector->memory_dma = aligned;
	return true;
}

/*
 * Memory of a vector's contexts, until the driver lets go of the card. It is a power of two at a
 * multiple of its size, as a vector watches it. Memory that the kernel takes from its contiguous
 * area (CMA, on AArch64) may be at a multiple of 1 MiB only. The kernel gives a call that must not
 * sleep none of that area, and a piece that is twice as long has such a part.
 */
static int velo_vector_memory(struct velo_vector *vector)
{
	size_t bytes = velo_vector_bytes();

	if (vector->memory || velo_vector_allocate(vector, bytes, bytes, GFP_KERNEL) ||
	    velo_vector_allocate(vector, bytes, bytes, GFP_NOWAIT) ||
	    velo_vector_allocate(vector, bytes, 2 * bytes, GFP_KERNEL))
		return 0;
	return -ENOMEM;
}

/*
 * A context gets no lines while the card still holds stores of the number's last owner, nor where
 * it has no pages to store to.
 */
static unsigned int velo_context_lines(struct velo_context *ctx, u32 wanted)
{
	struct velo_card *card = ctx->card;

	if (!VELO_MAPS_PAGES)
		return 0;
	velo_node_reclaim_lines(card);
	if (!velo_node_has_left(card, ctx->number))
		return 0;
	return min3(wanted, READ_ONCE(lines_max), card->lines_free);
}

static int velo_context_begin(struct velo_context *ctx, struct velo_card_take *take)
{
	struct velo_card *card = ctx->card;
	unsigned long place;
	int number;

	lockdep_assert_held(&card->state);
	if (card->dead || READ_ONCE(card->broken))
		return -ENODEV;
	number = velo_number_take(card, take->number, ctx->user);
	if (number < 0)
		return number;
	ctx->number = number;
	ctx->vector = &card->vectors[number / velo_contexts_per_vector()];
	if (velo_vector_memory(ctx->vector)) {
		velo_number_leave(card, number);
		return -ENOMEM;
	}
	place = number % velo_contexts_per_vector();
	ctx->ring = ctx->vector->memory + place * velo_ring_bytes();
	ctx->queue = ctx->vector->memory + velo_contexts_per_vector() * velo_ring_bytes() +
		     place * velo_queue_bytes();
	ctx->lines = velo_context_lines(ctx, take->store_lines);
	WRITE_ONCE(card->lines_free, card->lines_free - ctx->lines);
	WRITE_ONCE(card->context_count, card->context_count + 1);
	card->numbers[number].opened++;
	velo_context_enable(ctx);
	velo_interrupt_join(ctx);
	*take = (struct velo_card_take){
		.size = take->size,
		.number = number,
		.store_lines = ctx->lines,
		.node = card->setup.node,
		.opened = card->numbers[number].opened,
		.ring_slots = 1u << ring_slots_log2,
		.queue_entries = 1u << queue_entries_log2,
		.ring_layout = VELO_CARD_RING_LAYOUT,
		.queue_layout = VELO_CARD_QUEUE_LAYOUT,
		.descriptor_layout = VELO_CARD_DESCRIPTOR_LAYOUT,
		.stores_layout = VELO_CARD_STORES_LAYOUT,
	};
	trace_velo_take(ctx, take->opened);
	smp_store_release(&ctx->taken, true); /* Pairs with the acquire in velo_context_taken(). */
	return 0;
}

/**
 * velo_context_end() - take a context from its process
 * @ctx: the context; velo_card.state is held
 *
 * Afterwards the node writes nothing for it, and accesses no memory that it had entered. If it has
 * ended already, that is no error.
 */
void velo_context_end(struct velo_context *ctx)
{
	struct velo_card *card = ctx->card;

	lockdep_assert_held(&card->state);
	down_write(&card->live);
	if (!ctx->taken || ctx->dead) {
		up_write(&card->live);
		return;
	}
	WRITE_ONCE(ctx->dead, true);
	up_write(&card->live);

	velo_send_end(ctx);
	velo_context_disable(ctx);
	velo_memory_end(ctx);
	velo_numbers_forget(ctx);
	velo_node_settle(card);
	velo_interrupt_leave(ctx);
	trace_velo_end(ctx);
	velo_node_leave_lines(card, ctx->number, ctx->lines);
	WRITE_ONCE(card->context_count, card->context_count - 1);
	velo_number_leave(card, ctx->number);
	velo_cgroup_uncharge(card, RDMACG_RESOURCE_HCA_HANDLE, ctx->cgroup);
	velo_card_put_awake(card);
	wake_up_all(&ctx->wait);
}

/* The process ends. All its threads have, so nobody stores any more. */
static void velo_owner_ends(struct mmu_notifier *owner, struct mm_struct *mm)
{
	struct velo_context *ctx = container_of(owner, struct velo_context, owner);

	mutex_lock(&ctx->card->state);
	velo_context_end(ctx);
	mutex_unlock(&ctx->card->state);
}

static const struct mmu_notifier_ops velo_owner_operations = {
	.release = velo_owner_ends,
};

/*
 * A context keeps its card awake. A card that wakes up takes velo_card.state, so this function
 * takes it only afterwards.
 */
static int velo_context_begin_awake(struct velo_context *ctx, struct velo_card_take *take)
{
	struct velo_card *card = ctx->card;
	int err;

	err = velo_cgroup_charge(card, RDMACG_RESOURCE_HCA_HANDLE, &ctx->cgroup);
	if (err)
		return err;
	err = pm_runtime_resume_and_get(&card->pdev->dev) ? -ENODEV : 0;
	if (err)
		goto uncharge;
	mutex_lock(&card->state);
	err = velo_context_begin(ctx, take);
	mutex_unlock(&card->state);
	if (!err)
		return 0;
	velo_card_put_awake(card);
uncharge:
	velo_cgroup_uncharge(card, RDMACG_RESOURCE_HCA_HANDLE, ctx->cgroup);
	return err;
}

/**
 * velo_context_take() - take a context for the process that calls
 * @ctx: the open file
 * @take: what is wanted, and what was given
 *
 * Return: 0, or an error.
 */
int velo_context_take(struct velo_context *ctx, struct velo_card_take *take)
{
	int err;

	if (take->flags)
		return -EINVAL;
	mutex_lock(&ctx->lock);
	err = ctx->taken ? -EEXIST : 0;
	if (err)
		goto out;
	ctx->owner.ops = &velo_owner_operations;
	err = mmu_notifier_register(&ctx->owner, current->mm);
	if (err)
		goto out;
	ctx->mm = current->mm;
	err = velo_context_begin_awake(ctx, take);
	if (err) {
		mmu_notifier_unregister(&ctx->owner, ctx->mm);
		ctx->mm = NULL;
	}
out:
	mutex_unlock(&ctx->lock);
	return err;
}

/**
 * velo_context_close() - end a context, and free it
 * @ctx: nobody uses it any more
 */
void velo_context_close(struct velo_context *ctx)
{
	if (ctx->mm) {
		mmu_notifier_unregister(&ctx->owner, ctx->mm);
		velo_memory_free(ctx);
	}
	velo_map_free(ctx);
	put_device(&ctx->card->dev);
	kfree(ctx);
}
