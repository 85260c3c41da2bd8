/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file progress.h
 * @brief Taking in what has come over a port's transports, sending what could not be sent before,
 *        and waiting for both.
 */
#ifndef VELO_NET_PROGRESS_H
#define VELO_NET_PROGRESS_H

#include "carrier.h"

/** Take in what has come, and send what could not be sent before. True: something came. Any thread.
 */
bool carriers_progress(struct velo_port *port);
/** The same, by the thread that looks after ports; see attend.h. */
void carriers_attend(struct carriers *carriers);
/** The same for transports that have held frames back for long. True: there was one. */
bool carriers_attend_held(struct carriers *carriers);
/** The process ends: what was sent is to arrive. */
void carriers_send_last(struct carriers *carriers);
/** Sleep until something may have come, or the port is woken; then take it in. True: a signal
 *  handler ran. */
bool carriers_sleep(struct velo_port *port, int64_t timeout_ns);
/** Sleep until something may have come over the transports. */
void carriers_nap(struct carriers *carriers, int64_t timeout_ns);
/** Sleep until a connection may have room; see core/net.h. */
bool carriers_sleep_for_room(struct velo_conn *conn, const uint32_t *credits, uint32_t seen,
                             int64_t timeout_ns);

#endif
