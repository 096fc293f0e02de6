/* The same question for C++, whose header passes the sizes by itself: see program.c. */
#include <cstdio>
#include <hakmem/hakmem.hpp>
#include <vector>

int main()
{
    std::vector<char, hakmem::allocator<char>> big(5 << 20);
    hakmem_stats stats = hakmem::stats();
    std::uint64_t live_bytes = 0;
    for (unsigned number = 0; number < hakmem_tier_count(); number++)
        live_bytes += hakmem::tier(number).live_bytes;
    bool good = stats.live_bytes == live_bytes && live_bytes >= big.size() &&
                hakmem::tier(HAKMEM_TIER_BIG).live_blocks == 1;
    std::puts(good ? "good 1" : "failed: the statistics of C++");
    return good ? 0 : 1;
}
