// SPDX-License-Identifier: Apache-2.0
//
// One-sided operations on memory that lies at no place of its own: on the stack, and in allocations
// of a few bytes to some pages, by both of C++'s ways. How long the node takes for them depends on
// where that is.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <mpi.h>

namespace
{

constexpr int kBytesMax = 40000;
constexpr int kRounds = 16;
constexpr int kPageBytes = 4096;
constexpr int kKept = 7;

[[noreturn]] void fail(const char *what, int len_bytes)
{
    std::fprintf(stderr, "%d bytes: %s\n", len_bytes, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

std::vector<unsigned char> pattern(int len_bytes, int seed)
{
    std::vector<unsigned char> bytes(static_cast<size_t>(len_bytes));
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = static_cast<unsigned char>(i * 7 + static_cast<size_t>(seed));
    return bytes;
}

void put_and_get(MPI_Win window, unsigned char *bytes, int len_bytes, int peer, int seed)
{
    std::vector<unsigned char> wanted = pattern(len_bytes, seed);
    std::copy(wanted.begin(), wanted.end(), bytes);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window);
    MPI_Put(bytes, len_bytes, MPI_BYTE, peer, 0, len_bytes, MPI_BYTE, window);
    MPI_Win_flush(peer, window);
    std::fill_n(bytes, len_bytes, 0);
    MPI_Get(bytes, len_bytes, MPI_BYTE, peer, 0, len_bytes, MPI_BYTE, window);
    MPI_Win_unlock(peer, window);
    if (len_bytes >= kPageBytes && reinterpret_cast<uintptr_t>(bytes) % kPageBytes != 0)
        fail("they do not begin a page", len_bytes);
    if (!std::equal(wanted.begin(), wanted.end(), bytes))
        fail("they came back changed", len_bytes);
}

struct Free {
    void operator()(unsigned char *memory) const { std::free(memory); }
};

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<unsigned char> exposed(kBytesMax);
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_create(exposed.data(), kBytesMax, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    int peer = (rank + 1) % ranks;
    std::unique_ptr<unsigned char, Free> allocated[kKept];
    std::unique_ptr<unsigned char[]> made[kKept];
    for (int round = 0; round < kRounds; round++) {
        unsigned char on_stack[3000];
        put_and_get(window, on_stack, 1 + round * 113, peer, rank + round);
        int kept = round % kKept;
        int len_bytes = 40 + round * round * 100;
        if (round % 2 == 0) {
            allocated[kept].reset(
                static_cast<unsigned char *>(std::malloc(static_cast<size_t>(len_bytes))));
            if (!allocated[kept])
                fail("no memory", len_bytes);
            put_and_get(window, allocated[kept].get(), len_bytes, peer, rank + round);
        } else {
            made[kept] = std::make_unique<unsigned char[]>(static_cast<size_t>(len_bytes));
            put_and_get(window, made[kept].get(), len_bytes, peer, rank + round);
        }
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
