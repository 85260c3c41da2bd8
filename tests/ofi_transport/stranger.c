/* SPDX-License-Identifier: Apache-2.0 */
#include "stranger.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#define BUFFERS 8
/* Of a name from velo_port_name(): magic and format, then the address. */
#define NAME_HEAD_BYTES 8
#define GENERATION 77

struct stranger {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    fi_addr_t victim;
    char buffers[BUFFERS][WIRE_PACKET_BYTES];
    bool is_sent;
};

static void post(struct stranger *s, char *buffer)
{
    CHECK_EQ(fi_recv(s->ep, buffer, WIRE_PACKET_BYTES, NULL, FI_ADDR_UNSPEC, buffer), 0);
}

/* The port's own: two providers may take each other's addresses and speak different protocols. */
static const char *test_provider(void)
{
    const char *provider = getenv("VELO_OFI_PROVIDER");
    CHECK(provider);
    return provider;
}

struct stranger *stranger_open(struct velo_port *victim)
{
    struct stranger *s = calloc(1, sizeof *s);
    struct fi_info *hints = fi_allocinfo();
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .size = 64};
    char name[VELO_PORT_NAME_BYTES_MAX];
    size_t name_bytes = sizeof name;
    CHECK(s && hints);
    CHECK_OK(velo_port_name(victim, name, &name_bytes));
    CHECK(name_bytes > NAME_HEAD_BYTES);
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(test_provider());
    CHECK_EQ(fi_getinfo(FI_VERSION(1, 15), "127.0.0.1", NULL, FI_SOURCE, hints, &s->info), 0);
    fi_freeinfo(hints);
    CHECK_EQ(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), 0);
    CHECK_EQ(fi_domain(s->fabric, s->info, &s->domain, NULL), 0);
    CHECK_EQ(fi_av_open(s->domain, &av, &s->av, NULL), 0);
    CHECK_EQ(fi_cq_open(s->domain, &cq, &s->cq, NULL), 0);
    CHECK_EQ(fi_endpoint(s->domain, s->info, &s->ep, NULL), 0);
    CHECK_EQ(fi_ep_bind(s->ep, &s->av->fid, 0), 0);
    CHECK_EQ(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), 0);
    CHECK_EQ(fi_enable(s->ep), 0);
    for (int i = 0; i < BUFFERS; i++)
        post(s, s->buffers[i]);
    CHECK_EQ(fi_av_insert(s->av, name + NAME_HEAD_BYTES, 1, &s->victim, 0, NULL), 1);
    return s;
}

void stranger_close(struct stranger *s)
{
    (void)fi_close(&s->ep->fid);
    (void)fi_close(&s->cq->fid);
    (void)fi_close(&s->av->fid);
    (void)fi_close(&s->domain->fid);
    (void)fi_close(&s->fabric->fid);
    fi_freeinfo(s->info);
    free(s);
}

/* Take one outcome: the buffer of what came, or NULL. */
static char *poll_one(struct stranger *s, size_t *len_bytes)
{
    struct fi_cq_msg_entry entry;
    if (fi_cq_read(s->cq, &entry, 1) != 1)
        return NULL;
    *len_bytes = entry.len;
    if (entry.flags & FI_RECV)
        return entry.op_context;
    s->is_sent = true;
    return NULL;
}

/* What comes meanwhile says that its sender lives, and no more. */
static void drop_one(struct stranger *s)
{
    size_t len_bytes;
    char *buffer = poll_one(s, &len_bytes);
    if (buffer)
        post(s, buffer);
}

void stranger_send(struct stranger *s, const void *data, size_t len_bytes)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    ssize_t rc;
    s->is_sent = false;
    while ((rc = fi_send(s->ep, data, len_bytes, NULL, s->victim, NULL)) == -FI_EAGAIN &&
           test_now_ns() < end_ns)
        drop_one(s);
    CHECK_EQ(rc, 0);
    while (!s->is_sent && test_now_ns() < end_ns)
        drop_one(s);
    CHECK(s->is_sent);
}

bool stranger_read(struct stranger *s, void *data, size_t len_bytes, uint64_t key)
{
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    struct fi_cq_msg_entry entry;
    ssize_t rc;
    while ((rc = fi_read(s->ep, data, len_bytes, NULL, s->victim, 0, key, NULL)) == -FI_EAGAIN &&
           test_now_ns() < end_ns)
        drop_one(s);
    CHECK_EQ(rc, 0);
    while ((rc = fi_cq_read(s->cq, &entry, 1)) == -FI_EAGAIN && test_now_ns() < end_ns)
        ;
    CHECK(rc == 1 || rc == -FI_EAVAIL);
    return rc == 1;
}

size_t stranger_receive(struct stranger *s, void *data, size_t room_bytes, int64_t timeout_ns)
{
    int64_t end_ns = test_now_ns() + timeout_ns;
    size_t len_bytes = 0;
    char *buffer = NULL;
    while (!buffer && test_now_ns() < end_ns)
        buffer = poll_one(s, &len_bytes);
    if (!buffer)
        return 0;
    CHECK(len_bytes <= room_bytes);
    memcpy(data, buffer, len_bytes);
    post(s, buffer);
    return len_bytes;
}

uint32_t stranger_name(struct stranger *s, char *name)
{
    size_t len_bytes = WIRE_NAME_BYTES;
    CHECK_EQ(fi_getname(&s->ep->fid, name, &len_bytes), 0);
    return (uint32_t)len_bytes;
}

/* ---- greetings ------------------------------------------------------------------------------- */

void greeting_fill(struct wire_greeting *greeting, struct stranger *s, uint32_t kind,
                   velo_id_t from, velo_id_t to)
{
    memset(greeting, 0, sizeof *greeting);
    greeting->header = (struct wire_header){.magic = WIRE_MAGIC, .kind = (uint16_t)kind};
    greeting->spec_hash = VELO_SPEC_HASH;
    greeting->from = from;
    greeting->to = to;
    greeting->generation = GENERATION;
    greeting->name_bytes = stranger_name(s, greeting->name);
    (void)strncpy(greeting->domain, test_domain(), sizeof greeting->domain - 1);
    memset(greeting->nonce_hello, 5, sizeof greeting->nonce_hello);
}

static void sign(const char *secret, const void *data, size_t len_bytes, void *mac)
{
    unsigned mac_bytes;
    CHECK(HMAC(EVP_sha256(), secret, (int)strlen(secret), data, len_bytes, mac, &mac_bytes));
}

void greeting_sign(struct wire_greeting *greeting, const char *secret)
{
    sign(secret, greeting, offsetof(struct wire_greeting, mac), greeting->mac);
}

/* As token_of() of greeting.c. */
static uint64_t token_of(const struct wire_greeting *greeting, velo_id_t sender)
{
    struct {
        char label[8];
        uint32_t sender, reserved;
        uint8_t nonces[2][WIRE_NONCE_BYTES];
    } text = {.label = "token", .sender = sender};
    uint8_t mac[WIRE_MAC_BYTES];
    uint64_t token;
    memcpy(text.nonces[0], greeting->nonce_hello, WIRE_NONCE_BYTES);
    memcpy(text.nonces[1], greeting->nonce_reply, WIRE_NONCE_BYTES);
    sign(getenv("VELO_OFI_SECRET"), &text, sizeof text, mac);
    memcpy(&token, mac, sizeof token);
    return token;
}

void stranger_greet(struct stranger *s, velo_id_t own, velo_id_t peer, struct wire_header *header)
{
    struct wire_greeting greeting, reply;
    _Alignas(8) char packet[WIRE_PACKET_BYTES] = {0};
    greeting_fill(&greeting, s, WIRE_HELLO, own, peer);
    greeting_sign(&greeting, getenv("VELO_OFI_SECRET"));
    stranger_send(s, &greeting, sizeof greeting);
    while (stranger_receive(s, packet, sizeof packet, TEST_PATIENCE_NS) != sizeof reply)
        CHECK_EQ(((struct wire_header *)packet)->kind, WIRE_ACK); /* Of an older connection. */
    memcpy(&reply, packet, sizeof reply);
    CHECK_EQ(reply.header.kind, WIRE_REPLY);
    CHECK(memcmp(reply.nonce_hello, greeting.nonce_hello, WIRE_NONCE_BYTES) == 0);
    greeting.header.kind = WIRE_CONFIRM;
    greeting.header.index = reply.index;
    memcpy(greeting.nonce_reply, reply.nonce_reply, WIRE_NONCE_BYTES);
    greeting_sign(&greeting, getenv("VELO_OFI_SECRET"));
    stranger_send(s, &greeting, sizeof greeting);
    *header = (struct wire_header){.magic = WIRE_MAGIC,
                                   .kind = WIRE_FRAMES,
                                   .index = reply.index,
                                   .token = token_of(&greeting, own)};
}

uint64_t refused_of(struct velo_port *port, uint64_t expected)
{
    struct velo_port_counters counters = {0};
    int64_t end_ns = test_now_ns() + TEST_PATIENCE_NS;
    struct velo_msg msg;
    do {
        CHECK_STATUS(velo_try_recv(port, NULL, 0, &msg), VELO_AGAIN);
        CHECK_OK(velo_port_counters(port, &counters, sizeof counters));
    } while (counters.rx_errors < expected && test_now_ns() < end_ns);
    return counters.rx_errors;
}
