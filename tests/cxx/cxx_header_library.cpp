/* A library that uses include/hakmem/hakmem.hpp, for cxx_header_behind.cpp. */
#include <hakmem/hakmem.hpp>

#include <string>
#include <vector>

struct alignas(256) wide {
    int value = 0;
};

std::size_t fill_containers()
{
    hakmem::memory_resource resource;
    std::pmr::vector<std::pmr::string> texts(&resource);
    std::vector<wide, hakmem::allocator<wide>> blocks;
    for (std::size_t i = 0; i < 300; i++) {
        texts.emplace_back(i, 'x');
        blocks.push_back(wide{static_cast<int>(i)});
    }
    return texts.back().size() + blocks.size();
}
