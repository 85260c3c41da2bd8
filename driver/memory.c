// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Memory of processes in the node's table of pages.
 *
 * A region's entries of the table are pages of the card, of 4 KiB. The kernel's own may be larger:
 * those that the region lies in are pinned, and the part of them that was asked for is mapped for
 * the card and entered.
 *
 * The pages are pinned, so they stay where they are while the table names them. A region is
 * withdrawn when its process says so, when a part of it is unmapped or moved, or when its context
 * ends. Its entries of the table are used again only when the process has taken it out itself, so
 * that the process cannot mean another region by the same number.
 *
 * That a page is not the process's any more for other reasons, such as MADV_DONTNEED, is not
 * noticed. The node then reaches the old page, which nobody else has.
 */
#include <linux/bitfield.h>
#include <linux/bitmap.h>
#include <linux/cc_platform.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "trace.h"
#include "velo.h"

static unsigned int table_pages_log2 = 18;
module_param(table_pages_log2, uint, 0444);
MODULE_PARM_DESC(table_pages_log2, "entries of the table of pages, as a power of two, 9 to 22 (18)");

#define VELO_RIGHTS_ALL (VELO_CARD_READ | VELO_CARD_WRITE | VELO_CARD_ATOMIC)
/* A page is mapped for the card as a whole and for long; nobody copies it to and fro. */
#define VELO_DMA_ATTRS DMA_ATTR_SKIP_CPU_SYNC

/* No number of this card. */
#define VELO_PEER_NONE UINT_MAX

/**
 * struct velo_region - memory that a context has entered
 * @list: in velo_context.regions; off it when it is being taken out
 * @notifier: hears that it is unmapped
 * @ctx: whose it is
 * @first_page: place in the table
 * @page_count: its length there
 * @offset: where it begins in the first of @pages
 * @pages: the kernel's, of the process, pinned
 * @pinned_count: how many these are
 * @dma: their addresses for the card
 * @word: what the table says of each page, but for the frame
 * @entered: the table names it
 * @peer: number of this card that alone may access it, as velo_number_name() counts, or
 *	VELO_PEER_NONE
 * @unmapped: it must not be entered any more
 * @cgroup: that it counts against
 *
 * All but @notifier is under velo_card.pages.
 */
struct velo_region {
	struct list_head list;
	struct mmu_interval_notifier notifier;
	struct velo_context *ctx;
	unsigned long first_page;
	unsigned long page_count;
	unsigned long offset;
	struct page **pages;
	unsigned long pinned_count;
	struct sg_table dma;
	u64 word;
	bool entered;
	bool unmapped;
	unsigned int peer;
	struct rdma_cgroup *cgroup;
};

static unsigned long velo_table_pages(void)
{
	return 1ul << table_pages_log2;
}

static void velo_table_release(void *table_used)
{
	bitmap_free(table_used);
}

/**
 * velo_memory_init() - make an empty table
 * @card: the card
 *
 * Return: 0, or an error.
 */
int velo_memory_init(struct velo_card *card)
{
	struct device *dev = &card->pdev->dev;
	size_t bytes;

	if (table_pages_log2 < 9 || table_pages_log2 > 22)
		return -EINVAL;
	bytes = velo_table_pages() * sizeof(u64);
	card->table = dmam_alloc_coherent(dev, bytes, &card->table_dma, GFP_KERNEL);
	if (!card->table || !IS_ALIGNED(card->table_dma, bytes))
		return -ENOMEM;
	card->table_used = bitmap_zalloc(velo_table_pages(), GFP_KERNEL);
	if (!card->table_used)
		return -ENOMEM;
	return devm_add_action_or_reset(dev, velo_table_release, card->table_used);
}

/**
 * velo_memory_pages_word() - what register pages has to be
 * @card: the card
 *
 * Return: the word.
 */
u64 velo_memory_pages_word(struct velo_card *card)
{
	return card->table_dma | VELO_REG_PAGES_ENABLE_MASK |
	       FIELD_PREP(VELO_REG_PAGES_ENTRIES_MASK, table_pages_log2);
}

/* --- pinning ---------------------------------------------------------------------------------- */

static int velo_account(struct mm_struct *mm, unsigned long count)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 pinned = atomic64_add_return(count, &mm->pinned_vm);

	if (pinned <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(count, &mm->pinned_vm);
	return -ENOMEM;
}

/*
 * A private page that is shared with another process must not be copied under the pin at the next
 * write: then the node would see the old one. Kernels that do not see to that themselves are made
 * to by a pin for writing.
 */
#ifdef VELO_PINS_FOR_WRITING
#define VELO_PIN_TO_READ (FOLL_WRITE | FOLL_FORCE)
#else
#define VELO_PIN_TO_READ 0
#endif

static int velo_pin(struct velo_region *region, unsigned long address)
{
	bool is_written = velo_registered_page_rights(region->word) != VELO_CARD_READ;
	unsigned int flags = FOLL_LONGTERM | (is_written ? FOLL_WRITE : VELO_PIN_TO_READ);
	unsigned long done = 0;

	address -= region->offset;
	while (done < region->pinned_count) {
		int count = min_t(unsigned long, region->pinned_count - done, 512);
		int got = pin_user_pages_fast(address + done * PAGE_SIZE, count, flags,
					      region->pages + done);

		if (got <= 0) {
			unpin_user_pages(region->pages, done);
			return got ? got : -EFAULT;
		}
		done += got;
		if (fatal_signal_pending(current)) {
			unpin_user_pages(region->pages, done);
			return -EINTR;
		}
		cond_resched();
	}
	return 0;
}

static void velo_unpin(struct velo_region *region)
{
	unpin_user_pages_dirty_lock(region->pages, region->pinned_count,
				    velo_registered_page_rights(region->word) != VELO_CARD_READ);
}

/* --- the table -------------------------------------------------------------------------------- */

static int velo_table_reserve(struct velo_card *card, struct velo_region *region)
{
	unsigned long size = velo_table_pages(), at;

	/* The search goes round, so that a page's number is not used again soon. */
	at = bitmap_find_next_zero_area(card->table_used, size, card->table_next,
					region->page_count, 0);
	if (at >= size)
		at = bitmap_find_next_zero_area(card->table_used, size, 0, region->page_count, 0);
	if (at >= size)
		return -ENOSPC;
	bitmap_set(card->table_used, at, region->page_count);
	card->table_next = at + region->page_count;
	region->first_page = at;
	return 0;
}

static void velo_table_give_back(struct velo_region *region)
{
	struct velo_context *ctx = region->ctx;

	bitmap_clear(ctx->card->table_used, region->first_page, region->page_count);
	velo_share_give_back(ctx->card, ctx->user, VELO_RESOURCE_TABLE, region->page_count);
}

/*
 * The caller must not hold velo_card.pages. A process that charges a cgroup holds the controller's
 * mutex while it waits for memory. The kernel may get that memory by taking a mapping away, and
 * velo_region_invalidate() then wants velo_card.pages.
 */
static void velo_region_uncharge(struct velo_region *region)
{
	struct velo_card *card = region->ctx->card;

	lockdep_assert_not_held(&card->pages);
	velo_cgroup_uncharge(card, RDMACG_RESOURCE_HCA_OBJECT, region->cgroup);
}

/* Memory for one peer of this card is for who has that number now. */
static int velo_region_name(struct velo_card *card, struct velo_region *region)
{
	u16 peer = velo_registered_page_peer(region->word);

	region->peer = VELO_PEER_NONE;
	if (!velo_registered_page_one_peer(region->word) || peer >> 8 != card->setup.node)
		return 0;
	region->peer = peer & 0xff;
	return velo_number_name(card, region->peer) ? 0 : -ENXIO;
}

static void velo_table_fill(struct velo_card *card, struct velo_region *region)
{
	u64 *entry = card->table + region->first_page;
	struct scatterlist *sg;
	unsigned int i, at;

	/* The kernel joins pages that are neighbours, and splits nothing within one. */
	for_each_sgtable_dma_sg(&region->dma, sg, i)
		for (at = 0; at < sg_dma_len(sg); at += VELO_PAGE_BYTES)
			WRITE_ONCE(*entry++, region->word | (sg_dma_address(sg) + at));
	WRITE_ONCE(card->pages_entered, card->pages_entered + region->page_count);
	region->entered = true;
}

/* The node does not access the region any more, and its pages are the process's alone. */
static void velo_region_withdraw(struct velo_region *region)
{
	struct velo_card *card = region->ctx->card;
	unsigned long i;

	lockdep_assert_held(&card->pages);
	region->unmapped = true;
	if (!region->entered)
		return;
	region->entered = false;
	if (region->peer != VELO_PEER_NONE)
		velo_number_unname(card, region->peer);
	for (i = 0; i < region->page_count; i++)
		WRITE_ONCE(card->table[region->first_page + i], 0);
	dma_wmb(); /* The node looks a page up again as soon as it has forgotten it. */
	for (i = 0; i < region->page_count; i++)
		velo_node_forget_page(card, region->first_page + i);
	dma_unmap_sgtable(&card->pdev->dev, &region->dma, DMA_BIDIRECTIONAL, VELO_DMA_ATTRS);
	sg_free_table(&region->dma);
	velo_unpin(region);
	WRITE_ONCE(card->pages_entered, card->pages_entered - region->page_count);
	atomic64_sub(region->pinned_count, &region->ctx->mm->pinned_vm);
	trace_velo_withdraw(region->ctx, region->first_page, region->page_count, region->word);
}

/*
 * Other events than these leave pinned pages where they are. At a fork() the child gets copies of
 * them at once.
 */
static bool velo_region_invalidate(struct mmu_interval_notifier *notifier,
				   const struct mmu_notifier_range *range, unsigned long seq)
{
	struct velo_region *region = container_of(notifier, struct velo_region, notifier);
	struct velo_card *card = region->ctx->card;

	if (range->event != MMU_NOTIFY_UNMAP && range->event != MMU_NOTIFY_RELEASE)
		return true;
	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&card->pages);
	mmu_interval_set_seq(notifier, seq);
	velo_region_withdraw(region);
	mutex_unlock(&card->pages);
	return true;
}

static const struct mmu_interval_notifier_ops velo_region_operations = {
	.invalidate = velo_region_invalidate,
};

/* The region is on no list. */
static void velo_region_free(struct velo_region *region)
{
	mmu_interval_notifier_remove(&region->notifier);
	kvfree(region->pages);
	kfree(region);
}

/*
 * Whether the card would not access the pages: a guest's that are encrypted, or where the kernel
 * makes copies (swiotlb), as nobody would know when to copy. With an IOMMU it makes none of whole
 * pages of its own, and of parts of them only for a card in a slot that anybody can reach.
 */
static bool velo_region_is_unreachable(struct velo_region *region)
{
	unsigned long bytes = region->page_count * VELO_PAGE_BYTES;
	struct pci_dev *pdev = region->ctx->card->pdev;
	struct device *dev = &pdev->dev;
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	struct scatterlist *sg;
	unsigned int i;

	if (cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		return true;
	if (domain && domain->type != IOMMU_DOMAIN_IDENTITY)
		return pdev->untrusted && !PAGE_ALIGNED(region->offset | bytes);
	for_each_sgtable_dma_sg(&region->dma, sg, i)
		if (dma_need_sync(dev, sg_dma_address(sg)))
			return true;
	return false;
}

/*
 * The pages are pinned. Give them to the card; velo_card.live is held. As soon as the region is on
 * the list, another thread may take it out and free it.
 */
static int velo_region_enter(struct velo_region *region, unsigned long seq, u32 *first_page)
{
	struct velo_context *ctx = region->ctx;
	struct velo_card *card = ctx->card;
	struct device *dev = &card->pdev->dev;
	int err;

	if (ctx->dead)
		return -ENODEV;
	err = sg_alloc_table_from_pages(&region->dma, region->pages, region->pinned_count,
					region->offset, region->page_count * VELO_PAGE_BYTES,
					GFP_KERNEL);
	if (err)
		return err;
	err = dma_map_sgtable(dev, &region->dma, DMA_BIDIRECTIONAL, VELO_DMA_ATTRS);
	if (err)
		goto free_table;
	err = -EOPNOTSUPP;
	if (velo_region_is_unreachable(region))
		goto unmap;
	err = velo_share_take(card, ctx->user, VELO_RESOURCE_TABLE, region->page_count,
			      velo_table_pages());
	if (err)
		goto unmap;

	mutex_lock(&card->pages);
	if (region->unmapped || mmu_interval_read_retry(&region->notifier, seq))
		err = -EFAULT;
	else
		err = velo_table_reserve(card, region);
	if (!err) {
		err = velo_region_name(card, region);
		if (err)
			bitmap_clear(card->table_used, region->first_page, region->page_count);
	}
	if (!err) {
		velo_table_fill(card, region);
		*first_page = region->first_page;
		list_add(&region->list, &ctx->regions);
		trace_velo_enter(ctx, region->first_page, region->page_count, region->word);
	}
	mutex_unlock(&card->pages);
	if (!err)
		return 0;

	velo_share_give_back(card, ctx->user, VELO_RESOURCE_TABLE, region->page_count);
unmap:
	dma_unmap_sgtable(dev, &region->dma, DMA_BIDIRECTIONAL, VELO_DMA_ATTRS);
free_table:
	sg_free_table(&region->dma);
	return err;
}

/* --- calls ------------------------------------------------------------------------------------ */

static int velo_memory_check(const struct velo_card_enter *enter)
{
	bool has_peer = enter->flags & VELO_CARD_ONE_PEER;
	u64 bytes = enter->len_bytes;

	if (enter->flags & ~VELO_CARD_ONE_PEER || enter->reserved)
		return -EINVAL;
	if (!bytes || (bytes | enter->address) % VELO_PAGE_BYTES)
		return -EINVAL;
	if (enter->address + bytes < enter->address)
		return -EINVAL;
	if (!enter->rights || enter->rights & ~VELO_RIGHTS_ALL)
		return -EINVAL;
	if (enter->peer > (has_peer ? U16_MAX : 0))
		return -EINVAL;
	return bytes / VELO_PAGE_BYTES > velo_table_pages() ? -ENOSPC : 0;
}

/**
 * velo_memory_enter() - enter memory of the calling process
 * @ctx: its context
 * @enter: what, and where it was entered
 *
 * Return: 0, or an error.
 */
int velo_memory_enter(struct velo_context *ctx, struct velo_card_enter *enter)
{
	struct velo_region *region;
	unsigned long seq;
	int err;

	err = velo_memory_check(enter);
	if (err)
		return err;
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return -ENOMEM;
	region->ctx = ctx;
	region->page_count = enter->len_bytes / VELO_PAGE_BYTES;
	region->offset = offset_in_page(enter->address);
	region->pinned_count = PFN_UP(region->offset + enter->len_bytes);
	region->word = velo_registered_page_pack(!!(enter->flags & VELO_CARD_ONE_PEER),
						 enter->rights, ctx->number, 0, enter->peer);
	err = velo_cgroup_charge(ctx->card, RDMACG_RESOURCE_HCA_OBJECT, &region->cgroup);
	if (err)
		goto free_region;
	err = velo_account(ctx->mm, region->pinned_count);
	if (err)
		goto uncharge;
	region->pages = kvmalloc_array(region->pinned_count, sizeof(*region->pages),
				       GFP_KERNEL_ACCOUNT);
	if (!region->pages) {
		err = -ENOMEM;
		goto unaccount;
	}
	err = mmu_interval_notifier_insert(&region->notifier, ctx->mm, enter->address,
					   enter->len_bytes, &velo_region_operations);
	if (err)
		goto free_pages;
	seq = mmu_interval_read_begin(&region->notifier);
	err = velo_pin(region, enter->address);
	if (err)
		goto remove_notifier;

	down_read(&ctx->card->live);
	err = velo_region_enter(region, seq, &enter->first_page);
	up_read(&ctx->card->live);
	if (!err)
		return 0;

	unpin_user_pages(region->pages, region->pinned_count);
remove_notifier:
	mmu_interval_notifier_remove(&region->notifier);
free_pages:
	kvfree(region->pages);
unaccount:
	atomic64_sub(region->pinned_count, &ctx->mm->pinned_vm);
uncharge:
	velo_region_uncharge(region);
free_region:
	kfree(region);
	return err;
}

static struct velo_region *velo_region_take_out(struct velo_context *ctx, u32 first_page)
{
	struct velo_region *region;

	list_for_each_entry(region, &ctx->regions, list) {
		if (region->first_page != first_page)
			continue;
		list_del(&region->list);
		velo_region_withdraw(region);
		velo_table_give_back(region);
		return region;
	}
	return NULL;
}

/**
 * velo_memory_withdraw() - take out what was entered
 * @ctx: the context that entered it
 * @first_page: where
 *
 * Return: 0, -ENOENT, or -ENODEV.
 */
int velo_memory_withdraw(struct velo_context *ctx, u32 first_page)
{
	struct velo_card *card = ctx->card;
	struct velo_region *region = NULL;
	int err = 0;

	down_read(&card->live);
	if (ctx->dead) {
		err = -ENODEV;
	} else {
		mutex_lock(&card->pages);
		region = velo_region_take_out(ctx, first_page);
		mutex_unlock(&card->pages);
	}
	up_read(&card->live);
	if (!region)
		return err ? err : -ENOENT;
	velo_region_uncharge(region);
	velo_region_free(region);
	return 0;
}

/**
 * velo_memory_end() - withdraw all that a context has entered
 * @ctx: the context; it is dead, so nothing is entered any more
 */
void velo_memory_end(struct velo_context *ctx)
{
	struct velo_region *region;

	mutex_lock(&ctx->card->pages);
	list_for_each_entry(region, &ctx->regions, list) {
		velo_region_withdraw(region);
		velo_table_give_back(region);
		region->page_count = 0;
	}
	mutex_unlock(&ctx->card->pages);
	/* The context is dead, so nobody changes the list. */
	list_for_each_entry(region, &ctx->regions, list)
		velo_region_uncharge(region);
}

/**
 * velo_memory_count() - count what a context has entered
 * @ctx: the context
 * @regions: how many regions
 * @pages: how many entries of the table they have
 */
void velo_memory_count(struct velo_context *ctx, unsigned int *regions, unsigned long *pages)
{
	struct velo_region *region;

	*regions = 0;
	*pages = 0;
	mutex_lock(&ctx->card->pages);
	list_for_each_entry(region, &ctx->regions, list) {
		*regions += region->entered;
		*pages += region->entered ? region->page_count : 0;
	}
	mutex_unlock(&ctx->card->pages);
}

static void velo_memory_void_of(struct velo_context *ctx, unsigned int number)
{
	struct velo_region *region;

	list_for_each_entry(region, &ctx->regions, list)
		if (region->entered && region->peer == number)
			velo_region_withdraw(region);
}

/**
 * velo_memory_void() - withdraw all that was entered for a number of this card
 * @card: the card; velo_card.state is held
 * @number: the number
 *
 * The regions keep their places in the table, as those do that were unmapped.
 */
void velo_memory_void(struct velo_card *card, unsigned int number)
{
	unsigned int v, i;

	lockdep_assert_held(&card->state);
	mutex_lock(&card->pages);
	for (v = 0; v < card->vector_count; v++)
		for (i = 0; i < VELO_CONTEXTS_PER_VECTOR_MAX; i++)
			if (card->vectors[v].contexts[i])
				velo_memory_void_of(card->vectors[v].contexts[i], number);
	mutex_unlock(&card->pages);
}

/**
 * velo_memory_free() - free what is left of a context's regions
 * @ctx: the context; it has ended
 */
void velo_memory_free(struct velo_context *ctx)
{
	struct velo_region *region, *next;

	list_for_each_entry_safe(region, next, &ctx->regions, list)
		velo_region_free(region);
}
