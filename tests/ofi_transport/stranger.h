/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint of libfabric that is not velo's: it can send what it likes to a port. */
#ifndef VELO_TEST_STRANGER_H
#define VELO_TEST_STRANGER_H

#include "../../transports/ofi/wire.h"
#include "test.h"

struct stranger;

/* Open one that can send to a port. */
struct stranger *stranger_open(struct velo_port *victim);
void stranger_close(struct stranger *stranger);
void stranger_send(struct stranger *stranger, const void *data, size_t len_bytes);
/* The next packet that came; 0: none within the time. */
size_t stranger_receive(struct stranger *stranger, void *data, size_t room_bytes,
                        int64_t timeout_ns);
/* Read memory of the port by a key. False: that failed. */
bool stranger_read(struct stranger *stranger, void *data, size_t len_bytes, uint64_t key);
/* Its address. */
uint32_t stranger_name(struct stranger *stranger, char *name);

/* A greeting with a right MAC, if the secret is right. */
void greeting_fill(struct wire_greeting *greeting, struct stranger *stranger, uint32_t kind,
                   velo_id_t from, velo_id_t to);
void greeting_sign(struct wire_greeting *greeting, const char *secret);
/* Become a peer of the port, as one with the secret can. The header is that of the first packet. */
void stranger_greet(struct stranger *stranger, velo_id_t own, velo_id_t peer,
                    struct wire_header *header);

/* Packets that a port has refused, once it has come to this many, or not for a while. */
uint64_t refused_of(struct velo_port *port, uint64_t expected);

#endif
