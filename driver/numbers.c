// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Numbers of contexts, and whose they are.
 *
 * A process that sends to a number, or enters memory for it, means its user. So a number is the
 * user's who took it, also while no process of his has the context, as long as anything may mean
 * him by it:
 *
 *  - memory that a process has entered for it alone,
 *  - a process that has stored to it,
 *  - a grant for some contexts of this node, and not for all,
 *  - other nodes, if the card has links: what they have entered is in tables that this driver
 *    cannot see.
 *
 * Nobody can enter memory for a number that nobody has, so the first two become no more once the
 * context has ended. Until all are gone the number is kept for its user, and counts as his in
 * shares.c. Root can give up a user's numbers at any time, such as when his job has ended on all
 * nodes.
 */
#include <linux/bitmap.h>
#include <linux/nospec.h>

#include "velo.h"

static unsigned int velo_numbers_count(struct velo_card *card)
{
	return card->vector_count * velo_contexts_per_vector();
}

static bool velo_number_is_kept(struct velo_card *card, unsigned int number)
{
	/* Of a number that nobody has this can only fall, see velo_number_name(). */
	return READ_ONCE(card->numbers[number].named) || card->setup.links ||
	       velo_grants_name(&card->grants, card->setup.node, number);
}

static void velo_number_give_up(struct velo_card *card, unsigned int number)
{
	struct velo_number *each = &card->numbers[number];

	each->is_owned = false;
	velo_share_give_back(card, each->user, VELO_RESOURCE_CONTEXT, 1);
}

/* Numbers that nothing keeps any more are free for all. */
static void velo_numbers_settle(struct velo_card *card)
{
	unsigned int i;

	lockdep_assert_held(&card->state);
	for (i = 0; i < velo_numbers_count(card); i++) {
		struct velo_number *each = &card->numbers[i];

		if (each->is_owned && !each->is_taken && !velo_number_is_kept(card, i))
			velo_number_give_up(card, i);
	}
}

static bool velo_number_is_free(const struct velo_number *number, kuid_t user, bool is_owned)
{
	return !number->is_taken && number->is_owned == is_owned &&
	       (!is_owned || uid_eq(number->user, user));
}

/*
 * The search goes round, so that a number, to which messages may be on their way, rests. The user's
 * own numbers come first: he does not get more than he needs at once.
 */
static int velo_number_find_any(struct velo_card *card, kuid_t user)
{
	unsigned int count = velo_numbers_count(card);
	unsigned int pass, i;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < count; i++) {
			unsigned int number = (card->number_next + i) % count;

			if (velo_number_is_free(&card->numbers[number], user, pass == 0))
				return number;
		}
	}
	return -ENOSPC;
}

static int velo_number_find(struct velo_card *card, u32 wanted, kuid_t user)
{
	if (wanted == VELO_CARD_ANY)
		return velo_number_find_any(card, user);
	if (wanted >= velo_numbers_count(card))
		return -EINVAL;
	wanted = array_index_nospec(wanted, velo_numbers_count(card));
	if (velo_number_is_free(&card->numbers[wanted], user, true) ||
	    velo_number_is_free(&card->numbers[wanted], user, false))
		return wanted;
	return -EBUSY;
}

/**
 * velo_number_take() - give a user a number that nobody has
 * @card: of this card; velo_card.state is held
 * @wanted: the number, or VELO_CARD_ANY
 * @user: the user
 *
 * Return: the number, or an error.
 */
int velo_number_take(struct velo_card *card, u32 wanted, kuid_t user)
{
	struct velo_number *found;
	int number, err;

	velo_numbers_settle(card);
	number = velo_number_find(card, wanted, user);
	if (number < 0)
		return number;
	found = &card->numbers[number];
	if (!found->is_owned) {
		err = velo_share_take(card, user, VELO_RESOURCE_CONTEXT, 1,
				      velo_numbers_count(card));
		if (err)
			return err;
		found->user = user;
		found->is_owned = true;
	}
	spin_lock(&card->numbers_lock);
	found->is_taken = true;
	spin_unlock(&card->numbers_lock);
	card->number_next = number + 1;
	return number;
}

/**
 * velo_number_leave() - nobody has a number any more; its user may keep it
 * @card: of this card; velo_card.state is held
 * @number: the number
 */
void velo_number_leave(struct velo_card *card, unsigned int number)
{
	lockdep_assert_held(&card->state);
	spin_lock(&card->numbers_lock);
	card->numbers[number].is_taken = false;
	spin_unlock(&card->numbers_lock);
	if (!velo_number_is_kept(card, number))
		velo_number_give_up(card, number);
}

/**
 * velo_number_name() - something means a number from now on
 * @card: of this card
 * @number: the number
 *
 * Return: whether it is counted; if not, nobody has the number, so there is nobody who could be
 * meant.
 */
bool velo_number_name(struct velo_card *card, unsigned int number)
{
	struct velo_number *meant = &card->numbers[number];
	bool is_taken;

	spin_lock(&card->numbers_lock);
	is_taken = meant->is_taken;
	if (is_taken)
		WRITE_ONCE(meant->named, meant->named + 1);
	spin_unlock(&card->numbers_lock);
	return is_taken;
}

/**
 * velo_number_unname() - what meant a number does no longer
 * @card: of this card
 * @number: the number, which velo_number_name() has counted
 */
void velo_number_unname(struct velo_card *card, unsigned int number)
{
	struct velo_number *meant = &card->numbers[number];

	spin_lock(&card->numbers_lock);
	WRITE_ONCE(meant->named, meant->named - 1);
	spin_unlock(&card->numbers_lock);
}

/**
 * velo_number_stored_to() - a context is about to store to a target
 * @ctx: the context; velo_card.live is held, it is not dead
 * @target: address of the target, as in layout address
 */
void velo_number_stored_to(struct velo_context *ctx, u32 target)
{
	struct velo_card *card = ctx->card;
	u8 number = velo_address_vpid(target);

	if (velo_address_node(target) != card->setup.node || test_bit(number, ctx->stored_to))
		return;
	if (!velo_number_name(card, number))
		return;
	if (test_and_set_bit(number, ctx->stored_to)) /* Another thread was faster. */
		velo_number_unname(card, number);
}

/**
 * velo_numbers_forget() - a context stores to nobody any more
 * @ctx: the context; it is dead
 */
void velo_numbers_forget(struct velo_context *ctx)
{
	unsigned int number;

	for_each_set_bit(number, ctx->stored_to, VELO_VPIDS)
		velo_number_unname(ctx->card, number);
	bitmap_zero(ctx->stored_to, VELO_VPIDS);
}

/**
 * velo_numbers_release() - give up numbers that are kept, whatever means them
 * @card: of this card; velo_card.state is held
 * @user: whose; %INVALID_UID: everybody's
 *
 * Memory that was entered for one of them cannot be reached any more.
 */
void velo_numbers_release(struct velo_card *card, kuid_t user)
{
	unsigned int i;

	lockdep_assert_held(&card->state);
	for (i = 0; i < velo_numbers_count(card); i++) {
		struct velo_number *each = &card->numbers[i];

		if (!each->is_owned || each->is_taken ||
		    (uid_valid(user) && !uid_eq(each->user, user)))
			continue;
		velo_memory_void(card, i);
		velo_number_give_up(card, i);
	}
}

/**
 * velo_numbers_kept() - count numbers that nobody has and that are kept for a user
 * @card: of this card; velo_card.state is held
 *
 * Return: how many.
 */
unsigned int velo_numbers_kept(struct velo_card *card)
{
	unsigned int i, count = 0;

	velo_numbers_settle(card);
	for (i = 0; i < velo_numbers_count(card); i++)
		count += card->numbers[i].is_owned && !card->numbers[i].is_taken;
	return count;
}
