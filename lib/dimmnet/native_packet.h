/* SPDX-License-Identifier: Apache-2.0 */
/** @file native_packet.h @brief What a controller does with packets and commands. */
#ifndef VELO_DIMMNET_NATIVE_PACKET_H
#define VELO_DIMMNET_NATIVE_PACKET_H

#include "native_layout.h"

int native_botf(struct native_slot *slot, uint64_t botf);
int native_aotf(struct native_slot *slot, unsigned header, uint64_t word);
int native_command(struct native_slot *slot, uint64_t word_0, uint64_t word_1);

#endif
