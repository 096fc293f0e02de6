/* Threads look up users and groups while another forks. Must not hang: the C library reads its
 * configuration of name services, allocating, under a lock that fork takes too. Where the program
 * may, it makes the C library read it again and again, by touching a copy that it alone sees.
 *
 * Then the child only allocates. For a lookup it would read the configuration anew, and one of the
 * locks of that (nss_module_list_lock) is not made free in a child by glibc 2.36: with any malloc,
 * its own too, a child in some hundreds waits for a thread that it does not have.
 *
 * usage: names FORKS
 */
#include "hostile.h"

#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const char configuration[] = "/etc/nsswitch.conf";
static bool private_copy;

/* False where the program may not: it then looks up names beside forks, which is a test as well. */
static bool make_private_copy(void)
{
    char copy[] = "/tmp/hakmem-hostile-XXXXXX";
    static const char text[] = "passwd: files\ngroup: files\n";
    int file = mkstemp(copy);
    REQUIRE(file >= 0);
    REQUIRE(write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    REQUIRE(fchmod(file, 0644) == 0);
    close(file);
    bool done = unshare(CLONE_NEWNS) == 0 &&
                mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                mount(copy, configuration, NULL, MS_BIND, NULL) == 0;
    unlink(copy);
    return done;
}

static void *look_up(void *unused)
{
    char buffer[4096];
    struct passwd entry, *found;
    struct group group, *found_group;
    for (;;) {
        getpwnam_r("root", &entry, buffer, sizeof buffer, &found);
        getgrnam_r("daemon", &group, buffer, sizeof buffer, &found_group);
    }
    return unused;
}

static void *touch(void *unused)
{
    const struct timespec nap = {.tv_nsec = 100000};
    for (;;) {
        utimensat(AT_FDCWD, configuration, NULL, 0);
        nanosleep(&nap, NULL);
    }
    return unused;
}

/* The child's work; returns its exit status. */
static int allocate_or_look_up(void)
{
    if (private_copy) {
        for (size_t size = 16; size <= 4 * MIB; size *= 4) {
            free(allocate(size));
        }
        return 0;
    }
    struct passwd *root = getpwnam("root");
    return root && root->pw_uid == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    size_t forks = argument(argc, argv, 1);
    private_copy = make_private_copy();
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&thread, NULL, look_up, NULL) == 0);
    }
    if (private_copy) {
        REQUIRE(pthread_create(&thread, NULL, touch, NULL) == 0);
    }
    for (size_t i = 0; i < forks; i++) {
        watch("fork beside lookups of users");
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            _exit(allocate_or_look_up());
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    alarm(0);
    conclude();
    _exit(0);
}
