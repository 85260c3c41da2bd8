// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Sleepers, and interrupts that wake them.
 *
 * A vector watches the memory of its contexts only while one of them sleeps: with nobody asleep,
 * messages cost no interrupts. What came is seen in that memory; an interrupt says no more than
 * that it is worth a look.
 */
#include <linux/bitfield.h>
#include <linux/log2.h>

#include "trace.h"
#include "velo.h"

/* A function's register pcie_watch names regions from this size on. */
#define VELO_WATCH_BYTES_MIN 4096

/* The process's next slot or entry is there. Ring and queue are a power of two. */
static bool velo_context_has_news(struct velo_context *ctx)
{
	u64 ring_slots = velo_ring_bytes() / VELO_LINE_BYTES;
	u64 entry_words = VELO_RMA_NOTIFICATION_WORDS;
	u64 entries = velo_queue_bytes() / (8 * entry_words);
	u64 *slot = ctx->ring + (ctx->ring_head & (ring_slots - 1)) * VELO_LINE_BYTES;
	u64 *entry = (u64 *)ctx->queue + (ctx->queue_head & (entries - 1)) * entry_words;
	u64 header = READ_ONCE(*slot);

	return (velo_header_valid(header) && velo_header_seq(header) == ctx->ring_head) ||
	       READ_ONCE(*entry);
}

static void velo_vector_watch(struct velo_vector *vector, bool watching)
{
	u64 word = 0;

	if (vector->watching == watching)
		return;
	vector->watching = watching;
	if (watching)
		word = VELO_PCIE_WATCH_ENABLE_MASK | vector->memory_dma |
		       FIELD_PREP(VELO_PCIE_WATCH_SIZE_MASK,
				  ilog2(velo_vector_bytes() / VELO_WATCH_BYTES_MIN));
	writeq(word, vector->card->function + VELO_PCIE_REG_WATCH + 8 * vector->index);
}

static irqreturn_t velo_interrupt(int irq, void *data)
{
	struct velo_vector *vector = data;
	unsigned int i, woken = 0;
	bool armed = false;

	spin_lock(&vector->lock);
	for (i = 0; i < VELO_CONTEXTS_PER_VECTOR_MAX; i++) {
		struct velo_context *ctx = vector->contexts[i];

		if (!ctx || !ctx->armed)
			continue;
		if (velo_context_has_news(ctx)) {
			WRITE_ONCE(ctx->armed, false);
			wake_up_all(&ctx->wait);
			woken++;
		} else {
			armed = true;
		}
	}
	velo_vector_watch(vector, armed);
	spin_unlock(&vector->lock);
	trace_velo_interrupt(vector, woken, armed);
	return IRQ_HANDLED;
}

/**
 * velo_interrupt_arm() - from now on, news wake who sleeps in poll()
 * @ctx: the context; velo_card.live is held, it is not dead
 * @arm: what has been seen, and whether there is more
 *
 * Return: 0.
 */
int velo_interrupt_arm(struct velo_context *ctx, struct velo_card_arm *arm)
{
	struct velo_vector *vector = ctx->vector;

	spin_lock_irq(&vector->lock);
	WRITE_ONCE(ctx->ring_head, arm->ring_head);
	WRITE_ONCE(ctx->queue_head, arm->queue_head);
	WRITE_ONCE(ctx->armed, !velo_context_has_news(ctx));
	arm->ready = !ctx->armed;
	if (ctx->armed)
		velo_vector_watch(vector, true);
	spin_unlock_irq(&vector->lock);
	if (arm->ready)
		return 0;

	/* What came before the card began to watch is there when it has answered. */
	velo_node_stores(ctx->card);
	spin_lock_irq(&vector->lock);
	if (velo_context_has_news(ctx)) {
		WRITE_ONCE(ctx->armed, false);
		arm->ready = 1;
	}
	spin_unlock_irq(&vector->lock);
	return 0;
}

__poll_t velo_interrupt_poll(struct velo_context *ctx, struct file *file, poll_table *wait)
{
	__poll_t news = 0;

	poll_wait(file, &ctx->wait, wait);
	down_read(&ctx->card->live);
	if (ctx->dead) {
		news = EPOLLHUP | EPOLLERR;
	} else if (velo_context_taken(ctx)) {
		spin_lock_irq(&ctx->vector->lock);
		if (velo_context_has_news(ctx))
			news = EPOLLIN | EPOLLRDNORM;
		spin_unlock_irq(&ctx->vector->lock);
	}
	up_read(&ctx->card->live);
	return news;
}

/* A context is one of its vector's. */
void velo_interrupt_join(struct velo_context *ctx)
{
	spin_lock_irq(&ctx->vector->lock);
	ctx->vector->contexts[ctx->number % velo_contexts_per_vector()] = ctx;
	spin_unlock_irq(&ctx->vector->lock);
}

/* It is none any more. The vector is quiet again after the next interrupt. */
void velo_interrupt_leave(struct velo_context *ctx)
{
	spin_lock_irq(&ctx->vector->lock);
	WRITE_ONCE(ctx->armed, false);
	ctx->vector->contexts[ctx->number % velo_contexts_per_vector()] = NULL;
	spin_unlock_irq(&ctx->vector->lock);
}

/**
 * velo_interrupt_quiet() - no vector watches any more
 * @card: the card, whose contexts have ended. A function that was reset does not watch.
 */
void velo_interrupt_quiet(struct velo_card *card)
{
	unsigned int i;

	for (i = 0; i < card->vector_count; i++) {
		spin_lock_irq(&card->vectors[i].lock);
		velo_vector_watch(&card->vectors[i], false);
		spin_unlock_irq(&card->vectors[i].lock);
	}
}

/**
 * velo_interrupt_init() - get vectors
 * @card: the card
 *
 * Return: 0, or an error.
 */
int velo_interrupt_init(struct velo_card *card)
{
	struct pci_dev *pdev = card->pdev;
	u64 function = readq(card->function + VELO_PCIE_REG_FUNCTION);
	int wanted = min_t(int, velo_pcie_function_vectors(function), VELO_VECTORS_MAX);
	int got, i, err;

	got = pci_alloc_irq_vectors(pdev, 1, wanted, PCI_IRQ_MSIX);
	if (got < 0)
		return dev_err_probe(&pdev->dev, got, "no interrupts (MSI-X)\n");
	card->vector_count = got;
	for (i = 0; i < got; i++) {
		struct velo_vector *vector = &card->vectors[i];

		vector->card = card;
		vector->index = i;
		spin_lock_init(&vector->lock);
		writeq(0, card->function + VELO_PCIE_REG_WATCH + 8 * i);
		err = devm_request_irq(&pdev->dev, pci_irq_vector(pdev, i), velo_interrupt, 0,
				       dev_name(&card->dev), vector);
		if (err)
			return err;
	}
	return 0;
}
