// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The node behind the function: its number, routes and links, and its forgetting of pages.
 *
 * All functions but velo_node_forget_page(), velo_node_stores() and what send.c calls are called
 * under velo_card.state.
 */
#include <linux/bitfield.h>
#include <linux/ctype.h>
#include <linux/iopoll.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "velo.h"

/* Bits of a word of the routing table that mean something, those of layout group_way included. */
#define VELO_ROUTE_MAX 0x1fff
/* What reads give when there is nothing that answers. */
#define VELO_GONE U64_MAX

/* Times after which something is wrong [us]. A simulated card is slow. */
#define VELO_FORGET_US 200000
#define VELO_BROKEN_US 10000000
/* Cycles: ten queues that each hold up so long are over in VELO_BROKEN_US, simulated ones too. */
#define VELO_FORGET_PATIENCE 65536u
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
		velo_reg_write(card, VELO_REG_RINGS + VELO_PAGE_BYTES * i, 0);
		velo_reg_write(card, VELO_REG_QUEUES + VELO_PAGE_BYTES * i, 0);
		velo_node_share(card, i, 0);
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
	card->sent = velo_pcie_stores_accepted(velo_node_stores(card));
	/* A reset has emptied them. */
	WRITE_ONCE(card->lines_free, card->lines_free + card->lines_left);
	card->lines_left = 0;
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
	WRITE_ONCE(card->setup.links, links);
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
	WRITE_ONCE(*patience, cycles);
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

/*
 * Whether all stores that came before @count have gone on. No more are under way than have come
 * since; so it is right for any number of stores later, also beyond 2^32.
 */
static bool velo_stores_have_gone(u64 stores, u32 count)
{
	u32 accepted = velo_pcie_stores_accepted(stores), taken = velo_pcie_stores_taken(stores);

	return stores == VELO_GONE || accepted - count >= accepted - taken;
}

static bool velo_node_wait_stores_before(struct velo_card *card, u32 count)
{
	u64 stores;

	return !read_poll_timeout(velo_node_stores, stores, velo_stores_have_gone(stores, count),
				  VELO_POLL_US, VELO_FORGET_US, false, card);
}

/**
 * velo_node_wait_stores() - wait until the node has taken what was stored so far
 * @card: the card
 *
 * Return: whether it has; if not, the way to the network is full.
 */
bool velo_node_wait_stores(struct velo_card *card)
{
	u32 accepted = velo_pcie_stores_accepted(velo_node_stores(card));

	return velo_node_wait_stores_before(card, accepted);
}

/**
 * velo_node_wait_room() - wait until the kernel's lines are free for a context
 * @card: the card; velo_card.send is held
 * @number: of the context; the card may still hold stores of who had the number before
 *
 * Return: whether they are.
 */
bool velo_node_wait_room(struct velo_card *card, unsigned int number)
{
	return velo_node_wait_stores_before(card, card->sent) &&
	       velo_node_wait_stores_before(card, card->numbers[number].left);
}

/* --- lines of stores -------------------------------------------------------------------------- */

static void __iomem *velo_share_register(struct velo_card *card, unsigned int number)
{
	return card->function + VELO_PCIE_REG_SHARES + 8 * number;
}

/**
 * velo_node_share() - give a context that begins or ends its share of the card's lines
 * @card: the card
 * @number: of the context
 * @lines: how many stores it may have under way; what comes beyond is dropped and counted, from
 *	0 on
 *
 * The shares together are never more than the card's lines, so that nobody takes one of another's.
 */
void velo_node_share(struct velo_card *card, unsigned int number, unsigned int lines)
{
	writeq(velo_pcie_share_pack(lines, 0), velo_share_register(card, number));
}

/* The same, and what was counted stays. */
void velo_node_change_share(struct velo_card *card, unsigned int number, unsigned int lines)
{
	writel(lines, velo_share_register(card, number));
}

/* Layout pcie_share. A function that was pulled out answers with ones, which no share is. */
u64 velo_node_share_word(struct velo_card *card, unsigned int number)
{
	return readq(velo_share_register(card, number));
}

/**
 * velo_node_leave_lines() - lines of a context that has ended
 * @card: the card; the context has no share any more
 * @number: the context
 * @lines: how many it had; they are free when its stores have gone on
 */
void velo_node_leave_lines(struct velo_card *card, unsigned int number, unsigned int lines)
{
	card->left = velo_pcie_stores_accepted(velo_node_stores(card));
	card->lines_left += lines;
	card->numbers[number].left = card->left;
	velo_node_reclaim_lines(card);
}

/* Whether all stores of the last owner have gone on; the card counts them for the next one. */
bool velo_node_has_left(struct velo_card *card, unsigned int number)
{
	return velo_stores_have_gone(velo_node_stores(card), card->numbers[number].left);
}

/**
 * velo_node_reclaim_lines() - free the lines of contexts that have ended, if their stores have gone
 * @card: the card
 */
void velo_node_reclaim_lines(struct velo_card *card)
{
	if (!velo_stores_have_gone(velo_node_stores(card), card->left))
		return;
	WRITE_ONCE(card->lines_free, card->lines_free + card->lines_left);
	card->lines_left = 0;
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
