// SPDX-License-Identifier: Apache-2.0
//
// All memory of the simulator begins as zero.
//
// A Verilated model does not set what the RTL does not reset, block RAM above all, and some of that
// decides what a node does next. If it were what happened to be on the heap, no two runs would be
// the same.

#include <cstdlib>
#include <new>

void *operator new(std::size_t bytes)
{
    if (void *memory = std::calloc(1, bytes ? bytes : 1))
        return memory;
    throw std::bad_alloc();
}

void *operator new(std::size_t bytes, std::align_val_t alignment)
{
    auto align = static_cast<std::size_t>(alignment);
    std::size_t whole = (bytes + align - 1) / align * align;
    void *memory = std::aligned_alloc(align, whole ? whole : align);
    if (!memory)
        throw std::bad_alloc();
    return __builtin_memset(memory, 0, whole ? whole : align);
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
