/* A program that is not linked with hakmem, and has a library that is: malloc and free are the C
 * library's, which comes first, and what hakmem.hpp calls of hakmem has to go along with that. */
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

std::size_t fill_containers();

int main()
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "malloc");
    if (symbol == nullptr || dladdr(symbol, &info) == 0) {
        return 1;
    }
    std::printf("malloc is that of %s\n", info.dli_fname);
    return fill_containers() == 599 ? 0 : 1;
}
