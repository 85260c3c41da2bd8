/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file error.h
 * @brief The sentence behind a status: set where a cold path fails, read by velo_last_error().
 */
#ifndef VELO_BASE_ERROR_H
#define VELO_BASE_ERROR_H

#include <stdbool.h>

#include <velo/velo.h>

#include "compiler.h"

/** Is a peer not there, or not yet, or silent? Connecting tries again then. */
static inline bool status_is_absent(int status)
{
    return status == VELO_ERR_NO_PEER || status == VELO_TIMEOUT || status == VELO_ERR_PEER_CLOSED ||
           status == VELO_ERR_PEER_DEAD;
}

/** Keep a sentence for this thread's velo_last_error() and return `status`. */
VELO_PRIVATE int velo_fail(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

#endif
