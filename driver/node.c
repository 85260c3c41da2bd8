// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The node behind the function: its number, routes and links, and its forgetting of pages.
 *
 * All functions but velo_node_forget_page() and velo_node_stores() are called under
 * velo_card.state.
 */
#include <linux/bitfield.h>
#include <linux/ctype.h>
#include <linux/iopoll.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "velo.h"

#define VELO_PAGE_STRIDE 4096

/* Bits of a word of the routing table that mean something, those of layout group_way included. */
#define VELO_ROUTE_MAX 0x1fff
/* What reads give when there is nothing that answers. */
#define VELO_GONE U64_MAX

/* Times after which something is wrong [us]. A simulated card is slow. */
#define VELO_FORGET_US 200000
#define VELO_BROKEN_US 10000000
/* Cycles: ten packets that each wait so long are over in VELO_BROKEN_US, simulated ones too. */
#define VELO_FORGET_PATIENCE (1u << 16)
/* Between two looks; most waits are over at the first one. */
#define VELO_POLL_US 20

static u64 velo_patience_word(u32 cycles, u64 enable)
{
	return cycles ? enable | cycles : 0;
}

static void velo_node_write_ring_patience(struct velo_card *card, u32 cycles)
{
	velo_reg_write(card, VELO_REG_WATCHDOG,
		       velo_patience_word(cycles, VELO_REG_WATCHDOG_ENABLE_MASK));
}

static void velo_node_write_patience(struct velo_card *card)
{
	velo_node_write_ring_patience(card, card->setup.ring_patience);
	velo_reg_write(card, VELO_REG_ACCESS_WATCHDOG,
		       velo_patience_word(card->setup.access_patience,
					  VELO_REG_ACCESS_WATCHDOG_ENABLE_MASK));
	velo_reg_write(card, VELO_REG_ANSWER_WATCHDOG,
		       velo_patience_word(card->setup.answer_patience,
					  VELO_REG_ANSWER_WATCHDOG_ENABLE_MASK));
}

static void velo_node_write_moderation(struct velo_card *card)
{
	void __iomem *at = card->function + VELO_PCIE_REG_SETTING;
	u64 word = readq(at) & ~(u64)VELO_PCIE_SETTING_MODERATION_MASK;

	writeq(word | FIELD_PREP(VELO_PCIE_SETTING_MODERATION_MASK, card->setup.moderation), at);
}

static void velo_node_write_route(struct velo_card *card, unsigned int target)
{
	velo_reg_write(card, VELO_REG_ROUTES + 8 * target, card->setup.routes[target]);
}

/**
 * velo_node_check() - see whether this is a node that the driver knows
 * @card: the card
 *
 * Return: 0, or an error.
 */
int velo_node_check(struct velo_card *card)
{
	u64 id = velo_reg_read(card, VELO_REG_ID);
	u32 abi = FIELD_GET(VELO_REG_ID_ABI_MASK, id);

	if (id == VELO_GONE)
		return dev_err_probe(&card->pdev->dev, -EIO, "the registers do not answer\n");
	if (abi != VELO_ABI_VERSION)
		return dev_err_probe(&card->pdev->dev, -ENODEV, "layout %u, and not %u\n", abi,
				     VELO_ABI_VERSION);
	return 0;
}

/**
 * velo_node_was_reset() - see whether the node is as it is after a reset
 * @card: the card
 *
 * Return: whether it accesses no memory. Contexts of a broken card were not disabled, so only a
 * reset makes it one that may be a bus master.
 */
bool velo_node_was_reset(struct velo_card *card)
{
	return !(velo_reg_read(card, VELO_REG_PAGES) & VELO_REG_PAGES_ENABLE_MASK);
}

/**
 * velo_node_shut_down() - take the node from the network, and all contexts from the node
 * @card: the card
 *
 * An earlier driver may have left anything behind.
 */
void velo_node_shut_down(struct velo_card *card)
{
	unsigned int i;

	velo_reg_write(card, VELO_REG_LINKS, 0);
	for (i = 0; i < VELO_VPIDS; i++) {
		velo_reg_write(card, VELO_REG_RINGS + VELO_PAGE_STRIDE * i, 0);
		velo_reg_write(card, VELO_REG_QUEUES + VELO_PAGE_STRIDE * i, 0);
	}
	velo_reg_write(card, VELO_REG_PAGES, 0);
	velo_reg_read(card, VELO_REG_ID);
}

/**
 * velo_node_set_up() - give a node that was reset its settings
 * @card: the card; there are no contexts
 */
void velo_node_set_up(struct velo_card *card)
{
	unsigned int i;

	velo_reg_write(card, VELO_REG_SETUP,
		       FIELD_PREP(VELO_REG_SETUP_NODE_ID_MASK, card->setup.node));
	for (i = 0; i < VELO_NODES; i++)
		velo_node_write_route(card, i);
	velo_node_write_patience(card);
	velo_node_write_moderation(card);
	card->sent = velo_pcie_stores_taken(velo_node_stores(card));
	velo_reg_write(card, VELO_REG_PAGES, velo_memory_pages_word(card));
	velo_reg_write(card, VELO_REG_LINKS,
		       FIELD_PREP(VELO_REG_LINKS_ENABLE_MASK, card->setup.links));
	velo_reg_read(card, VELO_REG_ID);
}

int velo_node_set_number(struct velo_card *card, u8 node)
{
	u8 old = card->setup.node;

	if (card->context_count)
		return -EBUSY;
	if (card->setup.routes[old] == VELO_ROUTE_LOCAL)
		card->setup.routes[old] = VELO_ROUTE_NONE;
	card->setup.node = node;
	card->setup.routes[node] = VELO_ROUTE_LOCAL;
	if (card->dead)
		return 0;
	velo_reg_write(card, VELO_REG_SETUP, FIELD_PREP(VELO_REG_SETUP_NODE_ID_MASK, node));
	velo_node_write_route(card, old);
	velo_node_write_route(card, node);
	return 0;
}

int velo_node_set_links(struct velo_card *card, u8 links)
{
	card->setup.links = links;
	if (!card->dead)
		velo_reg_write(card, VELO_REG_LINKS,
			       FIELD_PREP(VELO_REG_LINKS_ENABLE_MASK, links));
	return 0;
}

int velo_node_set_routes(struct velo_card *card, const u16 *routes)
{
	unsigned int i;

	for (i = 0; i < VELO_NODES; i++) {
		if (card->setup.routes[i] == routes[i])
			continue;
		card->setup.routes[i] = routes[i];
		if (!card->dead)
			velo_node_write_route(card, i);
	}
	return 0;
}

int velo_node_set_patience(struct velo_card *card, u32 *patience, u32 cycles)
{
	*patience = cycles;
	if (!card->dead)
		velo_node_write_patience(card);
	return 0;
}

/* As the card has it. */
u32 velo_node_moderation(struct velo_card *card)
{
	if (card->dead)
		return card->setup.moderation;
	return FIELD_GET(VELO_PCIE_SETTING_MODERATION_MASK,
			 readq(card->function + VELO_PCIE_REG_SETTING));
}

int velo_node_set_moderation(struct velo_card *card, u32 cycles)
{
	card->setup.moderation = cycles;
	if (!card->dead)
		velo_node_write_moderation(card);
	return 0;
}

/**
 * velo_routes_parse() - read a routing table
 * @text: a line "TARGET WAY" for each target; "none" first forgets all
 * @routes: in: the table so far; out: the table
 *
 * Return: 0, or -EINVAL, and @routes may have changed.
 */
int velo_routes_parse(const char *text, u16 *routes)
{
	unsigned int i;

	while (*(text = skip_spaces(text))) {
		unsigned int target, way;
		int len = 0;

		if (!strncmp(text, "none", 4) && (!text[4] || isspace(text[4]))) {
			for (i = 0; i < VELO_NODES; i++)
				routes[i] = VELO_ROUTE_NONE;
			text += 4;
			continue;
		}
		if (sscanf(text, "%u %i%n", &target, &way, &len) != 2 || !len)
			return -EINVAL;
		if (target >= VELO_NODES || way > VELO_ROUTE_MAX)
			return -EINVAL;
		if (text[len] && !isspace(text[len]))
			return -EINVAL;
		routes[target] = way;
		text += len;
	}
	return 0;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/*
 * The card does not do what it must, so what it may write can no longer be told. It is stopped from
 * writing at all, and a reset brings it back.
 */
static void velo_card_broke(struct velo_card *card, const char *why)
{
	if (READ_ONCE(card->broken))
		return;
	WRITE_ONCE(card->broken, true);
	if (pci_device_is_present(card->pdev)) {
		pci_clear_master(card->pdev);
		dev_err(&card->pdev->dev, "%s; stopped until it is reset\n", why);
	}
	schedule_work(&card->rescue);
}

static bool velo_page_is_forgotten(struct velo_card *card, unsigned int us)
{
	u64 word;
	int err;

	err = read_poll_timeout(velo_reg_read, word,
				!(word & VELO_REG_INVALIDATE_BUSY_MASK) || word == VELO_GONE,
				VELO_POLL_US, us, false, card, VELO_REG_INVALIDATE);
	return !err && word != VELO_GONE;
}

/**
 * velo_node_forget_page() - wait until the node does not access a page any more
 * @card: the card; velo_card.pages is held
 * @page: the page, whose entry has been zeroed
 *
 * A notification queue that nobody empties may hold up the RMA unit, and with it what waits for
 * the page. Then what is for full queues is dropped after VELO_FORGET_PATIENCE until this is over.
 */
void velo_node_forget_page(struct velo_card *card, unsigned long page)
{
	u32 patience = READ_ONCE(card->setup.ring_patience);
	bool is_forgotten;

	if (READ_ONCE(card->broken))
		return;
	velo_reg_write(card, VELO_REG_INVALIDATE, FIELD_PREP(VELO_REG_INVALIDATE_PAGE_MASK, page));
	if (velo_page_is_forgotten(card, VELO_FORGET_US))
		return;
	if (!patience || patience > VELO_FORGET_PATIENCE)
		velo_node_write_ring_patience(card, VELO_FORGET_PATIENCE);
	is_forgotten = velo_page_is_forgotten(card, VELO_BROKEN_US);
	velo_node_write_ring_patience(card, READ_ONCE(card->setup.ring_patience));
	if (!is_forgotten)
		velo_card_broke(card, "it does not forget a page");
}

u64 velo_node_stores(struct velo_card *card)
{
	return readq(card->function + VELO_PCIE_REG_STORES);
}

static bool velo_stores_leave_room(struct velo_card *card, u64 stores)
{
	u32 accepted = velo_pcie_stores_accepted(stores), taken = velo_pcie_stores_taken(stores);

	return (s32)(taken - card->sent) >= 0 && accepted - taken < card->lines;
}

/**
 * velo_node_wait_stores() - wait until the node has taken what was stored so far
 * @card: the card
 *
 * Return: whether it has; if not, the way to the network is full.
 */
bool velo_node_wait_stores(struct velo_card *card)
{
	u64 stores = velo_node_stores(card);
	u32 accepted = velo_pcie_stores_accepted(stores);

	if (velo_pcie_stores_taken(stores) == accepted)
		return true;
	return !read_poll_timeout(velo_node_stores, stores,
				  (s32)(velo_pcie_stores_taken(stores) - accepted) >= 0,
				  VELO_POLL_US, VELO_FORGET_US, false, card);
}

/**
 * velo_node_wait_room() - wait until the kernel's line is free
 * @card: the card; velo_card.send is held
 *
 * It is when the node has taken what the kernel stored last. Contexts that have more stores under
 * way than they may can fill all lines, the kernel's too.
 *
 * Return: whether there is room.
 */
bool velo_node_wait_room(struct velo_card *card)
{
	u64 stores;

	return !read_poll_timeout(velo_node_stores, stores,
				  stores == VELO_GONE || velo_stores_leave_room(card, stores),
				  VELO_POLL_US, VELO_FORGET_US, false, card);
}

/**
 * velo_node_settle() - wait until writes for a context that was disabled have come
 * @card: the card
 *
 * The header word of a context's last message may be on its way when the context is disabled. Each
 * answer to a read takes its turn behind a write that waits, at the crossbar and at the function's
 * stream to the host.
 */
void velo_node_settle(struct velo_card *card)
{
	unsigned int i;

	if (READ_ONCE(card->broken))
		return;
	velo_node_wait_stores(card);
	for (i = 0; i < 4; i++)
		velo_reg_read(card, VELO_REG_STALL);
}
