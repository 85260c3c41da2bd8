/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file error.h
 * @brief The sentence behind a status: set where a cold path fails, read by velo_last_error().
 */
#ifndef VELO_BASE_ERROR_H
#define VELO_BASE_ERROR_H

#include <velo/velo.h>

/** Keep a sentence for this thread's velo_last_error() and return `status`. */
int velo_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#endif
