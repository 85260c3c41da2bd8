/* SPDX-License-Identifier: Apache-2.0 */
/** @file native.h @brief The native engine; native_layout.h says how it works. */
#ifndef VELO_DIMMNET_NATIVE_H
#define VELO_DIMMNET_NATIVE_H

#include "engine.h"

extern const struct dimmnet_engine dimmnet_native;

#endif
