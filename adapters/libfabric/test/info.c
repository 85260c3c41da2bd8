/* SPDX-License-Identifier: Apache-2.0 */
/* What fi_getinfo() grants and what it refuses, one hint at a time. */
#include <stdlib.h>
#include <string.h>

#include "../older.h"
#include "side.h"

#define ALL_CAPS                                                                                   \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |      \
     FI_LOCAL_COMM | FI_REMOTE_COMM)
#define PRIMARY (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTICAST | FI_COLLECTIVE)

static struct fi_info *hints_new(void)
{
    static const struct side_attr attr = {0};

    return hints_of(&attr);
}

/* Ask; frees the hints; NULL if nothing fits. */
static struct fi_info *ask(struct fi_info *hints)
{
    struct fi_info *info = NULL;
    int status = fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);

    fi_freeinfo(hints);
    if (status == -FI_ENODATA) {
        CHECK(info == NULL);
        return NULL;
    }
    CHECK_FI(status);
    CHECK(info != NULL);
    CHECK_EQ(strcmp(info->fabric_attr->prov_name, provider()), 0);
    return info;
}

static void velo_only(void)
{
    if (!is_velo())
        test_skip("a rule of velo's provider");
}

/* Is it granted? Frees both. */
static bool is_granted(struct fi_info *hints)
{
    struct fi_info *info = ask(hints);

    if (info == NULL)
        return false;
    fi_freeinfo(info);
    return true;
}

static struct fi_info *granted(struct fi_info *hints)
{
    struct fi_info *info = ask(hints);

    CHECK(info != NULL);
    return info;
}

TEST(the_provider_is_found_by_its_name)
{
    struct fi_info *hints = fi_allocinfo();

    hints->fabric_attr->prov_name = strdup(provider());
    fi_freeinfo(granted(hints));
}

TEST(the_provider_is_found_without_hints)
{
    struct fi_info *infos = NULL;
    bool found = false;

    CHECK_FI(fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, &infos));
    for (struct fi_info *info = infos; info; info = info->next)
        found |= strcmp(info->fabric_attr->prov_name, provider()) == 0;
    fi_freeinfo(infos);
    CHECK(found);
}

TEST(the_provider_is_not_found_by_another_name)
{
    struct fi_info *hints = hints_new();

    free(hints->fabric_attr->prov_name);
    hints->fabric_attr->prov_name = strdup("no-such-provider");
    CHECK(!is_granted(hints));
}

TEST(an_entry_is_whole)
{
    struct fi_info *info = granted(hints_new());

    CHECK_EQ(info->ep_attr->type, FI_EP_RDM);
    CHECK(info->fabric_attr->name && *info->fabric_attr->name);
    CHECK(info->domain_attr->name && *info->domain_attr->name);
    CHECK_EQ(info->fabric_attr->api_version, API_VERSION);
    CHECK(info->fabric_attr->prov_version > 0);
    CHECK(info->ep_attr->max_msg_size >= 8 << 20);
    CHECK(info->ep_attr->tx_ctx_cnt >= 1);
    CHECK(info->ep_attr->rx_ctx_cnt >= 1);
    CHECK(info->ep_attr->protocol != FI_PROTO_UNSPEC);
    CHECK(info->tx_attr->size > 0);
    CHECK(info->rx_attr->size > 0);
    CHECK(info->tx_attr->iov_limit >= 1);
    CHECK(info->rx_attr->iov_limit >= 1);
    CHECK(info->domain_attr->cq_cnt > 0);
    CHECK(info->domain_attr->ep_cnt > 0);
    CHECK(info->domain_attr->cq_data_size >= 4);
    CHECK(info->domain_attr->mr_key_size > 0);
    CHECK(info->addr_format != FI_FORMAT_UNSPEC);
    fi_freeinfo(info);
}

TEST(only_reliable_datagrams_are_offered)
{
    static const enum fi_ep_type refused[] = {FI_EP_MSG, FI_EP_DGRAM, VF_EP_SOCK_STREAM,
                                              VF_EP_SOCK_DGRAM};
    struct fi_info *hints;

    velo_only();
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        hints = hints_new();
        hints->ep_attr->type = refused[i];
        CHECK(!is_granted(hints));
    }
    hints = hints_new();
    hints->ep_attr->type = FI_EP_UNSPEC;
    CHECK(is_granted(hints));
}

static void grants_cap(uint64_t caps)
{
    struct side_attr attr = {.caps = caps};
    struct fi_info *info;

    needs(&attr);
    info = granted(hints_of(&attr));
    CHECK_EQ(info->caps & caps, caps);
    fi_freeinfo(info);
}

TEST(messages_are_granted_alone) { grants_cap(FI_MSG); }
TEST(tagged_messages_are_granted_alone) { grants_cap(FI_TAGGED); }
TEST(remote_memory_is_granted_alone) { grants_cap(FI_RMA); }
TEST(atomics_are_granted_alone) { grants_cap(FI_ATOMIC); }
TEST(multi_receive_is_granted) { grants_cap(FI_MSG | FI_MULTI_RECV); }
TEST(directed_receive_is_granted) { grants_cap(FI_TAGGED | FI_DIRECTED_RECV); }
TEST(sources_are_granted) { grants_cap(FI_MSG | FI_SOURCE); }
TEST(peers_of_this_node_are_granted) { grants_cap(FI_MSG | FI_LOCAL_COMM); }
TEST(peers_of_other_nodes_are_granted) { grants_cap(FI_MSG | FI_REMOTE_COMM); }
TEST(all_capabilities_are_granted_at_once) { grants_cap(ALL_CAPS); }

TEST(primary_capabilities_are_not_granted_unasked)
{
    static const uint64_t asked[] = {FI_MSG, FI_TAGGED, FI_MSG | FI_TAGGED};

    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info;

        hints->caps = asked[i];
        info = granted(hints);
        CHECK_EQ(info->caps & PRIMARY, asked[i]);
        fi_freeinfo(info);
    }
}

TEST(no_capabilities_asked_for_means_all_are_shown)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info;

    hints->caps = 0;
    info = granted(hints);
    CHECK_EQ(info->caps & (FI_MSG | FI_TAGGED), FI_MSG | FI_TAGGED);
    fi_freeinfo(info);
}

TEST(capabilities_that_are_not_there_are_refused)
{
    static const uint64_t refused[] = {FI_MULTICAST,    FI_COLLECTIVE,   FI_HMEM,
                                       VF_VARIABLE_MSG, FI_NAMED_RX_CTX, FI_XPU_TRIGGER,
                                       FI_RMA_PMEM,     1ULL << 62};

    velo_only();
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct fi_info *hints = hints_new();

        hints->caps |= refused[i];
        CHECK(!is_granted(hints));
    }
}

TEST(a_direction_alone_is_granted_alone)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info;

    hints->caps = FI_MSG | FI_SEND;
    info = granted(hints);
    CHECK_EQ(info->caps & (FI_SEND | FI_RECV), FI_SEND);
    fi_freeinfo(info);
    hints = hints_new();
    hints->caps = FI_MSG | FI_RECV;
    info = granted(hints);
    CHECK_EQ(info->caps & (FI_SEND | FI_RECV), FI_RECV);
    fi_freeinfo(info);
    hints = hints_new();
    hints->caps = FI_MSG;
    info = granted(hints);
    CHECK_EQ(info->caps & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
    fi_freeinfo(info);
}

TEST(registration_modes_granted_are_among_those_offered)
{
    static const int bits[] = {FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_LOCAL};

    for (unsigned set = 0; set < 16; set++) {
        struct side_attr attr = {.caps = FI_MSG | FI_RMA};
        struct fi_info *info;

        for (unsigned bit = 0; bit < 4; bit++)
            attr.mr_mode |= set & 1u << bit ? bits[bit] : 0;
        info = ask(hints_of(&attr));
        if (info)
            CHECK_EQ(info->domain_attr->mr_mode & ~attr.mr_mode, 0);
        fi_freeinfo(info);
    }
}

static void grants_mode(int mr_mode)
{
    struct side_attr attr = {.caps = FI_RMA | FI_MSG, .mr_mode = mr_mode};

    needs(&attr);
}

TEST(memory_is_granted_without_any_registration_mode) { grants_mode(0); }
TEST(memory_is_granted_with_the_three_basic_modes)
{
    grants_mode(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
}

TEST(messages_alone_need_no_registration_mode)
{
    struct fi_info *info = granted(hints_new());

    CHECK_EQ(info->domain_attr->mr_mode & ~(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY), 0);
    fi_freeinfo(info);
}

static void echoes_threading(enum fi_threading threading)
{
    struct side_attr attr = {.threading = threading};
    struct fi_info *info;

    needs(&attr);
    info = granted(hints_of(&attr));
    CHECK_EQ(info->domain_attr->threading, threading);
    fi_freeinfo(info);
}

TEST(threads_that_share_a_domain_by_turns_are_echoed)
{
    velo_only();
    echoes_threading(FI_THREAD_DOMAIN);
}
TEST(threads_that_are_free_are_echoed) { echoes_threading(FI_THREAD_SAFE); }

TEST(each_threading_level_is_granted_or_a_safer_one)
{
    static const enum fi_threading levels[] = {FI_THREAD_UNSPEC, FI_THREAD_FID,
                                               FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT};

    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info;

        hints->domain_attr->threading = levels[i];
        info = granted(hints);
        CHECK(info->domain_attr->threading != FI_THREAD_UNSPEC);
        if (levels[i] != FI_THREAD_UNSPEC)
            CHECK(info->domain_attr->threading != FI_THREAD_DOMAIN);
        fi_freeinfo(info);
    }
}

static void grants_progress(enum fi_progress progress)
{
    struct side_attr attr = {.progress = progress};
    struct fi_info *info;

    needs(&attr);
    info = granted(hints_of(&attr));
    if (progress == FI_PROGRESS_AUTO)
        CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
    else
        CHECK(info->domain_attr->data_progress != FI_PROGRESS_UNSPEC);
    fi_freeinfo(info);
}

TEST(manual_progress_is_granted) { grants_progress(FI_PROGRESS_MANUAL); }
TEST(automatic_progress_is_granted) { grants_progress(FI_PROGRESS_AUTO); }

TEST(both_kinds_of_address_vectors_are_granted)
{
    static const enum fi_av_type types[] = {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info;

        hints->domain_attr->av_type = types[i];
        info = granted(hints);
        if (info->domain_attr->av_type != FI_AV_UNSPEC && types[i] != FI_AV_UNSPEC)
            CHECK_EQ(info->domain_attr->av_type, types[i]);
        fi_freeinfo(info);
    }
}

TEST(the_order_of_sends_is_granted)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info;

    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    info = granted(hints);
    CHECK_EQ(info->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
    CHECK_EQ(info->rx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
    fi_freeinfo(info);
}

TEST(each_order_granted_was_asked_for_and_is_kept)
{
    struct side_attr attr = {.caps = FI_MSG | FI_RMA | FI_ATOMIC};

    needs(&attr);
    for (unsigned bit = 0; bit < 40; bit++) {
        uint64_t order = 1ULL << bit;
        struct fi_info *info;

        if (bit > 8 && bit < 32)
            continue;
        attr.tx_order = attr.rx_order = order;
        info = ask(hints_of(&attr));
        if (info)
            CHECK_EQ(info->tx_attr->msg_order & order, order);
        fi_freeinfo(info);
    }
}

/* Is the size that is offered granted, and one more refused? */
#define CHECK_LIMIT(field, over)                                                                   \
    do {                                                                                           \
        struct fi_info *hints_ = hints_new();                                                      \
        struct fi_info *offered_ = granted(hints_new());                                           \
        hints_->field = offered_->field;                                                           \
        CHECK(is_granted(hints_));                                                                 \
        if (offered_->field + 1 != 0) {                                                            \
            hints_ = hints_new();                                                                  \
            hints_->field = (over);                                                                \
            CHECK(!is_granted(hints_));                                                            \
        }                                                                                          \
        fi_freeinfo(offered_);                                                                     \
    } while (0)

#define TEST_LIMIT(name, field, over)                                                              \
    static void check_##name(void) { CHECK_LIMIT(field, over); }

TEST_LIMIT(inject, tx_attr->inject_size, offered_->tx_attr->inject_size + 1)
TEST_LIMIT(tx_iov, tx_attr->iov_limit, offered_->tx_attr->iov_limit + 1)
TEST_LIMIT(rx_iov, rx_attr->iov_limit, offered_->rx_attr->iov_limit + 1)
TEST_LIMIT(rma_iov, tx_attr->rma_iov_limit, offered_->tx_attr->rma_iov_limit + 1)
TEST_LIMIT(tx_size, tx_attr->size, SIZE_MAX / 2)
TEST_LIMIT(rx_size, rx_attr->size, SIZE_MAX / 2)
TEST_LIMIT(max_msg, ep_attr->max_msg_size, offered_->ep_attr->max_msg_size + 1)
TEST_LIMIT(cq_data, domain_attr->cq_data_size, offered_->domain_attr->cq_data_size + 1)
TEST_LIMIT(mr_key, domain_attr->mr_key_size, offered_->domain_attr->mr_key_size + 1)
TEST_LIMIT(ep_cnt, domain_attr->ep_cnt, SIZE_MAX / 2)
TEST_LIMIT(cq_cnt, domain_attr->cq_cnt, SIZE_MAX / 2)
TEST_LIMIT(mr_iov, domain_attr->mr_iov_limit, offered_->domain_attr->mr_iov_limit + 1)

TEST(an_inject_size_is_granted_up_to_the_limit) { check_inject(); }
TEST(numbers_of_pieces_are_granted_up_to_the_limit)
{
    check_tx_iov();
    check_rx_iov();
    check_rma_iov();
    check_mr_iov();
}
TEST(sizes_of_queues_are_granted_up_to_a_limit)
{
    check_tx_size();
    check_rx_size();
}
TEST(a_message_size_is_granted_up_to_the_limit) { check_max_msg(); }
TEST(sizes_of_data_and_keys_are_granted_up_to_the_limit)
{
    check_cq_data();
    check_mr_key();
}
TEST(numbers_of_objects_are_granted_up_to_a_limit)
{
    velo_only();
    check_ep_cnt();
    check_cq_cnt();
}

TEST(queue_sizes_are_at_least_what_was_asked_for)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info;

    hints->tx_attr->size = 17;
    hints->rx_attr->size = 33;
    info = granted(hints);
    CHECK(info->tx_attr->size >= 17);
    CHECK(info->rx_attr->size >= 33);
    fi_freeinfo(info);
}

TEST(completion_data_have_eight_bytes)
{
    struct fi_info *info = granted(hints_new());

    CHECK_EQ(info->domain_attr->cq_data_size, 8);
    fi_freeinfo(info);
}

TEST(several_contexts_of_an_endpoint_are_refused)
{
    struct fi_info *hints = hints_new();

    velo_only();
    hints->ep_attr->tx_ctx_cnt = 2;
    CHECK(!is_granted(hints));
    hints = hints_new();
    hints->ep_attr->rx_ctx_cnt = 2;
    CHECK(!is_granted(hints));
}

TEST(resource_management_is_granted_on_and_off)
{
    static const enum fi_resource_mgmt kinds[] = {FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info;

        hints->domain_attr->resource_mgmt = kinds[i];
        info = granted(hints);
        if (kinds[i] == FI_RM_ENABLED)
            CHECK_EQ(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
        fi_freeinfo(info);
    }
}

TEST(modes_required_are_among_those_offered)
{
    static const uint64_t offered[] = {FI_CONTEXT, FI_CONTEXT2, FI_CONTEXT | FI_CONTEXT2,
                                       ~(uint64_t)0};

    for (size_t i = 0; i < ARRAY_LEN(offered); i++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info;

        hints->mode = offered[i];
        info = ask(hints);
        if (info)
            CHECK_EQ(info->mode & ~offered[i], 0);
        fi_freeinfo(info);
    }
}

TEST(an_application_without_any_mode_is_served)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info;

    hints->mode = 0;
    info = ask(hints);
    if (info == NULL)
        lacks("service without mode bits");
    CHECK_EQ(info->mode, 0);
    fi_freeinfo(info);
}

TEST(only_addresses_of_its_own_format_are_granted)
{
    static const uint32_t refused[] = {FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR_IB,
                                       FI_ADDR_PSMX2, FI_ADDR_EFA};
    struct fi_info *offered, *hints;

    velo_only();
    offered = granted(hints_new());
    hints = hints_new();
    hints->addr_format = offered->addr_format;
    CHECK(is_granted(hints));
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        hints = hints_new();
        hints->addr_format = refused[i];
        CHECK(!is_granted(hints));
    }
    fi_freeinfo(offered);
}

TEST(names_of_fabric_and_domain_are_matched)
{
    struct fi_info *offered = granted(hints_new());
    struct fi_info *hints = hints_new();

    hints->fabric_attr->name = strdup(offered->fabric_attr->name);
    hints->domain_attr->name = strdup(offered->domain_attr->name);
    CHECK(is_granted(hints));
    hints = hints_new();
    hints->fabric_attr->name = strdup("no such fabric");
    CHECK(!is_granted(hints));
    hints = hints_new();
    hints->domain_attr->name = strdup("no such domain");
    CHECK(!is_granted(hints));
    fi_freeinfo(offered);
}

TEST(each_version_since_1_5_is_served_as_itself)
{
    for (uint32_t minor = 5; minor <= 17; minor++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info = NULL;

        CHECK_FI(fi_getinfo(FI_VERSION(1, minor), NULL, NULL, 0, hints, &info));
        CHECK_EQ(info->fabric_attr->api_version, FI_VERSION(1, minor));
        fi_freeinfo(hints);
        fi_freeinfo(info);
    }
}

TEST(a_version_of_the_future_is_refused)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info = NULL;

    CHECK_REFUSED(fi_getinfo(FI_VERSION(9, 0), NULL, NULL, 0, hints, &info), FI_ENOSYS);
    fi_freeinfo(hints);
}

TEST(an_entry_passed_as_hints_is_granted_again)
{
    struct fi_info *first = granted(hints_new());
    struct fi_info *second = granted(fi_dupinfo(first));

    CHECK_EQ(second->caps, first->caps);
    CHECK_EQ(second->domain_attr->mr_mode, first->domain_attr->mr_mode);
    CHECK_EQ(second->domain_attr->threading, first->domain_attr->threading);
    CHECK_EQ(second->tx_attr->inject_size, first->tx_attr->inject_size);
    CHECK_EQ(strcmp(second->domain_attr->name, first->domain_attr->name), 0);
    fi_freeinfo(first);
    fi_freeinfo(second);
}

TEST(default_flags_of_operations_are_echoed_or_refused)
{
    static const uint64_t tx[] = {FI_COMPLETION, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
                                  FI_DELIVERY_COMPLETE};
    static const uint64_t velo_must =
        FI_DELIVERY_COMPLETE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_COMPLETION;

    for (size_t i = 0; i < ARRAY_LEN(tx); i++) {
        struct fi_info *hints = hints_new();
        struct fi_info *info;

        hints->tx_attr->op_flags = tx[i];
        info = ask(hints);
        if (info)
            CHECK_EQ(info->tx_attr->op_flags & tx[i], tx[i]);
        else
            CHECK(!is_velo() || !(velo_must & tx[i]));
        fi_freeinfo(info);
    }
}

TEST(default_flags_that_are_not_there_are_refused)
{
    struct fi_info *hints = hints_new();

    velo_only();
    hints->tx_attr->op_flags = FI_COMMIT_COMPLETE;
    CHECK(!is_granted(hints));
}

TEST(hints_without_attributes_are_served)
{
    struct fi_info hints = {.caps = FI_MSG};
    struct fi_info *infos = NULL;
    bool found = false;

    hints.mode = ~(uint64_t)0;
    CHECK_FI(fi_getinfo(API_VERSION, NULL, NULL, 0, &hints, &infos));
    for (struct fi_info *info = infos; info; info = info->next)
        found |= strcmp(info->fabric_attr->prov_name, provider()) == 0;
    fi_freeinfo(infos);
    CHECK(found);
}

TEST(attributes_of_zeros_are_served)
{
    struct fi_info *hints = fi_allocinfo();

    hints->mode = ~(uint64_t)0;
    hints->fabric_attr->prov_name = strdup(provider());
    fi_freeinfo(granted(hints));
}

TEST(a_node_that_does_not_exist_is_refused)
{
    struct fi_info *hints = hints_new();
    struct fi_info *info = NULL;
    int status;

    velo_only();
    status = fi_getinfo(API_VERSION, "no such node", "no such service", 0, hints, &info);
    CHECK(status < 0);
    CHECK(info == NULL);
    fi_freeinfo(hints);
}

TEST(a_hundred_questions_leave_no_descriptor_open)
{
    size_t before;

    fi_freeinfo(granted(hints_new()));
    before = descriptors_open();
    for (int i = 0; i < 100; i++)
        fi_freeinfo(granted(hints_new()));
    CHECK_EQ(descriptors_open(), before);
}
