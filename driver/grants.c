// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Grants: which users may send to which contexts of which nodes.
 */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/user_namespace.h>

#include "velo.h"

static char *grants = "none";
module_param(grants, charp, 0444);
MODULE_PARM_DESC(grants, "grants of a card when it is found, as in its file grants (none)");

static const struct velo_grant velo_grant_all = {
	.everyone = true,
	.node_last = VELO_NODES - 1,
	.context_last = VELO_VPIDS - 1,
};

/* "3" or "0-7". Returns how much of the text it is, or 0. */
static int velo_range_parse(const char *text, u8 *first, u8 *last)
{
	unsigned int from, to;
	int len = 0;

	if (sscanf(text, "%u-%u%n", &from, &to, &len) != 2 || !len) {
		len = 0;
		if (sscanf(text, "%u%n", &from, &len) != 1 || !len)
			return 0;
		to = from;
	}
	if (from > to || to > U8_MAX)
		return 0;
	*first = from;
	*last = to;
	return len;
}

static bool velo_word_ends(const char *text)
{
	return !*text || isspace(*text);
}

/* "USER NODES CONTEXTS". Returns how much of the text it is, or 0. */
static int velo_grant_parse(const char *text, struct velo_grant *grant)
{
	const char *at = text;
	unsigned int user;
	int len = 0;

	*grant = (struct velo_grant){};
	if (*at == '*') {
		grant->everyone = true;
		at++;
	} else {
		if (sscanf(at, "%u%n", &user, &len) != 1 || !len)
			return 0;
		grant->user = make_kuid(&init_user_ns, user);
		if (!uid_valid(grant->user))
			return 0;
		at += len;
	}
	if (!velo_word_ends(at))
		return 0;
	at = skip_spaces(at);
	len = velo_range_parse(at, &grant->node_first, &grant->node_last);
	if (!len || !velo_word_ends(at + len))
		return 0;
	at = skip_spaces(at + len);
	len = velo_range_parse(at, &grant->context_first, &grant->context_last);
	if (!len || !velo_word_ends(at + len))
		return 0;
	return at + len - text;
}

/**
 * velo_grants_parse() - read grants
 * @text: "none" takes all away, "all" grants all, "USER NODES CONTEXTS" grants a part: a user's
 *	number or "*", numbers or ranges as in 0-7
 * @grants: in: those so far; out: those that there are now
 *
 * Return: 0; -EINVAL or, if they are too many, -ENOSPC, and @grants may have changed.
 */
int velo_grants_parse(const char *text, struct velo_grants *grants)
{
	while (*(text = skip_spaces(text))) {
		struct velo_grant grant = velo_grant_all;
		int len = 3;

		if (!strncmp(text, "none", 4) && velo_word_ends(text + 4)) {
			grants->count = 0;
			text += 4;
			continue;
		}
		if (strncmp(text, "all", 3) || !velo_word_ends(text + 3))
			len = velo_grant_parse(text, &grant);
		if (!len)
			return -EINVAL;
		if (grants->count == VELO_GRANTS_MAX)
			return -ENOSPC;
		grants->rules[grants->count++] = grant;
		text += len;
	}
	return 0;
}

/**
 * velo_grants_show() - write grants as they are read
 * @grants: the grants
 * @text: of a page
 *
 * Return: the length of the text.
 */
ssize_t velo_grants_show(const struct velo_grants *grants, char *text)
{
	unsigned int i;
	ssize_t len = 0;

	for (i = 0; i < grants->count; i++) {
		const struct velo_grant *grant = &grants->rules[i];

		if (grant->everyone)
			len += sysfs_emit_at(text, len, "*");
		else
			len += sysfs_emit_at(text, len, "%u",
					     from_kuid(&init_user_ns, grant->user));
		len += sysfs_emit_at(text, len, " %u-%u %u-%u\n", grant->node_first,
				     grant->node_last, grant->context_first, grant->context_last);
	}
	return grants->count ? len : sysfs_emit(text, "none\n");
}

/**
 * velo_grants_replace() - grant that and nothing else
 * @card: the card; velo_card.state is held
 * @grants: what is granted
 *
 * A process that has mapped a page finds out at its next access that the grant is gone.
 *
 * Return: 0.
 */
int velo_grants_replace(struct velo_card *card, const struct velo_grants *grants)
{
	unsigned int v, i;

	down_write(&card->live);
	card->grants = *grants;
	up_write(&card->live);
	for (v = 0; v < card->vector_count; v++)
		for (i = 0; i < VELO_CONTEXTS_PER_VECTOR_MAX; i++)
			if (card->vectors[v].contexts[i])
				velo_map_zap_stores(card->vectors[v].contexts[i]);
	return 0;
}

static bool velo_grant_is_for(const struct velo_grant *grant, const struct velo_context *ctx)
{
	return grant->everyone || uid_eq(grant->user, ctx->user);
}

static bool velo_grant_has(const struct velo_grant *grant, u8 node, u8 context)
{
	return node >= grant->node_first && node <= grant->node_last &&
	       context >= grant->context_first && context <= grant->context_last;
}

static bool velo_grant_has_all_contexts(const struct velo_grant *grant)
{
	return grant->context_first == 0 && grant->context_last == VELO_VPIDS - 1;
}

/**
 * velo_granted() - whether a context may send to a target
 * @ctx: the context; velo_card.live is held
 * @target: address of the target, as in layout address
 *
 * Return: whether it may.
 */
bool velo_granted(struct velo_context *ctx, u32 target)
{
	const struct velo_grants *grants = &ctx->card->grants;
	u8 node = velo_address_node(target), context = velo_address_vpid(target);
	unsigned int i;

	for (i = 0; i < grants->count; i++) {
		const struct velo_grant *grant = &grants->rules[i];

		if (velo_grant_is_for(grant, ctx) && velo_grant_has(grant, node, context))
			return true;
	}
	return false;
}

/**
 * velo_granted_all() - whether a context may send to all contexts of all nodes
 * @ctx: the context; velo_card.live is held
 *
 * Return: whether one grant gives it all.
 */
bool velo_granted_all(struct velo_context *ctx)
{
	const struct velo_grants *grants = &ctx->card->grants;
	unsigned int i;

	for (i = 0; i < grants->count; i++) {
		const struct velo_grant *grant = &grants->rules[i];

		if (velo_grant_is_for(grant, ctx) && grant->node_first == 0 &&
		    grant->node_last == VELO_NODES - 1 && velo_grant_has_all_contexts(grant))
			return true;
	}
	return false;
}

/**
 * velo_grants_name() - whether a grant is about a context, and not about all of its node
 * @grants: the grants
 * @node: the node
 * @context: the context
 *
 * Return: whether one is.
 */
bool velo_grants_name(const struct velo_grants *grants, u8 node, u8 context)
{
	unsigned int i;

	for (i = 0; i < grants->count; i++) {
		const struct velo_grant *grant = &grants->rules[i];

		if (!velo_grant_has_all_contexts(grant) && velo_grant_has(grant, node, context))
			return true;
	}
	return false;
}

int velo_grants_init(struct velo_card *card)
{
	return velo_grants_parse(grants, &card->grants);
}
