/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file attend.h
 * @brief The thread that looks after ports with transports while their program does something else.
 *
 * Over shared memory a sender connects without its peer. Over a transport the peer's process has to
 * answer, to send credits, and to send frames that found no room at first. The program's own calls
 * do that while it makes any. This thread, one for the process, does it for ports at which no call
 * looks. It sleeps while nothing comes, and stays away from ports that the program polls.
 */
#ifndef VELO_NET_ATTEND_H
#define VELO_NET_ATTEND_H

#include "carrier.h"

/** Look after a port's transports; the first one starts the thread. VELO_ERR_SYSTEM. */
int attend_begin(struct carriers *carriers);
/** Look after a port no more; the last one ends the thread. The thread does not touch the port
 * after this. */
void attend_end(struct carriers *carriers);

#endif
