/* cxx_opened LIBRARY: a C program that opens a library in C++ (cxx_opened_library.cpp), which alone
 * sees the C++ library then, and calls what it has: behaviour 6. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int (*check)(void) = NULL;
    if (argc != 2 || dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv")) {
        fputs("the C++ library is here from the start\n", stderr);
        return 1;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&check = dlsym(library, "check_operators");
    if (!check) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return check();
}
