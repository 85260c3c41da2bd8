/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that a host splits on their way to its node: nothing is refused, lost or out of order.
 * These tests hold with whole lines, too; CMakeLists.txt runs them with `--split-one-in`. */
#include <velo/velo.h>

#include "test.h"

#define ROUNDS 10

static void check_nothing_was_refused(struct velo_port *port, uint64_t msgs)
{
    struct velo_port_counters counters;
    CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    CHECK_EQ(counters.rx_errors, 0);
    CHECK_EQ(counters.rx_msgs, msgs);
}

TEST(every_length_arrives_whole_when_lines_are_split)
{
    static unsigned char buf[4096];
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 64, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    uint64_t msgs = 0;
    for (size_t len_bytes = 0; len_bytes <= sizeof buf; len_bytes += len_bytes < 130 ? 1 : 661) {
        pattern_fill(buf, len_bytes, len_bytes);
        CHECK_OK(velo_send(conn, buf, len_bytes, pattern_tag(len_bytes), TEST_PATIENCE_NS));
        message_expect(port, len_bytes, len_bytes, velo_port_id(port));
        msgs++;
    }
    check_nothing_was_refused(port, msgs);
    CHECK_OK(velo_port_close(port));
}

TEST(full_rings_of_split_lines_lose_nothing)
{
    static unsigned char buf[4096];
    static const size_t lens[] = {8, 56, 57, 512, 4096};
    struct velo_port *port = port_open_sized(VELO_VPID_ANY, 64, 16384, 0);
    struct velo_conn *conn = port_connect(port, velo_port_id(port));
    uint64_t seed = 0, msgs = 0;
    for (size_t i = 0; i < ARRAY_LEN(lens); i++)
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t first = seed;
            int status;
            /* The credits of the last round may still be on their way: the first one waits. */
            do {
                pattern_fill(buf, lens[i], seed);
                status = seed == first
                             ? velo_send(conn, buf, lens[i], pattern_tag(seed), TEST_PATIENCE_NS)
                             : velo_try_send(conn, buf, lens[i], pattern_tag(seed));
                seed += status == VELO_OK;
            } while (status == VELO_OK);
            CHECK_STATUS(status, VELO_AGAIN);
            for (; first < seed; first++, msgs++)
                message_expect(port, lens[i], first, velo_port_id(port));
        }
    check_nothing_was_refused(port, msgs);
    CHECK_OK(velo_port_close(port));
}
