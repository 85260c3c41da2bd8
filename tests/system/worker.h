/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VELO_SYSTEM_WORKER_H
#define VELO_SYSTEM_WORKER_H

#include "desk.h"

/* Carry out commands, one for each byte that comes over `fd`, until there is nobody to send them.
 */
_Noreturn void worker_run(int fd, struct desk *desk, struct sundial *sundial);

#endif
