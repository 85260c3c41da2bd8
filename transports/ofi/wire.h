/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file wire.h
 * @brief What travels between two machines: packets of frames, and the greetings before them.
 *
 * Little-endian. Each packet is one message of the fabric. It is a greeting, or a header and frames
 * up to its end. A frame is an envelope, as many words as its kind has, and its payload, padded to
 * 8 bytes.
 */
#ifndef VELO_OFI_WIRE_H
#define VELO_OFI_WIRE_H

#include <stdint.h>

#include "../common/envelope.h"

#define WIRE_MAGIC 0x4F33u /* "3O": the version is its first character. */
/** The longest packet. Providers over ofi_rxm send up to 16 KiB without asking the receiver. */
#define WIRE_PACKET_BYTES 16384u
/** Two frames of this length fill a packet. */
#define WIRE_PAYLOAD_BYTES 8128u
/** Packets that one side may send before the other has said that it has taken them. */
#define WIRE_WINDOW 16u
#define WIRE_NONCE_BYTES 32u
#define WIRE_MAC_BYTES 32u
#define WIRE_NAME_BYTES 256u
#define WIRE_DOMAIN_BYTES 80u

enum wire_kind {
    WIRE_HELLO = 1, /* I want a connection; the nonce is new. */
    WIRE_REPLY,     /* Yes; both nonces. */
    WIRE_CONFIRM,   /* I am who said HELLO; both nonces. */
    WIRE_REFUSE,    /* No: `status`; both nonces. */
    WIRE_REDIRECT,  /* That port is at `name`; both nonces. */
    WIRE_REJECT,    /* Your HELLO, of this nonce, was made with another secret. Has no MAC. */
    WIRE_FRAMES,
    WIRE_BYE, /* As FRAMES, and the sender's port closes. */
    WIRE_ACK, /* No frames, and no place in the sequence. */
    WIRE_ASK, /* As ACK, and wants one for an answer. */
};

/** Begins each packet. It is short, since TCP's provider is fastest with messages of up to 64
 * bytes: a packet of one short message is one. */
struct wire_header {
    uint16_t magic;
    uint16_t kind;     /* enum wire_kind. */
    uint32_t index;    /* Of the connection, at the receiver. */
    uint32_t sequence; /* Of this packet, from 0. */
    uint32_t taken;    /* Packets of the receiver that the sender has taken. */
    uint64_t token;    /* Of this connection and direction; nobody else knows it. */
};

struct wire_greeting {
    struct wire_header header; /* `index` is 0 in a HELLO; sequence, taken and token are 0. */
    uint64_t spec_hash;
    uint32_t from, to;   /* Ports. */
    uint32_t generation; /* Of `from`. */
    uint32_t index;      /* The connection's, at `from`. */
    int32_t status;      /* Of REFUSE. */
    uint32_t name_bytes;
    char name[WIRE_NAME_BYTES];     /* The fabric's address of `from`; of REDIRECT: of the port. */
    char domain[WIRE_DOMAIN_BYTES]; /* Of the port that is wanted; ends with 0. */
    uint8_t nonce_hello[WIRE_NONCE_BYTES];
    uint8_t nonce_reply[WIRE_NONCE_BYTES];
    uint8_t mac[WIRE_MAC_BYTES]; /* HMAC-SHA256 of all before it. */
};

_Static_assert(sizeof(struct wire_header) == 24, "no padding");
_Static_assert(sizeof(struct wire_greeting) ==
                   56 + WIRE_NAME_BYTES + WIRE_DOMAIN_BYTES + 2 * WIRE_NONCE_BYTES + WIRE_MAC_BYTES,
               "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packets are little-endian");

#endif
