// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * KUnit: what the files grants and routes take, and what they refuse.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "velo.h"

static struct velo_grants *some_grants(struct kunit *test)
{
	struct velo_grants *grants = kunit_kzalloc(test, sizeof(*grants), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, grants);
	return grants;
}

static void grants_are_appended(struct kunit *test)
{
	struct velo_grants *grants = some_grants(test);

	KUNIT_EXPECT_EQ(test, velo_grants_parse("* 1-2 3\n1000 4 5-6\n", grants), 0);
	KUNIT_EXPECT_EQ(test, velo_grants_parse(" all ", grants), 0);
	KUNIT_ASSERT_EQ(test, grants->count, 3);
	KUNIT_EXPECT_TRUE(test, grants->rules[0].everyone);
	KUNIT_EXPECT_EQ(test, grants->rules[0].node_first, 1);
	KUNIT_EXPECT_EQ(test, grants->rules[0].node_last, 2);
	KUNIT_EXPECT_EQ(test, grants->rules[0].context_first, 3);
	KUNIT_EXPECT_EQ(test, grants->rules[0].context_last, 3);
	KUNIT_EXPECT_FALSE(test, grants->rules[1].everyone);
	KUNIT_EXPECT_TRUE(test, uid_eq(grants->rules[1].user, KUIDT_INIT(1000)));
	KUNIT_EXPECT_EQ(test, grants->rules[2].node_last, VELO_NODES - 1);
	KUNIT_EXPECT_EQ(test, velo_grants_parse("none", grants), 0);
	KUNIT_EXPECT_EQ(test, grants->count, 0);
}

static void wrong_grants_are_refused(struct kunit *test)
{
	static const char * const wrong[] = {
		"al", "alls", "nones", "*", "* 1", "*1 2 3", "* 256 0", "* 0 256", "* 2-1 0",
		"* 0 2-1", "-1 0 0", "x 0 0", "4294967295 0 0", "* 0-1x 0", "* 0 0x",
	};
	struct velo_grants *grants = some_grants(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, velo_grants_parse(wrong[i], grants), -EINVAL, "%s",
				    wrong[i]);
	KUNIT_EXPECT_EQ(test, grants->count, 0);
}

static void there_is_a_limit_of_grants(struct kunit *test)
{
	struct velo_grants *grants = some_grants(test);
	unsigned int i;

	for (i = 0; i < VELO_GRANTS_MAX; i++)
		KUNIT_ASSERT_EQ(test, velo_grants_parse("0 0 0", grants), 0);
	KUNIT_EXPECT_EQ(test, velo_grants_parse("0 0 0", grants), -ENOSPC);
	KUNIT_EXPECT_EQ(test, grants->count, VELO_GRANTS_MAX);
}

static void routes_are_replaced(struct kunit *test)
{
	u16 *routes = kunit_kcalloc(test, VELO_NODES, sizeof(*routes), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, routes);
	KUNIT_EXPECT_EQ(test, velo_routes_parse("none\n0 15\n255 0x9\n", routes), 0);
	KUNIT_EXPECT_EQ(test, routes[0], VELO_ROUTE_LOCAL);
	KUNIT_EXPECT_EQ(test, routes[1], VELO_ROUTE_NONE);
	KUNIT_EXPECT_EQ(test, routes[255], 9);
	KUNIT_EXPECT_EQ(test, velo_routes_parse("1 2", routes), 0);
	KUNIT_EXPECT_EQ(test, routes[1], 2);
	KUNIT_EXPECT_EQ(test, routes[255], 9);
}

static void wrong_routes_are_refused(struct kunit *test)
{
	static const char * const wrong[] = { "0", "256 0", "0 8192", "0 1x", "x 1", "0 1 2" };
	u16 *routes = kunit_kcalloc(test, VELO_NODES, sizeof(*routes), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, routes);
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, velo_routes_parse(wrong[i], routes), -EINVAL, "%s",
				    wrong[i]);
}

static struct kunit_case velo_parse_cases[] = {
	KUNIT_CASE(grants_are_appended),
	KUNIT_CASE(wrong_grants_are_refused),
	KUNIT_CASE(there_is_a_limit_of_grants),
	KUNIT_CASE(routes_are_replaced),
	KUNIT_CASE(wrong_routes_are_refused),
	{}
};

static struct kunit_suite velo_parse_suite = {
	.name = "velo_parse",
	.test_cases = velo_parse_cases,
};

kunit_test_suite(velo_parse_suite);
