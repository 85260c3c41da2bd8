/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of both libraries. */
#ifndef TESTS_EXTOLL_SETTINGS_H
#define TESTS_EXTOLL_SETTINGS_H

/* Take out all that a test before this one, or the starter of this process, has set. */
void settings_clear(void);

#endif
