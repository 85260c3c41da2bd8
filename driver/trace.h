/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Tracepoints, in /sys/kernel/tracing/events/velo. They name a card by the N of /dev/veloN.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM velo

#if !defined(VELO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VELO_TRACE_H

#include <linux/tracepoint.h>

#include "velo.h"

/* A process has taken a context. */
TRACE_EVENT(velo_take,
	TP_PROTO(const struct velo_context *ctx, u32 opened),
	TP_ARGS(ctx, opened),
	TP_STRUCT__entry(
		__field(unsigned int, card)
		__field(unsigned int, number)
		__field(unsigned int, user)
		__field(unsigned int, lines)
		__field(u32, opened)
	),
	TP_fast_assign(
		__entry->card = MINOR(ctx->card->dev.devt);
		__entry->number = ctx->number;
		__entry->user = from_kuid(&init_user_ns, ctx->user);
		__entry->lines = ctx->lines;
		__entry->opened = opened;
	),
	TP_printk("card=%u number=%u user=%u lines=%u opened=%u", __entry->card, __entry->number,
		  __entry->user, __entry->lines, __entry->opened)
);

/* A context has ended: the card accesses none of its memory, and writes nothing for it. */
TRACE_EVENT(velo_end,
	TP_PROTO(const struct velo_context *ctx),
	TP_ARGS(ctx),
	TP_STRUCT__entry(
		__field(unsigned int, card)
		__field(unsigned int, number)
	),
	TP_fast_assign(
		__entry->card = MINOR(ctx->card->dev.devt);
		__entry->number = ctx->number;
	),
	TP_printk("card=%u number=%u", __entry->card, __entry->number)
);

/* `word`: as velo_memory_enter() packs it, for all pages. */
DECLARE_EVENT_CLASS(velo_region,
	TP_PROTO(const struct velo_context *ctx, unsigned long first_page,
		 unsigned long page_count, u64 word),
	TP_ARGS(ctx, first_page, page_count, word),
	TP_STRUCT__entry(
		__field(unsigned int, card)
		__field(unsigned int, number)
		__field(unsigned long, first_page)
		__field(unsigned long, page_count)
		__field(unsigned int, rights)
		__field(unsigned int, one_peer)
		__field(unsigned int, peer)
	),
	TP_fast_assign(
		__entry->card = MINOR(ctx->card->dev.devt);
		__entry->number = ctx->number;
		__entry->first_page = first_page;
		__entry->page_count = page_count;
		__entry->rights = velo_registered_page_rights(word);
		__entry->one_peer = velo_registered_page_one_peer(word);
		__entry->peer = velo_registered_page_peer(word);
	),
	TP_printk("card=%u number=%u first_page=%lu page_count=%lu rights=%u one_peer=%u peer=0x%x",
		  __entry->card, __entry->number, __entry->first_page, __entry->page_count,
		  __entry->rights, __entry->one_peer, __entry->peer)
);

/* The card may access memory from now on. */
DEFINE_EVENT(velo_region, velo_enter,
	TP_PROTO(const struct velo_context *ctx, unsigned long first_page,
		 unsigned long page_count, u64 word),
	TP_ARGS(ctx, first_page, page_count, word)
);

/* The card accesses it no longer. */
DEFINE_EVENT(velo_region, velo_withdraw,
	TP_PROTO(const struct velo_context *ctx, unsigned long first_page,
		 unsigned long page_count, u64 word),
	TP_ARGS(ctx, first_page, page_count, word)
);

/* The kernel has stored a line for a context, or says why not. */
TRACE_EVENT(velo_send,
	TP_PROTO(const struct velo_context *ctx, u64 offset, size_t len_bytes, ssize_t result),
	TP_ARGS(ctx, offset, len_bytes, result),
	TP_STRUCT__entry(
		__field(unsigned int, card)
		__field(unsigned int, number)
		__field(u64, offset)
		__field(size_t, len_bytes)
		__field(ssize_t, result)
	),
	TP_fast_assign(
		__entry->card = MINOR(ctx->card->dev.devt);
		__entry->number = ctx->number;
		__entry->offset = offset;
		__entry->len_bytes = len_bytes;
		__entry->result = result;
	),
	TP_printk("card=%u number=%u offset=0x%llx len_bytes=%zu result=%zd", __entry->card,
		  __entry->number, __entry->offset, __entry->len_bytes, __entry->result)
);

/* A vector has interrupted. 0 woken: what came was for nobody who sleeps. */
TRACE_EVENT(velo_interrupt,
	TP_PROTO(const struct velo_vector *vector, unsigned int woken, bool watching),
	TP_ARGS(vector, woken, watching),
	TP_STRUCT__entry(
		__field(unsigned int, card)
		__field(unsigned int, vector)
		__field(unsigned int, woken)
		__field(bool, watching)
	),
	TP_fast_assign(
		__entry->card = MINOR(vector->card->dev.devt);
		__entry->vector = vector->index;
		__entry->woken = woken;
		__entry->watching = watching;
	),
	TP_printk("card=%u vector=%u woken=%u watching=%u", __entry->card, __entry->vector,
		  __entry->woken, __entry->watching)
);

/* All contexts of a card are about to end: it is reset or goes, the machine sleeps, or it broke. */
TRACE_EVENT(velo_end_contexts,
	TP_PROTO(const struct velo_card *card),
	TP_ARGS(card),
	TP_STRUCT__entry(
		__field(unsigned int, card)
		__field(unsigned int, count)
		__field(bool, broken)
	),
	TP_fast_assign(
		__entry->card = MINOR(card->dev.devt);
		__entry->count = card->context_count;
		__entry->broken = READ_ONCE(card->broken);
	),
	TP_printk("card=%u count=%u broken=%u", __entry->card, __entry->count, __entry->broken)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
