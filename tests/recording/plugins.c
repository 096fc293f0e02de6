/* A program that loads two plugins in turn, each after the other was unloaded: both come to lie at
 * the same addresses, mostly. Each keeps 64 blocks of 32 KiB a time.
 *
 * usage: plugins MODE
 */
#include "program.h"

#include <dlfcn.h>

static void load(const char *name)
{
    void *plugin = dlopen(name, RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void (*fill)(void);
    *(void **)&fill = dlsym(plugin, "fill");
    REQUIRE(fill != NULL);
    fill();
    REQUIRE(dlclose(plugin) == 0);
}

static void in_turn(void)
{
    for (int i = 0; i < 8; i++) {
        load("librecording_first.so");
        allocate_some();
        load("librecording_second.so");
    }
}

/* Each call of the one is where the other has it. */
static void twins(void)
{
    static const char *const names[] = {"librecording_first.so", "librecording_other.so"};
    for (int i = 0; i < 16; i++)
        load(names[i % 2]);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {{"in_turn", in_turn}, {"twins", twins}};
    return run_mode(modes, sizeof modes / sizeof *modes, argc > 1 ? argv[1] : "");
}
