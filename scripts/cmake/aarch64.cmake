# SPDX-License-Identifier: Apache-2.0
# Build for aarch64 on another machine. Programs are linked statically and run by qemu-user: one that is
# linked dynamically hangs in qemu-user 7.2 once it forks.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
