// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Settings of a card, and what of it is in use, in /sys/class/velo/veloN.
 */
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "velo.h"

static struct velo_card *velo_card_of(struct device *dev)
{
	return container_of(dev, struct velo_card, dev);
}

/* A setting that is a number: `shown` tells it, `set` writes `value`, of type u32. */
#define VELO_SETTING(name, shown, set, value_max)						\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *text)	\
{												\
	struct velo_card *card = velo_card_of(dev);						\
	u32 value;										\
												\
	mutex_lock(&card->state);								\
	value = (shown);									\
	mutex_unlock(&card->state);								\
	return sysfs_emit(text, "%u\n", value);							\
}												\
												\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr,			\
			    const char *text, size_t len)					\
{												\
	struct velo_card *card = velo_card_of(dev);						\
	u32 value;										\
	int err = kstrtou32(text, 0, &value);							\
												\
	if (err)										\
		return err;									\
	if (value > (value_max))								\
		return -EINVAL;									\
	mutex_lock(&card->state);								\
	err = (set);										\
	mutex_unlock(&card->state);								\
	return err ? err : len;									\
}												\
												\
static DEVICE_ATTR_RW(name)

VELO_SETTING(node, card->setup.node, velo_node_set_number(card, value), VELO_NODES - 1);
VELO_SETTING(ring_patience, card->setup.ring_patience,
	     velo_node_set_patience(card, &card->setup.ring_patience, value),
	     VELO_REG_WATCHDOG_CYCLES_MASK);
VELO_SETTING(moderation, velo_node_moderation(card), velo_node_set_moderation(card, value),
	     U16_MAX);
VELO_SETTING(access_patience, card->setup.access_patience,
	     velo_node_set_patience(card, &card->setup.access_patience, value),
	     VELO_REG_ACCESS_WATCHDOG_CYCLES_MASK);
VELO_SETTING(answer_patience, card->setup.answer_patience,
	     value == 1 ? -EINVAL : /* The hardware counts halves of it. */
			  velo_node_set_patience(card, &card->setup.answer_patience, value),
	     VELO_REG_ANSWER_WATCHDOG_CYCLES_MASK);

static ssize_t links_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(velo_card_of(dev)->setup.links));
}

/* Links keep a card awake, so it wakes up for them, and may sleep once it has none. */
static ssize_t links_store(struct device *dev, struct device_attribute *attr, const char *text,
			   size_t len)
{
	struct velo_card *card = velo_card_of(dev);
	u32 links;
	int err = kstrtou32(text, 0, &links);

	if (err)
		return err;
	if (links > U8_MAX)
		return -EINVAL;
	err = pm_runtime_resume_and_get(&card->pdev->dev);
	if (err)
		return err;
	mutex_lock(&card->state);
	velo_node_set_links(card, links);
	mutex_unlock(&card->state);
	velo_card_put_awake(card);
	return len;
}

static DEVICE_ATTR_RW(links);

static ssize_t routes_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct velo_card *card = velo_card_of(dev);
	ssize_t len = 0;
	unsigned int i;

	mutex_lock(&card->state);
	for (i = 0; i < VELO_NODES; i++)
		if (card->setup.routes[i] != VELO_ROUTE_NONE)
			len += sysfs_emit_at(text, len, "%u %u\n", i, card->setup.routes[i]);
	mutex_unlock(&card->state);
	return len;
}

static ssize_t routes_store(struct device *dev, struct device_attribute *attr, const char *text,
			    size_t len)
{
	struct velo_card *card = velo_card_of(dev);
	u16 *routes = kmalloc(sizeof(card->setup.routes), GFP_KERNEL);
	int err;

	if (!routes)
		return -ENOMEM;
	mutex_lock(&card->state);
	memcpy(routes, card->setup.routes, sizeof(card->setup.routes));
	err = velo_routes_parse(text, routes);
	if (!err)
		err = velo_node_set_routes(card, routes);
	mutex_unlock(&card->state);
	kfree(routes);
	return err ? err : len;
}

static DEVICE_ATTR_RW(routes);

static ssize_t grants_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct velo_card *card = velo_card_of(dev);
	ssize_t len;

	down_read(&card->live);
	len = velo_grants_show(&card->grants, text);
	up_read(&card->live);
	return len;
}

static ssize_t grants_store(struct device *dev, struct device_attribute *attr, const char *text,
			    size_t len)
{
	struct velo_card *card = velo_card_of(dev);
	struct velo_grants *grants = kmalloc(sizeof(*grants), GFP_KERNEL);
	int err;

	if (!grants)
		return -ENOMEM;
	mutex_lock(&card->state);
	*grants = card->grants;
	err = velo_grants_parse(text, grants);
	if (!err)
		err = velo_grants_replace(card, grants);
	mutex_unlock(&card->state);
	kfree(grants);
	return err ? err : len;
}

static DEVICE_ATTR_RW(grants);

/* A user's number, or "all". */
static ssize_t release_store(struct device *dev, struct device_attribute *attr, const char *text,
			     size_t len)
{
	struct velo_card *card = velo_card_of(dev);
	kuid_t user = INVALID_UID;
	u32 number;
	int err;

	if (!sysfs_streq(text, "all")) {
		err = kstrtou32(text, 10, &number);
		if (err)
			return err;
		user = make_kuid(&init_user_ns, number);
		if (!uid_valid(user))
			return -EINVAL;
	}
	mutex_lock(&card->state);
	velo_numbers_release(card, user);
	mutex_unlock(&card->state);
	return len;
}

static DEVICE_ATTR_WO(release);

static ssize_t contexts_kept_show(struct device *dev, struct device_attribute *attr, char *text)
{
	struct velo_card *card = velo_card_of(dev);
	unsigned int count;

	mutex_lock(&card->state);
	count = velo_numbers_kept(card);
	mutex_unlock(&card->state);
	return sysfs_emit(text, "%u\n", count);
}

static DEVICE_ATTR_RO(contexts_kept);

#define VELO_STATE(name, format, value)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *text)	\
{												\
	struct velo_card *card = velo_card_of(dev);						\
												\
	return sysfs_emit(text, format "\n", value);						\
}												\
												\
static DEVICE_ATTR_RO(name)

VELO_STATE(contexts, "%u", READ_ONCE(card->context_count));
VELO_STATE(contexts_max, "%u", card->vector_count * velo_contexts_per_vector());
VELO_STATE(pages, "%lu", READ_ONCE(card->pages_entered));
VELO_STATE(lines_free, "%u", READ_ONCE(card->lines_free));
VELO_STATE(resets, "%u", READ_ONCE(card->resets));
VELO_STATE(broken, "%u", READ_ONCE(card->broken));

static struct attribute *velo_settings[] = {
	&dev_attr_node.attr,
	&dev_attr_routes.attr,
	&dev_attr_links.attr,
	&dev_attr_ring_patience.attr,
	&dev_attr_access_patience.attr,
	&dev_attr_answer_patience.attr,
	&dev_attr_moderation.attr,
	&dev_attr_grants.attr,
	&dev_attr_contexts.attr,
	&dev_attr_contexts_max.attr,
	&dev_attr_contexts_kept.attr,
	&dev_attr_release.attr,
	&dev_attr_pages.attr,
	&dev_attr_lines_free.attr,
	&dev_attr_resets.attr,
	&dev_attr_broken.attr,
	NULL,
};

const struct attribute_group velo_settings_group = {
	.attrs = velo_settings,
};
