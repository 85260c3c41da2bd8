/* SPDX-License-Identifier: Apache-2.0 */
/* The runner's own: each test here ends in another way; CMakeLists.txt names the exit status. */
#include <stdlib.h>

#include "test.h"

TEST(all_is_well) { CHECK(true); }

TEST(a_check_fails) { CHECK(false); }

TEST(there_is_no_verdict) { test_skip("it is to be so"); }

TEST(a_crash_follows_a_skip)
{
    CHECK_EQ(atexit(abort), 0);
    test_skip("the process crashes after this");
}
