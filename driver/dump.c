// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A picture of a card that fails or is about to be reset, for whoever looks for the cause: in
 * /sys/class/devcoredump, for root, as text. It has counters, settings, and who had which context.
 * It has no user's data, and no addresses of it.
 */
#include <linux/cred.h>
#include <linux/devcoredump.h>
#include <linux/seq_buf.h>
#include <linux/vmalloc.h>

#include "velo.h"

/* A line for each context, counter and route is less than a third of it. */
#define VELO_DUMP_BYTES (128u << 10)

static void velo_dump_setup(struct velo_card *card, struct seq_buf *out)
{
	const struct velo_setup *setup = &card->setup;
	unsigned int i;

	seq_buf_printf(out, "setup node=%u links=0x%x ring_patience=%u moderation=%u", setup->node,
		       setup->links, setup->ring_patience, setup->moderation);
	seq_buf_printf(out, " access_patience=%u answer_patience=%u\n", setup->access_patience,
		       setup->answer_patience);
	for (i = 0; i < VELO_NODES; i++)
		if (setup->routes[i] != VELO_ROUTE_NONE)
			seq_buf_printf(out, "route %u %u\n", i, setup->routes[i]);
}

static void velo_dump_context(struct velo_context *ctx, struct seq_buf *out)
{
	unsigned int regions;
	unsigned long pages;

	velo_memory_count(ctx, &regions, &pages);
	seq_buf_printf(out, "context number=%u user=%u lines=%u opened=%u ring_head=%u",
		       ctx->number, from_kuid(&init_user_ns, ctx->user), ctx->lines,
		       ctx->card->numbers[ctx->number].opened, READ_ONCE(ctx->ring_head));
	seq_buf_printf(out, " queue_head=%u armed=%u regions=%u pages=%lu\n",
		       READ_ONCE(ctx->queue_head), READ_ONCE(ctx->armed), regions, pages);
}

static void velo_dump_contexts(struct velo_card *card, struct seq_buf *out)
{
	unsigned int v, i;

	seq_buf_printf(out, "contexts %u lines_free=%u\n", card->context_count, card->lines_free);
	for (v = 0; v < card->vector_count; v++)
		for (i = 0; i < VELO_CONTEXTS_PER_VECTOR_MAX; i++)
			if (card->vectors[v].contexts[i])
				velo_dump_context(card->vectors[v].contexts[i], out);
}

/**
 * velo_dump() - keep a picture of a card
 * @card: the card; velo_card.state is held, contexts have not ended
 * @why: a word
 * @answers: its registers may be read; one that does not answer gives ones
 *
 * The kernel keeps the first picture until root has read it, or for five minutes, and no further
 * one meanwhile. Without memory there is none.
 */
void velo_dump(struct velo_card *card, const char *why, bool answers)
{
	struct seq_buf out;
	char *text;

	lockdep_assert_held(&card->state);
	if (!IS_ENABLED(CONFIG_DEV_COREDUMP))
		return;
	text = vmalloc(VELO_DUMP_BYTES);
	if (!text)
		return;
	seq_buf_init(&out, text, VELO_DUMP_BYTES);
	seq_buf_printf(&out, "card %s why=%s resets=%u\n", dev_name(&card->dev), why, card->resets);
	velo_dump_setup(card, &out);
	velo_dump_contexts(card, &out);
	if (answers && velo_reg_read(card, VELO_REG_ID) != U64_MAX)
		velo_counters_dump(card, &out);
	/* The device's own: a driver that goes away takes no picture with it. */
	dev_coredumpv(&card->pdev->dev, text, seq_buf_used(&out), GFP_KERNEL);
}
