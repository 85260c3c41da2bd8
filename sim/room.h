// SPDX-License-Identifier: Apache-2.0
//
// Memory of the shared file is taken as it is used.

#pragma once

#include <cstddef>
#include <string>

namespace sim
{

// Take it now, and not at the first write to it, which would be a SIGBUS where the file system is
// full. Throws JobError, with the figure, if there is no room for it. `what` needs it.
void take_room(void *memory, size_t bytes, const std::string &what);

} // namespace sim
