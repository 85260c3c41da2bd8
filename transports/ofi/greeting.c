/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greetings: each side proves to the other that it has the secret, and names itself.
 *
 *     A to B   HELLO     A, B, nonce of A                  MAC
 *     B to A   REPLY     B, A, both nonces                 MAC: B has the secret, and lives
 *     A to B   CONFIRM   A, B, both nonces                 MAC: A has the secret, and lives
 *
 * The MAC is over all of a greeting. A HELLO that was recorded has a right MAC, too. So B answers
 * one only at the address that is under the MAC, and keeps what it had until CONFIRM has come.
 *
 * A HELLO with a wrong MAC may be that of a port with another secret, which would call until its
 * time is over. If B has been told where the port is in whose name it comes, B sends a REJECT
 * there, and nowhere else. That has no MAC that A can check. A believes it only of the address that
 * it calls, and with the nonce of its HELLO, which nobody knows who does not read the network.
 *
 * To no other greeting with a wrong MAC anything is sent. The tokens of the two directions follow
 * from secret and nonces; they are never sent before they count.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/random.h>

#include "../common/hash.h"
#include "ofi.h"

/* ---- secrets --------------------------------------------------------------------------------- */

/* False: there is no memory for it. */
static bool mac_of(const struct endpoint *endpoint, const void *data, size_t len_bytes,
                   uint8_t *mac)
{
    unsigned mac_bytes = 0;
    return HMAC(EVP_sha256(), endpoint->settings.secret, (int)endpoint->settings.secret_bytes, data,
                len_bytes, mac, &mac_bytes) &&
           mac_bytes == WIRE_MAC_BYTES;
}

/* False: the system has no random numbers. */
static bool draw_nonce(uint8_t *nonce)
{
    return getrandom(nonce, WIRE_NONCE_BYTES, 0) == WIRE_NONCE_BYTES;
}

/* The token of the packets that a port sends on a connection. */
static bool token_of(const struct conn *conn, velo_id_t sender, uint64_t *token)
{
    struct {
        char label[8];
        uint32_t sender, reserved;
        uint8_t nonce_hello[WIRE_NONCE_BYTES], nonce_reply[WIRE_NONCE_BYTES];
    } text = {.label = "token", .sender = sender};
    uint8_t mac[WIRE_MAC_BYTES];
    memcpy(text.nonce_hello, conn->nonce_hello, WIRE_NONCE_BYTES);
    memcpy(text.nonce_reply, conn->nonce_reply, WIRE_NONCE_BYTES);
    bool is_known = mac_of(conn->endpoint, &text, sizeof text, mac);
    memcpy(token, mac, is_known ? sizeof *token : 0);
    return is_known;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void put_name(struct conn *conn, struct wire_greeting *greeting, const char *domain)
{
    const struct fabric *fabric = &conn->endpoint->fabric;
    greeting->name_bytes = (uint32_t)fabric->name_bytes;
    memcpy(greeting->name, fabric->name, fabric->name_bytes);
    if (greeting->header.kind != WIRE_REDIRECT)
        return;
    size_t len_bytes =
        port_place_beside(&conn->endpoint->base.port, hash_text(domain), greeting->name);
    if (len_bytes > 0) {
        greeting->name_bytes = (uint32_t)len_bytes;
    } else {
        greeting->header.kind = WIRE_REFUSE;
        greeting->status = VELO_ERR_NO_PEER;
    }
}

/* False: without its MAC it is worth nothing. */
static bool fill_greeting(struct conn *conn, struct wire_greeting *greeting)
{
    const struct endpoint *endpoint = conn->endpoint;
    char domain[WIRE_DOMAIN_BYTES]; /* A REDIRECT keeps what the HELLO wanted. */
    memcpy(domain, greeting->domain, sizeof domain);
    memset(greeting, 0, sizeof *greeting);
    greeting->header = (struct wire_header){
        .magic = WIRE_MAGIC, .kind = (uint16_t)conn->owed, .index = conn->peer_index};
    greeting->spec_hash = VELO_SPEC_HASH;
    greeting->from = endpoint->base.attr.id;
    greeting->to = conn->circuits.peer;
    greeting->generation = endpoint->base.attr.generation;
    greeting->index = conn->index;
    greeting->status = conn->refusal;
    memcpy(greeting->domain, endpoint->base.attr.domain, strlen(endpoint->base.attr.domain));
    put_name(conn, greeting, domain);
    memcpy(greeting->domain, domain, conn->owed == WIRE_REDIRECT ? sizeof domain : 0);
    memcpy(greeting->nonce_hello, conn->nonce_hello, WIRE_NONCE_BYTES);
    memcpy(greeting->nonce_reply, conn->nonce_reply, WIRE_NONCE_BYTES);
    /* Nobody gets MACs of what a stranger chose. */
    return conn->owed == WIRE_REJECT ||
           mac_of(endpoint, greeting, offsetof(struct wire_greeting, mac), greeting->mac);
}

/* What the other side waits for may follow at once. */
static void after_sent(struct conn *conn, uint32_t kind)
{
    if (kind == WIRE_CONFIRM && conn_open(conn) != VELO_OK)
        conn_end(conn, VELO_ERR_NO_MEMORY);
    else if (kind == WIRE_REFUSE || kind == WIRE_REDIRECT || kind == WIRE_REJECT)
        conn_end(conn, VELO_ERR_NO_PEER);
}

bool greeting_push(struct conn *conn)
{
    uint32_t kind = conn->owed;
    if (kind == 0)
        return true;
    if (conn->is_greeting_sent)
        return false;
    if (!fill_greeting(conn, (struct wire_greeting *)conn->greeting.data)) {
        conn_end(conn, VELO_ERR_NO_MEMORY);
        return true;
    }
    conn->greeting.len_bytes = sizeof(struct wire_greeting);
    enum fabric_sent sent = offer_packet(conn, &conn->greeting);
    if (sent == FABRIC_BUSY)
        return false;
    conn->is_greeting_sent = sent == FABRIC_HAS;
    conn->owed = 0;
    conn->greeting_ticks = 0;
    after_sent(conn, kind);
    return true;
}

static void owe_greeting(struct conn *conn, uint32_t kind)
{
    conn->owed = kind;
    (void)greeting_push(conn);
}

void greeting_again(struct conn *conn)
{
    conn->is_yielding = false;
    if (draw_nonce(conn->nonce_hello))
        owe_greeting(conn, WIRE_HELLO);
    else
        conn_end(conn, VELO_ERR_SYSTEM);
}

int greeting_call(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    if (conn->circuits.peer == endpoint->base.attr.id) {
        conn->is_self = true;
        conn->generation = endpoint->base.attr.generation;
        conn->peer_index = conn->index;
        return conn_open(conn);
    }
    if (endpoint->fabric.error)
        return endpoint->base.calls->fail(
            VELO_ERR_SYSTEM, "libfabric's completion queue has failed: %s; close the port",
            fi_strerror(-endpoint->fabric.error));
    int status = names_resolve(endpoint, conn->circuits.peer, &conn->address, &conn->generation);
    if (status)
        return status;
    greeting_again(conn);
    return conn->state == CONN_OVER
               ? endpoint->base.calls->fail(VELO_ERR_SYSTEM, "a greeting cannot be made: libcrypto "
                                                             "has no memory, or the system no "
                                                             "random numbers")
               : VELO_OK;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool set_tokens(struct conn *conn)
{
    return token_of(conn, conn->circuits.peer, &conn->token_in) &&
           token_of(conn, conn->endpoint->base.attr.id, &conn->token_out);
}

/* Why there is no connection for a HELLO; 0: there is one, or may be. */
static void judge_hello(struct conn *conn, const struct wire_greeting *hello)
{
    const struct endpoint *endpoint = conn->endpoint;
    bool is_other = strcmp(hello->domain, endpoint->base.attr.domain) != 0;
    conn->refusal = hello->to != endpoint->base.attr.id  ? VELO_ERR_NO_PEER
                    : hello->spec_hash != VELO_SPEC_HASH ? VELO_ERR_VERSION
                                                         : VELO_OK;
    if (conn->refusal == VELO_OK && is_other)
        memcpy(((struct wire_greeting *)conn->greeting.data)->domain, hello->domain,
               sizeof hello->domain);
    owe_greeting(conn, conn->refusal ? WIRE_REFUSE : is_other ? WIRE_REDIRECT : WIRE_REPLY);
}

/* If both sides call at once, the call of the lower id is answered. */
static void take_hello(struct endpoint *endpoint, const struct wire_greeting *hello)
{
    struct conn *calling = conn_find(endpoint, hello->from, CONN_CALLING);
    bool is_for_us = strcmp(hello->domain, endpoint->base.attr.domain) == 0;
    struct conn *before = is_for_us ? conn_find(endpoint, hello->from, CONN_CANDIDATE) : NULL;
    if (hello->from == endpoint->base.attr.id ||
        (calling && is_for_us && endpoint->base.attr.id < hello->from))
        return;
    if (before && memcmp(before->nonce_hello, hello->nonce_hello, WIRE_NONCE_BYTES) == 0)
        return; /* Its answer is on its way. */
    if (before)
        conn_end(before, VELO_ERR_PEER_DEAD);
    if (endpoint->candidates >= CANDIDATES_MAX)
        return;
    struct conn *conn = conn_new(endpoint, hello->from, CONN_CANDIDATE);
    if (!conn)
        return;
    conn->address = fabric_insert(&endpoint->fabric, hello->name);
    if (conn->address == FI_ADDR_UNSPEC) {
        conn_end(conn, VELO_ERR_NO_PEER);
        return;
    }
    conn->generation = hello->generation;
    conn->peer_index = hello->index;
    memcpy(conn->nonce_hello, hello->nonce_hello, WIRE_NONCE_BYTES);
    if (!draw_nonce(conn->nonce_reply) || !set_tokens(conn)) {
        conn_end(conn, VELO_ERR_SYSTEM); /* The peer says it again. */
        return;
    }
    if (calling && is_for_us)
        calling->is_yielding = true;
    judge_hello(conn, hello);
}

static void take_redirect(struct conn *conn, const struct wire_greeting *greeting)
{
    struct fabric *fabric = &conn->endpoint->fabric;
    fi_addr_t address =
        conn->is_redirected ? FI_ADDR_UNSPEC : fabric_insert(fabric, greeting->name);
    if (address == FI_ADDR_UNSPEC) {
        conn_end(conn, VELO_ERR_NO_PEER);
        return;
    }
    fabric_remove(fabric, conn->address);
    conn->address = address;
    conn->is_redirected = true;
    greeting_again(conn);
}

static void take_reply(struct conn *conn, const struct wire_greeting *reply)
{
    conn->generation = reply->generation;
    conn->peer_index = reply->index;
    memcpy(conn->nonce_reply, reply->nonce_reply, WIRE_NONCE_BYTES);
    if (set_tokens(conn))
        owe_greeting(conn, WIRE_CONFIRM);
    else
        conn_end(conn, VELO_ERR_NO_MEMORY);
}

/* Take the place of what there was: its peer has begun anew. */
static void take_confirm(struct conn *conn)
{
    struct endpoint *endpoint = conn->endpoint;
    struct conn *before = conn_find(endpoint, conn->circuits.peer, CONN_OPEN);
    struct conn *calling = conn_find(endpoint, conn->circuits.peer, CONN_CALLING);
    if (before)
        conn_end(before, VELO_ERR_PEER_DEAD);
    if (conn_open(conn) != VELO_OK) {
        conn_end(conn, VELO_ERR_NO_MEMORY);
        return;
    }
    if (calling) {
        circuits_move(&calling->circuits, &conn->circuits);
        conn_end(calling, VELO_ERR_PEER_DEAD);
    }
}

/* `mac` is the one that it has to have. */
static bool is_sound(const struct endpoint *endpoint, const struct wire_greeting *greeting,
                     const uint8_t mac[WIRE_MAC_BYTES])
{
    return CRYPTO_memcmp(mac, greeting->mac, WIRE_MAC_BYTES) == 0 &&
           greeting->name_bytes == endpoint->fabric.name_bytes &&
           memchr(greeting->domain, '\0', sizeof greeting->domain) &&
           VELO_ID_NODE(greeting->from) < VELO_NODES;
}

/* One that the port knows of may have another secret. Its address is not from the greeting. */
static void reject_hello(struct endpoint *endpoint, const struct wire_greeting *hello)
{
    fi_addr_t address;
    uint32_t generation;
    if (hello->header.kind != WIRE_HELLO || VELO_ID_NODE(hello->from) >= VELO_NODES ||
        hello->from == endpoint->base.attr.id || endpoint->rejections >= REJECTIONS_MAX ||
        endpoint->rejected++ >= REJECTIONS_MAX ||
        names_resolve(endpoint, hello->from, &address, &generation) != VELO_OK)
        return;
    struct conn *conn = conn_new(endpoint, hello->from, CONN_REJECTING);
    if (!conn) {
        fabric_remove(&endpoint->fabric, address);
        return;
    }
    conn->is_rejection = true;
    endpoint->rejections++;
    conn->address = address;
    conn->peer_index = hello->index;
    memcpy(conn->nonce_hello, hello->nonce_hello, WIRE_NONCE_BYTES);
    owe_greeting(conn, WIRE_REJECT);
}

/* An answer to a call that is over, or has begun anew, comes late: it is nobody's fault. */
static struct conn *conn_of(const struct endpoint *endpoint, const struct wire_greeting *greeting)
{
    uint32_t index = greeting->header.index;
    struct conn *conn = index < endpoint->conns_len ? endpoint->conns[index] : NULL;
    bool is_confirm = greeting->header.kind == WIRE_CONFIRM;
    if (!conn || conn->state != (is_confirm ? CONN_CANDIDATE : CONN_CALLING) ||
        conn->circuits.peer != greeting->from || greeting->to != endpoint->base.attr.id ||
        CRYPTO_memcmp(conn->nonce_hello, greeting->nonce_hello, WIRE_NONCE_BYTES) != 0)
        return NULL;
    bool is_both = CRYPTO_memcmp(conn->nonce_reply, greeting->nonce_reply, WIRE_NONCE_BYTES) == 0;
    return is_confirm && !is_both ? NULL : conn;
}

static void take_reject(const struct endpoint *endpoint, const struct wire_greeting *greeting,
                        fi_addr_t from)
{
    struct conn *conn = conn_of(endpoint, greeting);
    if (conn && conn->address == from)
        conn_end(conn, VELO_ERR_ACCESS);
}

static void take_unsound(struct endpoint *endpoint, const struct wire_greeting *greeting,
                         size_t len_bytes, fi_addr_t from)
{
    endpoint_refuse(&endpoint->base);
    if (len_bytes != sizeof *greeting)
        return;
    if (greeting->header.kind == WIRE_REJECT)
        take_reject(endpoint, greeting, from);
    else
        reject_hello(endpoint, greeting);
}

void greeting_take(struct endpoint *endpoint, const void *data, size_t len_bytes, fi_addr_t from)
{
    const struct wire_greeting *greeting = data;
    uint8_t mac[WIRE_MAC_BYTES];
    bool is_whole = len_bytes == sizeof *greeting;
    /* If it can be neither believed nor refused, it is as good as lost. */
    if (is_whole && !mac_of(endpoint, greeting, offsetof(struct wire_greeting, mac), mac))
        return;
    if (!is_whole || !is_sound(endpoint, greeting, mac)) {
        take_unsound(endpoint, greeting, len_bytes, from);
        return;
    }
    if (greeting->header.kind == WIRE_HELLO) {
        take_hello(endpoint, greeting);
        return;
    }
    struct conn *conn = conn_of(endpoint, greeting);
    if (!conn || conn->is_yielding)
        return;
    if (greeting->header.kind == WIRE_REPLY)
        take_reply(conn, greeting);
    else if (greeting->header.kind == WIRE_CONFIRM)
        take_confirm(conn);
    else if (greeting->header.kind == WIRE_REDIRECT)
        take_redirect(conn, greeting);
    else
        conn_end(conn, greeting->status < 0 ? greeting->status : VELO_ERR_CORRUPT);
}
