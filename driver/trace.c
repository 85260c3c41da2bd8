// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * What trace.h declares is made here, once.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
