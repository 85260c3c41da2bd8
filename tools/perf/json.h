/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VELO_BENCH_JSON_H
#define VELO_BENCH_JSON_H

#include <stdio.h>

/* Print text as a JSON string, quoted and escaped. */
void json_string(FILE *out, const char *text);

#endif
