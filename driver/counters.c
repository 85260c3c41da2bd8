// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Counters and errors of node and function, each a file in /sys/class/velo/veloN/counters, named
 * as ethtool -S names those of a network card. They count modulo a power of two.
 */
#include <linux/bitops.h>
#include <linux/pm_runtime.h>
#include <linux/seq_buf.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "velo.h"

/**
 * struct velo_counter_kind - a field of a register
 * @name: of the file; of a link's, with the link's number
 * @bar: of the register
 * @offset: of the register, or of link 0's
 * @stride: from a link's register to the next one's; 0: it is no link's
 * @mask: where the field is
 */
struct velo_counter_kind {
	const char *name;
	u8 bar;
	u32 offset;
	u32 stride;
	u64 mask;
};

struct velo_counter {
	struct device_attribute attr;
	const struct velo_counter_kind *kind;
	u32 offset;
};

#define COUNT(file, reg) \
	{ #file, VELO_BAR_REGISTERS, VELO_REG_##reg, 0, VELO_REG_##reg##_COUNT_MASK }
#define FIELD(file, reg, field) \
	{ #file, VELO_BAR_REGISTERS, VELO_REG_##reg, 0, VELO_REG_##reg##_##field##_MASK }
#define LINK(file, reg, field) \
	{ "link%u_" #file, VELO_BAR_REGISTERS, VELO_REG_##reg, VELO_REG_##reg##_STRIDE, \
	  VELO_REG_##reg##_##field##_MASK }
#define PORT(file, field) \
	{ "port%u_" #file, VELO_BAR_REGISTERS, VELO_REG_NODE_PORT_DROPPED, \
	  VELO_REG_NODE_PORT_DROPPED_STRIDE, VELO_REG_NODE_PORT_DROPPED_##field##_MASK }
#define FUNCTION(file, reg, field) \
	{ "pcie_" #file, VELO_BAR_FUNCTION, VELO_PCIE_REG_##reg, 0, \
	  VELO_PCIE_##reg##_##field##_MASK }

static const struct velo_counter_kind velo_counter_kinds[] = {
	COUNT(sent, SENT),
	COUNT(refused, REFUSED),
	COUNT(received, RECEIVED),
	COUNT(dropped, DROPPED),
	COUNT(unmapped, UNMAPPED),
	COUNT(stray_responses, STRAY_RESPONSES),
	COUNT(stray_completions, STRAY_COMPLETIONS),
	COUNT(undelivered, UNDELIVERED),
	COUNT(given_up, GIVEN_UP),
	COUNT(unanswered, UNANSWERED),
	COUNT(host_stalls, HOST_STALLS),
	COUNT(ecc_corrected, ECC_CORRECTED),
	COUNT(ecc_uncorrectable, ECC_UNCORRECTABLE),
	COUNT(rma_posted, RMA_POSTED),
	COUNT(rma_completed, RMA_COMPLETED),
	COUNT(rma_served, RMA_SERVED),
	COUNT(rma_refused, RMA_REFUSED),
	COUNT(rma_errors, RMA_ERRORS),
	COUNT(atu_hits, ATU_HITS),
	COUNT(atu_misses, ATU_MISSES),
	COUNT(atu_refused, ATU_REFUSED),
	FIELD(stall_ring, STALL, STALLED),
	FIELD(stall_host, STALL, HOST),
	FIELD(stall_network, STALL, NETWORK),
	FIELD(stall_context, STALL, CTX),
	FIELD(stall_queue, RMA_STALL, STALLED),
	FIELD(stall_descriptors, RMA_STALL, DESCRIPTORS),
	FIELD(stall_queue_context, RMA_STALL, CTX),
	FIELD(requester_error, REQUESTER_ERROR, CODE),
	FIELD(requester_error_context, REQUESTER_ERROR, SOURCE),
	FIELD(completer_error, COMPLETER_ERROR, CODE),
	FIELD(completer_error_context, COMPLETER_ERROR, CTX),
	FIELD(completer_error_node, COMPLETER_ERROR, NODE),
	FIELD(rma_error, RMA_ERROR, CODE),
	FIELD(rma_error_context, RMA_ERROR, CTX),
	FIELD(rma_error_node, RMA_ERROR, NODE),
	FIELD(rma_requester_error, RMA_REQUESTER_ERROR, CODE),
	FIELD(rma_requester_error_context, RMA_REQUESTER_ERROR, SOURCE),
	FIELD(congestion_marked, CONGESTION_NOTICES, MARKED),
	FIELD(congestion_notices_sent, CONGESTION_NOTICES, SENT),
	FIELD(congestion_notices_received, CONGESTION_NOTICES, RECEIVED),
	FIELD(congestion_held_cycles, CONGESTION_HELD, CYCLES),
	LINK(up, LINK_STATUS, UP),
	LINK(dead, LINK_STATUS, DEAD),
	LINK(refuse, LINK_STATUS, REFUSE),
	LINK(crc_errors, LINK_STATUS, CRC_ERRORS),
	LINK(replays, LINK_STATUS, REPLAYS),
	LINK(timeouts, LINK_STATUS, TIMEOUTS),
	LINK(dropped, LINK_STATUS, DROPPED),
	LINK(in_doubt, LINK_STATUS, IN_DOUBT),
	LINK(restarts, LINK_STATUS, RESTARTS),
	LINK(undelivered, LINK_STATUS, UNDELIVERED),
	LINK(credits, LINK_CREDITS, CREDITS),
	PORT(dropped, DROPPED),
	PORT(poisoned, POISONED),
	FUNCTION(stores_accepted, STORES, ACCEPTED),
	FUNCTION(stores_taken, STORES, TAKEN),
	FUNCTION(stores_dropped, DROPPED, COUNT),
	FUNCTION(stores_dropped_target, DROPPED, TARGET),
	FUNCTION(stores_dropped_context, DROPPED, SOURCE),
	FUNCTION(poisoned, ERRORS, POISONED),
	FUNCTION(unsupported, ERRORS, UNSUPPORTED),
	FUNCTION(malformed, ERRORS, MALFORMED),
	FUNCTION(unexpected, ERRORS, UNEXPECTED),
	FUNCTION(read_timeouts, READS, TIMEOUTS),
	FUNCTION(reads_failed, READS, FAILED),
	FUNCTION(read_slots_lost, READS, LOST),
};

static unsigned int velo_counter_places(const struct velo_counter_kind *kind)
{
	if (!kind->stride)
		return 1;
	return kind->offset == VELO_REG_NODE_PORT_DROPPED ? VELO_REG_NODE_PORT_DROPPED_COUNT :
							    VELO_LINKS_MAX;
}

static u64 velo_counter_read(struct velo_card *card, const struct velo_counter_kind *kind,
			     u32 offset)
{
	void __iomem *base = kind->bar == VELO_BAR_REGISTERS ? card->regs : card->function;

	return (readq(base + offset) & kind->mask) >> __ffs64(kind->mask);
}

static ssize_t velo_counter_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct velo_counter *counter = container_of(attr, struct velo_counter, attr);
	struct velo_card *card = container_of(dev, struct velo_card, dev);
	u64 value = 0;
	int err;

	if (pm_runtime_resume_and_get(&card->pdev->dev))
		return -ENODEV;
	down_read(&card->live);
	err = card->dead ? -ENODEV : 0;
	if (!err)
		value = velo_counter_read(card, counter->kind, counter->offset);
	up_read(&card->live);
	velo_card_put_awake(card);
	return err ? err : sysfs_emit(text, "%llu\n", value);
}

/**
 * velo_counters_dump() - write all counters, a line for each
 * @card: the card, whose registers may be read
 * @out: where to
 */
void velo_counters_dump(struct velo_card *card, struct seq_buf *out)
{
	unsigned int i, place;

	for (i = 0; i < ARRAY_SIZE(velo_counter_kinds); i++) {
		const struct velo_counter_kind *kind = &velo_counter_kinds[i];

		for (place = 0; place < velo_counter_places(kind); place++) {
			seq_buf_printf(out, "counter ");
			seq_buf_printf(out, kind->name, place);
			seq_buf_printf(out, " %llu\n",
				       velo_counter_read(card, kind,
							 kind->offset + place * kind->stride));
		}
	}
}

static int velo_counter_add(struct velo_card *card, struct velo_counter *counter,
			    const struct velo_counter_kind *kind, unsigned int place)
{
	char *name;

	name = devm_kasprintf(&card->pdev->dev, GFP_KERNEL, kind->name, place);
	if (!name)
		return -ENOMEM;
	counter->kind = kind;
	counter->offset = kind->offset + place * kind->stride;
	sysfs_attr_init(&counter->attr.attr);
	counter->attr.attr.name = name;
	counter->attr.attr.mode = 0444;
	counter->attr.show = velo_counter_show;
	return 0;
}

/**
 * velo_counters_init() - make the files of the folder counters
 * @card: the card
 *
 * Return: 0, or an error.
 */
int velo_counters_init(struct velo_card *card)
{
	struct device *dev = &card->pdev->dev;
	struct velo_counter *counters;
	struct attribute **attrs;
	unsigned int i, place, count = 0;

	for (i = 0; i < ARRAY_SIZE(velo_counter_kinds); i++)
		count += velo_counter_places(&velo_counter_kinds[i]);
	counters = devm_kcalloc(dev, count, sizeof(*counters), GFP_KERNEL);
	attrs = devm_kcalloc(dev, count + 1, sizeof(*attrs), GFP_KERNEL);
	if (!counters || !attrs)
		return -ENOMEM;
	card->counters.name = "counters";
	card->counters.attrs = attrs;
	for (i = 0; i < ARRAY_SIZE(velo_counter_kinds); i++) {
		const struct velo_counter_kind *kind = &velo_counter_kinds[i];

		for (place = 0; place < velo_counter_places(kind); place++) {
			int err = velo_counter_add(card, counters, kind, place);

			if (err)
				return err;
			*attrs++ = &counters++->attr.attr;
		}
	}
	return 0;
}
