// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Shares: how much of a card one user may have, so that there is some for the others.
 *
 * A card has contexts, and entries in its table of pages. The driver divides half of each into
 * equal shares, one for each of user_shares users; a share is one context or entry at least. A user
 * who holds his share gets more only while the others' shares stay free. A user who takes all that
 * he gets therefore leaves each of the others a share. A process with CAP_SYS_RESOURCE gets
 * whatever is free.
 *
 * A context counts as long as its number is the user's (numbers.c), be it taken or not. Entries of
 * the table count until the process withdraws its memory. Pages that it has merely unmapped are
 * pinned no more, so RLIMIT_MEMLOCK does not limit them, but their entries stay taken.
 *
 * An administrator may also limit a cgroup, by its file rdma.max: hca_handle is contexts,
 * hca_object is regions of memory.
 */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "velo.h"

static unsigned int user_shares = 64;
module_param(user_shares, uint, 0644);
MODULE_PARM_DESC(user_shares, "users for whom there is a share of contexts and table; 0: none (64)");

/**
 * struct velo_user - what a user has of a card
 * @list: in velo_card.users, while the user holds anything
 * @uid: who
 * @has: of each resource
 */
struct velo_user {
	struct list_head list;
	kuid_t uid;
	unsigned long has[VELO_RESOURCES];
};

static struct velo_user *velo_user_find(struct velo_card *card, kuid_t uid)
{
	struct velo_user *user;

	list_for_each_entry(user, &card->users, list)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/* How much of the other users' shares nobody has taken yet. */
static unsigned long velo_kept(struct velo_card *card, const struct velo_user *but,
			       enum velo_resource what, unsigned long share, unsigned long users)
{
	unsigned long kept = share * (users - 1);
	struct velo_user *user;

	list_for_each_entry(user, &card->users, list)
		if (user != but)
			kept -= min3(user->has[what], share, kept);
	return kept;
}

static bool velo_may_have(struct velo_card *card, const struct velo_user *user,
			  enum velo_resource what, unsigned long count, unsigned long total)
{
	unsigned long users = READ_ONCE(user_shares), share, taken = 0;
	const struct velo_user *each;

	if (!users)
		return true;
	share = max(total / 2 / users, 1ul);
	if (count <= share && user->has[what] <= share - count)
		return true;
	list_for_each_entry(each, &card->users, list)
		taken += each->has[what];
	return taken + count + velo_kept(card, user, what, share, users) <= total;
}

/**
 * velo_share_take() - count what a user is about to get
 * @card: of this card
 * @uid: the user
 * @what: contexts or entries of the table
 * @count: how many
 * @total: how many the card has
 *
 * Return: 0; -EDQUOT if that is more than he may have; -ENOMEM.
 */
int velo_share_take(struct velo_card *card, kuid_t uid, enum velo_resource what,
		    unsigned long count, unsigned long total)
{
	bool unlimited = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	struct velo_user *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL), *user;
	int err = -EDQUOT;

	if (!fresh)
		return -ENOMEM;
	fresh->uid = uid;
	spin_lock(&card->users_lock);
	user = velo_user_find(card, uid) ?: fresh;
	if (unlimited || velo_may_have(card, user, what, count, total)) {
		user->has[what] += count;
		if (user == fresh) {
			list_add(&fresh->list, &card->users);
			fresh = NULL;
		}
		err = 0;
	}
	spin_unlock(&card->users_lock);
	kfree(fresh);
	return err;
}

/**
 * velo_share_give_back() - count what a user has no more
 * @card: of this card
 * @uid: the user
 * @what: contexts or entries of the table
 * @count: how many
 */
void velo_share_give_back(struct velo_card *card, kuid_t uid, enum velo_resource what,
			  unsigned long count)
{
	struct velo_user *user;
	unsigned int i;

	spin_lock(&card->users_lock);
	user = velo_user_find(card, uid);
	user->has[what] -= count;
	for (i = 0; i < VELO_RESOURCES && !user->has[i]; i++)
		;
	if (i == VELO_RESOURCES)
		list_del(&user->list);
	else
		user = NULL;
	spin_unlock(&card->users_lock);
	kfree(user);
}

/* --- cgroups ---------------------------------------------------------------------------------- */

#ifdef CONFIG_CGROUP_RDMA

static void velo_cgroups_init(struct velo_card *card)
{
	card->cgroups.name = (char *)dev_name(&card->dev);
	rdmacg_register_device(&card->cgroups);
}

static void velo_cgroups_free(struct velo_card *card)
{
	rdmacg_unregister_device(&card->cgroups);
}

/**
 * velo_cgroup_charge() - count what the calling process is about to get
 * @card: of this card
 * @what: a context is a handle, a region an object
 * @cgroup: out: what it counts against, for velo_cgroup_uncharge()
 *
 * Return: 0; -EDQUOT if that is more than its cgroup may have; -ENOMEM.
 */
int velo_cgroup_charge(struct velo_card *card, enum rdmacg_resource_type what,
		       struct rdma_cgroup **cgroup)
{
	int err = rdmacg_try_charge(cgroup, &card->cgroups, what);

	/* A process that is told EAGAIN would try again. */
	return err == -EAGAIN ? -EDQUOT : err;
}

/**
 * velo_cgroup_uncharge() - count what a process has no more
 * @card: of this card
 * @what: as it was charged
 * @cgroup: what it counts against
 */
void velo_cgroup_uncharge(struct velo_card *card, enum rdmacg_resource_type what,
			  struct rdma_cgroup *cgroup)
{
	rdmacg_uncharge(cgroup, &card->cgroups, what);
}

#else

static void velo_cgroups_init(struct velo_card *card)
{
}

static void velo_cgroups_free(struct velo_card *card)
{
}

int velo_cgroup_charge(struct velo_card *card, enum rdmacg_resource_type what,
		       struct rdma_cgroup **cgroup)
{
	return 0;
}

void velo_cgroup_uncharge(struct velo_card *card, enum rdmacg_resource_type what,
			  struct rdma_cgroup *cgroup)
{
}

#endif

/* --- a card ----------------------------------------------------------------------------------- */

/**
 * velo_shares_init() - nobody has anything of a card
 * @card: the card, which has its name
 */
void velo_shares_init(struct velo_card *card)
{
	spin_lock_init(&card->users_lock);
	INIT_LIST_HEAD(&card->users);
	velo_cgroups_init(card);
}

/**
 * velo_shares_free() - forget what users have
 * @card: of this card, which nobody uses any more
 */
void velo_shares_free(struct velo_card *card)
{
	struct velo_user *user, *next;

	velo_cgroups_free(card);
	list_for_each_entry_safe(user, next, &card->users, list)
		kfree(user);
}
