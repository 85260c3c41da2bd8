/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics, domains and endpoints: opened, bound, enabled and closed in right and wrong order. */
#include <string.h>

#include "side.h"

static const struct side_attr plain = {0};

TEST(a_fabric_with_an_open_domain_is_busy)
{
    struct side side;

    side_open(&side, &plain);
    CHECK_REFUSED(fi_close(&side.fabric->fid), FI_EBUSY);
    side_close(&side);
}

TEST(a_domain_with_an_open_endpoint_is_busy)
{
    struct side side;

    side_open(&side, &plain);
    CHECK_REFUSED(fi_close(&side.domain->fid), FI_EBUSY);
    side_close(&side);
}

TEST(a_domain_with_anything_open_is_busy)
{
    struct side_attr attr = {.has_counters = true};
    struct side side;

    side_open_domain(&side, &attr);
    CHECK_REFUSED(fi_close(&side.domain->fid), FI_EBUSY);
    CHECK_FI(fi_close(&side.av->fid));
    CHECK_REFUSED(fi_close(&side.domain->fid), FI_EBUSY);
    CHECK_FI(fi_close(&side.cq->fid));
    CHECK_REFUSED(fi_close(&side.domain->fid), FI_EBUSY);
    CHECK_FI(fi_close(&side.done->fid));
    CHECK_REFUSED(fi_close(&side.domain->fid), FI_EBUSY);
    CHECK_FI(fi_close(&side.received->fid));
    CHECK_FI(fi_close(&side.domain->fid));
    CHECK_FI(fi_close(&side.fabric->fid));
    fi_freeinfo(side.info);
}

TEST(a_domain_with_registered_memory_is_busy)
{
    struct side_attr attr = {.caps = FI_MSG | FI_RMA};
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_mr *mr;
    struct fi_info *hints;
    static char memory[4096];

    needs(&attr);
    hints = hints_of(&attr);
    CHECK_FI(fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info));
    CHECK_FI(fi_fabric(info->fabric_attr, &fabric, NULL));
    CHECK_FI(fi_domain(fabric, info, &domain, NULL));
    CHECK_FI(fi_mr_reg(domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
    CHECK_REFUSED(fi_close(&domain->fid), FI_EBUSY);
    CHECK_FI(fi_close(&mr->fid));
    CHECK_FI(fi_close(&domain->fid));
    CHECK_FI(fi_close(&fabric->fid));
    fi_freeinfo(hints);
    fi_freeinfo(info);
}

TEST(what_an_endpoint_is_bound_to_is_busy)
{
    struct side_attr attr = {.has_counters = true};
    struct side side;

    side_open(&side, &attr);
    CHECK_REFUSED(fi_close(&side.av->fid), FI_EBUSY);
    CHECK_REFUSED(fi_close(&side.cq->fid), FI_EBUSY);
    CHECK_REFUSED(fi_close(&side.done->fid), FI_EBUSY);
    CHECK_REFUSED(fi_close(&side.received->fid), FI_EBUSY);
    side_close(&side);
}

TEST(everything_opens_and_closes_many_times_without_a_trace)
{
    struct side side;
    size_t before;

    side_open(&side, &plain);
    side_close(&side);
    before = descriptors_open();
    for (int i = 0; i < 20; i++) {
        side_open(&side, &plain);
        side_close(&side);
    }
    CHECK_EQ(descriptors_open(), before);
}

TEST(an_endpoint_without_address_vector_is_not_enabled)
{
    struct side side;

    side_open_domain(&side, &plain);
    CHECK_FI(fi_endpoint(side.domain, side.info, &side.ep, NULL));
    CHECK_FI(fi_ep_bind(side.ep, &side.cq->fid, FI_SEND | FI_RECV));
    CHECK_REFUSED(fi_enable(side.ep), FI_ENOAV);
    CHECK_FI(fi_close(&side.ep->fid));
    side_open_endpoint(&side);
    side_close(&side);
}

TEST(an_endpoint_without_queue_is_not_enabled)
{
    struct side side;

    side_open_domain(&side, &plain);
    CHECK_FI(fi_endpoint(side.domain, side.info, &side.ep, NULL));
    CHECK_FI(fi_ep_bind(side.ep, &side.av->fid, 0));
    CHECK_REFUSED(fi_enable(side.ep), FI_ENOCQ);
    CHECK_FI(fi_close(&side.ep->fid));
    side_open_endpoint(&side);
    side_close(&side);
}

TEST(an_endpoint_that_is_not_enabled_posts_nothing)
{
    struct side side;
    struct fid_ep *ep;
    char byte = 0;
    struct fi_context2 context;

    side_open(&side, &plain);
    CHECK_FI(fi_endpoint(side.domain, side.info, &ep, NULL));
    CHECK_FI(fi_ep_bind(ep, &side.av->fid, 0));
    CHECK_FI(fi_ep_bind(ep, &side.cq->fid, FI_SEND | FI_RECV));
    CHECK(fi_send(ep, &byte, 1, NULL, 0, &context) < 0);
    CHECK(fi_tsend(ep, &byte, 1, NULL, 0, 0, &context) < 0);
    CHECK_FI(fi_close(&ep->fid));
    nothing_more(&side);
    side_close(&side);
}

TEST(an_endpoint_is_not_bound_to_what_does_not_fit)
{
    struct side side, other;
    struct fid_ep *ep;

    side_open(&side, &plain);
    side_open(&other, &plain);
    CHECK_FI(fi_endpoint(side.domain, side.info, &ep, NULL));
    CHECK(fi_ep_bind(ep, &side.fabric->fid, 0) < 0);
    CHECK(fi_ep_bind(ep, &side.domain->fid, 0) < 0);
    CHECK(fi_ep_bind(ep, &side.cq->fid, FI_SEND | FI_REMOTE_READ | 1) < 0);
    CHECK_FI(fi_close(&ep->fid));
    side_close(&other);
    side_close(&side);
}

TEST(an_endpoint_is_not_bound_to_parts_of_another_domain)
{
    struct side side, other;
    struct fid_ep *ep;

    side_open(&side, &plain);
    side_open(&other, &plain);
    CHECK_FI(fi_endpoint(side.domain, side.info, &ep, NULL));
    CHECK_REFUSED(fi_ep_bind(ep, &other.av->fid, 0), FI_EINVAL);
    CHECK_REFUSED(fi_ep_bind(ep, &other.cq->fid, FI_SEND | FI_RECV), FI_EINVAL);
    CHECK_FI(fi_close(&ep->fid));
    side_close(&other);
    side_close(&side);
}

TEST(a_fabric_has_several_domains)
{
    struct side side;
    struct fid_domain *second;

    side_open(&side, &plain);
    CHECK_FI(fi_domain(side.fabric, side.info, &second, NULL));
    CHECK_FI(fi_close(&second->fid));
    side_close(&side);
}

TEST(a_fabric_of_another_name_is_refused)
{
    struct side side;
    struct fi_info *info;
    struct fid_fabric *fabric = NULL;
    static char name[] = "no such fabric";

    if (!is_velo())
        test_skip("others take any name");
    side_open(&side, &plain);
    info = fi_dupinfo(side.info);
    char *old = info->fabric_attr->name;
    info->fabric_attr->name = name;
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) < 0);
    info->fabric_attr->name = old;
    fi_freeinfo(info);
    side_close(&side);
}

TEST(endpoints_of_another_type_are_refused)
{
    struct side side;
    struct fi_info *info;
    struct fid_ep *ep = NULL;
    struct fid_pep *pep = NULL;

    if (!is_velo())
        test_skip("others have them");
    side_open(&side, &plain);
    info = fi_dupinfo(side.info);
    info->ep_attr->type = FI_EP_MSG;
    CHECK(fi_endpoint(side.domain, info, &ep, NULL) < 0);
    CHECK(fi_passive_ep(side.fabric, info, &pep, NULL) < 0);
    info->ep_attr->type = FI_EP_RDM;
    CHECK(fi_scalable_ep(side.domain, info, &ep, NULL) < 0);
    fi_freeinfo(info);
    side_close(&side);
}

TEST(an_endpoint_without_connections_does_not_connect)
{
    struct side side;

    side_open(&side, &plain);
    CHECK(fi_connect(side.ep, side.name, NULL, 0) < 0);
    CHECK(fi_accept(side.ep, NULL, 0) < 0);
    CHECK(fi_shutdown(side.ep, 0) < 0);
    side_close(&side);
}

TEST(calls_that_are_not_there_answer_an_error)
{
    struct side side;
    void *ops = NULL;
    struct fid_ep *ep = NULL;
    fi_addr_t addr;

    if (!is_velo())
        test_skip("others have them");
    side_open(&side, &plain);
    CHECK(fi_open_ops(&side.fabric->fid, "none", 0, &ops, NULL) < 0);
    CHECK(fi_open_ops(&side.domain->fid, "none", 0, &ops, NULL) < 0);
    CHECK(fi_tx_context(side.ep, 0, NULL, &ep, NULL) < 0);
    CHECK(fi_rx_context(side.ep, 0, NULL, &ep, NULL) < 0);
    CHECK(fi_srx_context(side.domain, NULL, &ep, NULL) < 0);
    CHECK(fi_av_insertsvc(side.av, "nowhere", "1", &addr, 0, NULL) < 0);
    CHECK(fi_control(&side.ep->fid, 9999, NULL) < 0);
    side_close(&side);
}

TEST(the_least_room_for_multi_receive_can_be_set_and_read)
{
    struct side_attr attr = {.caps = FI_MSG | FI_MULTI_RECV};
    struct side side;
    size_t least = 777, len = sizeof(least);

    side_open(&side, &attr);
    CHECK_FI(fi_setopt(&side.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, len));
    least = 0;
    CHECK_FI(fi_getopt(&side.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &len));
    CHECK_EQ(least, 777);
    CHECK_EQ(len, sizeof(least));
    side_close(&side);
}

TEST(options_that_are_not_there_are_refused)
{
    struct side side;
    char value[64] = {0};
    size_t len = sizeof(value);

    side_open(&side, &plain);
    CHECK_REFUSED(fi_setopt(&side.ep->fid, FI_OPT_ENDPOINT, 9999, value, len), FI_ENOPROTOOPT);
    CHECK_REFUSED(fi_getopt(&side.ep->fid, FI_OPT_ENDPOINT, 9999, value, &len), FI_ENOPROTOOPT);
    CHECK_REFUSED(fi_getopt(&side.ep->fid, 9999, FI_OPT_MIN_MULTI_RECV, value, &len),
                  FI_ENOPROTOOPT);
    side_close(&side);
}

TEST(default_flags_of_operations_can_be_read_and_changed)
{
    struct side_attr attr = {.tx_flags = FI_TRANSMIT_COMPLETE};
    struct side side;
    uint64_t flags = FI_TRANSMIT;

    side_open(&side, &attr);
    int status = fi_control(&side.ep->fid, FI_GETOPSFLAG, &flags);
    if (status == -FI_ENOSYS)
        lacks("FI_GETOPSFLAG");
    CHECK_FI(status);
    CHECK_EQ(flags & FI_TRANSMIT_COMPLETE, FI_TRANSMIT_COMPLETE);
    flags = FI_TRANSMIT | FI_INJECT_COMPLETE;
    CHECK_FI(fi_control(&side.ep->fid, FI_SETOPSFLAG, &flags));
    flags = FI_TRANSMIT;
    CHECK_FI(fi_control(&side.ep->fid, FI_GETOPSFLAG, &flags));
    CHECK_EQ(flags & FI_INJECT_COMPLETE, FI_INJECT_COMPLETE);
    flags = FI_TRANSMIT | FI_RECV;
    CHECK_REFUSED(fi_control(&side.ep->fid, FI_GETOPSFLAG, &flags), FI_EINVAL);
    side_close(&side);
}

TEST(an_endpoint_closes_with_receives_posted)
{
    struct pair pair;
    static char untouched[64];
    struct fi_context2 contexts[8];

    pair_open(&pair, &plain);
    for (int i = 0; i < 8; i++)
        CHECK_FI(fi_recv(pair.a.ep, untouched + 8 * i, 8, NULL, FI_ADDR_UNSPEC, &contexts[i]));
    pair_close(&pair);
    for (size_t i = 0; i < sizeof(untouched); i++)
        CHECK_EQ(untouched[i], 0);
}

TEST(an_endpoint_closes_with_unexpected_messages)
{
    struct pair pair;
    char text[100] = "unexpected";
    struct fi_context2 context;

    pair_open(&pair, &plain);
    for (int i = 0; i < 10; i++) {
        POST(fi_send(pair.a.ep, text, sizeof(text), NULL, pair.to_b, &context));
        next_ok(&pair.a, &context, FI_SEND);
    }
    sides_settle();
    pair_close(&pair);
}

TEST(an_event_queue_carries_events_of_the_application)
{
    struct side side;
    struct fid_eq *eq = NULL;
    struct fi_eq_attr attr = {.size = 4, .flags = FI_WRITE, .wait_obj = FI_WAIT_NONE};
    struct fi_eq_entry entry = {.fid = NULL, .data = 42}, found = {0};
    uint32_t event = 0;

    side_open(&side, &plain);
    int status = fi_eq_open(side.fabric, &attr, &eq, NULL);
    if (status == -FI_ENOSYS)
        lacks("event queues");
    CHECK_FI(status);
    CHECK_EQ(fi_eq_read(eq, &event, &found, sizeof(found), 0), -FI_EAGAIN);
    CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
    CHECK_EQ(fi_eq_read(eq, &event, &found, sizeof(found), FI_PEEK), sizeof(found));
    CHECK_EQ(fi_eq_read(eq, &event, &found, sizeof(found), 0), sizeof(found));
    CHECK_EQ(event, FI_NOTIFY);
    CHECK_EQ(found.data, 42);
    CHECK_EQ(fi_eq_read(eq, &event, &found, sizeof(found), 0), -FI_EAGAIN);
    CHECK_FI(fi_close(&eq->fid));
    side_close(&side);
}

TEST(a_context_of_an_object_is_kept)
{
    struct side side;
    struct fid_ep *ep;
    int mine;

    side_open(&side, &plain);
    CHECK_FI(fi_endpoint(side.domain, side.info, &ep, &mine));
    CHECK(ep->fid.context == &mine);
    CHECK_EQ(ep->fid.fclass, FI_CLASS_EP);
    CHECK_EQ(side.domain->fid.fclass, FI_CLASS_DOMAIN);
    CHECK_EQ(side.cq->fid.fclass, FI_CLASS_CQ);
    CHECK_EQ(side.av->fid.fclass, FI_CLASS_AV);
    CHECK_FI(fi_close(&ep->fid));
    side_close(&side);
}
