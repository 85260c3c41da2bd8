/* SPDX-License-Identifier: Apache-2.0 */
/* The world of world.h, driven by libFuzzer. */
#include "world.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    world_init();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world_tally tally = {0};
    world_play(data, size, &tally);
    return 0;
}
