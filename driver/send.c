// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Lines that the kernel stores for contexts without lines of their own, one at a time.
 */
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/overflow.h>

#include "trace.h"
#include "velo.h"

#define VELO_DESCRIPTOR_BYTES (8 * VELO_RMA_DESCRIPTOR_WORDS)
#define VELO_OPERANDS_BYTES (8 * VELO_RMA_OPERANDS_WORDS)

/* The context that a descriptor asks or notifies, as an address of layout address. */
static u32 velo_descriptor_target(const u64 *descriptor)
{
	return velo_address_pack(0, 0, velo_rma_descriptor_dst_ctx(descriptor[0]),
				 velo_rma_descriptor_dst_node(descriptor[0]));
}

static int velo_send_check(struct velo_context *ctx, u32 target)
{
	if (!velo_granted(ctx, target))
		return -EPERM;
	velo_number_stored_to(ctx, target);
	return 0;
}

/* Where a store goes in BAR2. */
static int velo_send_address(struct velo_context *ctx, const u64 *line, size_t len_bytes,
			     loff_t offset, u64 *address)
{
	u64 rest = offset & (BIT_ULL(VELO_CARD_KIND_SHIFT) - 1);

	switch (offset >> VELO_CARD_KIND_SHIFT) {
	case VELO_CARD_DESCRIPTORS:
		if (rest || (len_bytes != VELO_DESCRIPTOR_BYTES &&
			     len_bytes != VELO_DESCRIPTOR_BYTES + VELO_OPERANDS_BYTES))
			return -EINVAL;
		*address = velo_window_pack(0, ctx->number, VELO_UNIT_RMA);
		return velo_send_check(ctx, velo_descriptor_target(line));
	case VELO_CARD_TARGETS:
		if (rest >> VELO_ADDRESS_N_BITS || rest % 8 ||
		    velo_address_offset(rest) + len_bytes > VELO_LINE_BYTES)
			return -EINVAL;
		if (!len_bytes) /* It asks, and stores nothing. */
			return velo_granted(ctx, rest) ? 0 : -EPERM;
		*address = velo_window_pack(rest, ctx->number, VELO_UNIT_VELO);
		return velo_send_check(ctx, rest);
	default:
		return -EINVAL;
	}
}

/* A context mostly sends where it sent before, and to map a page costs more than a line. */
static void __iomem *velo_send_page(struct velo_context *ctx, u64 address)
{
	if (ctx->page && ctx->page_address == address)
		return ctx->page;
	if (ctx->page)
		iounmap(ctx->page);
	ctx->page = ioremap_wc(ctx->card->window + address, VELO_PAGE_BYTES);
	ctx->page_address = address;
	return ctx->page;
}

/*
 * The card drops what a context stores beyond its share, so the kernel lends its lines to the one
 * that it stores for, and takes them back when another one needs them. What that one then has under
 * way may be more than its share; the kernel's lines are free when these stores have gone on.
 */
static void velo_send_take_back(struct velo_card *card)
{
	struct velo_context *ctx = card->lent_to;

	card->lent_to = NULL;
	if (!ctx || READ_ONCE(card->broken))
		return;
	velo_node_change_share(card, ctx->number, ctx->lines);
	card->sent = velo_pcie_stores_accepted(velo_node_stores(card));
}

static bool velo_send_lend(struct velo_context *ctx)
{
	struct velo_card *card = ctx->card;

	if (card->lent_to != ctx)
		velo_send_take_back(card);
	if (!velo_node_wait_room(card, ctx->number))
		return false;
	if (card->lent_to != ctx)
		velo_node_change_share(card, ctx->number, ctx->lines + velo_lines_kernel(card));
	card->lent_to = ctx;
	return true;
}

/**
 * velo_send_end() - forget where a context sent to
 * @ctx: the context; it is dead, so nothing is sent for it any more
 */
void velo_send_end(struct velo_context *ctx)
{
	mutex_lock(&ctx->card->send);
	if (ctx->card->lent_to == ctx)
		velo_send_take_back(ctx->card);
	mutex_unlock(&ctx->card->send);
	if (ctx->page)
		iounmap(ctx->page);
	ctx->page = NULL;
}

static ssize_t velo_send_to(struct velo_context *ctx, u64 address, const u64 *line,
			    size_t len_bytes)
{
	struct velo_card *card = ctx->card;
	void __iomem *page = velo_send_page(ctx, address & ~(VELO_PAGE_BYTES - 1));
	u64 share, share_before;
	unsigned long flags;

	if (!page)
		return -ENOMEM;
	if (!velo_send_lend(ctx))
		return -EAGAIN;
	share_before = velo_node_share_word(card, ctx->number);
	/* An interrupt might flush a part of it; the node refuses half a descriptor. */
	local_irq_save(flags);
	__iowrite64_copy(page + address % VELO_PAGE_BYTES, line, len_bytes / 8);
	wmb(); /* What is combined leaves before the store is waited for. */
	local_irq_restore(flags);
	/* The answers come behind the line: by then the card has it, or has dropped it. */
	card->sent = velo_pcie_stores_accepted(velo_node_stores(card));
	share = velo_node_share_word(card, ctx->number);
	if (share == U64_MAX) /* It was pulled out. */
		return -ENODEV;
	if (velo_pcie_share_dropped(share) != velo_pcie_share_dropped(share_before))
		return -EIO;
	return len_bytes;
}

/**
 * velo_send() - store a line, if the card has room for it in time
 * @ctx: the context
 * @line: the line
 * @len_bytes: its length, a multiple of 8, at most a line; 0: only ask whether it might be stored
 * @offset: as in include/uapi/linux/velo.h
 *
 * The node takes the card's lines in order, so nothing waits for a line that the card has.
 *
 * Return: @len_bytes, or an error. -EAGAIN: nothing was stored. -EIO: the card dropped stores of
 * this context meanwhile, as it has more under way than it may; whether this one, it does not tell.
 */
ssize_t velo_send(struct velo_context *ctx, const u64 *line, size_t len_bytes, loff_t offset)
{
	struct velo_card *card = ctx->card;
	u64 address;
	ssize_t done;

	if (mutex_lock_interruptible(&card->send))
		return -ERESTARTSYS;
	down_read(&card->live);
	done = ctx->dead ? -ENODEV : velo_send_address(ctx, line, len_bytes, offset, &address);
	if (!done && len_bytes)
		done = velo_send_to(ctx, address, line, len_bytes);
	up_read(&card->live);
	mutex_unlock(&card->send);
	trace_velo_send(ctx, offset, len_bytes, done);
	return done;
}
