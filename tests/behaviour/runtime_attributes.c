/* The first sample of a thread within pthread_getattr_np, which the C library calls malloc in while
 * it holds a lock of the thread's: whoever asks there for the bounds of the stack waits for itself.
 * In the first thread it reads a file, in others it asks for their processors (behaviour 36).
 */
#include "runtime_support.h"

#include <pthread.h>
#include <stdio.h>

#include <hakmem/hakmem.h>

enum { THREADS = 3000 };

static void *ask(void *unused)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    (void)unused;
    REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
    REQUIRE(pthread_attr_getstack(&attributes, &low, &size) == 0);
    REQUIRE((char *)&low > (char *)low && (char *)&low < (char *)low + size);
    pthread_attr_destroy(&attributes);
    return NULL;
}

int main(void)
{
    watchdog(HANG_SECONDS, "hangs in pthread_getattr_np\n");
    ask(NULL);
    long mean_kib;
    REQUIRE(hakmem_option_get("sample_kib", &mean_kib) == 0 && mean_kib > 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, ask, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    printf("%d threads have asked for their attributes\n", THREADS + 1);
    return 0;
}
