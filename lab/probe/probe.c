/* libhakmem-probe.so: a witness inside the process, preloaded next to the allocator under test.
 *
 * When it is loaded it writes one JSON object to the new file $LAB_PROBE_DIR/<process id>.probe:
 *
 *     {"malloc":"/usr/lib/libjemalloc.so.2","free":"/usr/lib/libjemalloc.so.2",
 *      "served_by_libc":false,"calls":98,"objects":["/usr/lib/libjemalloc.so.2",...]}
 *
 * malloc and free: the object whose function serves calls of that name in this process.
 * served_by_libc: whether glibc's own account of bytes in use grew by test allocations made through
 * plain malloc; null where glibc keeps no such account. A library that merely forwards to glibc is
 * caught by this, whatever it is called. calls: how many of malloc and free that took, which the
 * allocator's own count contains. objects: everything that is loaded.
 *
 * It stands first in LD_PRELOAD: constructors run in the reverse of that order, so the allocator
 * has read its options when it is tested. To leave no traces in the program there is no stream, no
 * allocation but the test's, no change of errno; and nothing at all without the variable, or in
 * a program with raised privileges.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Text ------------------------------------------------------------------------------------ */

/* The record on its way to the file. Only the constructor uses it, so there is one. */
static struct {
    int fd;
    size_t length;
    char bytes[4096];
} record;

static void flush(void)
{
    size_t written = 0;
    while (written < record.length) {
        ssize_t count = write(record.fd, record.bytes + written, record.length - written);
        if (count < 0 && errno != EINTR)
            break; /* The reader will find half a record and take it for none. */
        written += count > 0 ? (size_t)count : 0;
    }
    record.length = 0;
}

static void put_char(char c)
{
    if (record.length == sizeof record.bytes)
        flush();
    record.bytes[record.length++] = c;
}

static void put(const char *text)
{
    while (*text)
        put_char(*text++);
}

/* Puts a JSON string; NULL becomes null. */
static void put_quoted(const char *text)
{
    if (!text) {
        put("null");
        return;
    }
    put_char('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20) {
            put("\\u00");
            put_char("01"[c >> 4]);
            put_char("0123456789abcdef"[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\')
            put_char('\\');
        put_char((char)c);
    }
    put_char('"');
}

static void put_number(unsigned number)
{
    if (number >= 10)
        put_number(number / 10);
    put_char((char)('0' + number % 10));
}

/* ---- What there is to say -------------------------------------------------------------------- */

static char executable[PATH_MAX];

/* What a call of the function reaches.
 *
 * A program that is linked to a fixed address and uses the address of a function has a stub of its
 * own for it, and dlsym gives that stub so that the address is the same everywhere. But the
 * program does not define the function; the next object does, counted from here, for we stand
 * right behind the program. */
static void *definition_of(const char *function)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *address = dlsym(RTLD_DEFAULT, function);
    bool found = address && dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT);
    bool is_stub = found && symbol && symbol->st_shndx == SHN_UNDEF;
    return is_stub ? dlsym(RTLD_NEXT, function) : address;
}

/* The object that defines a function for this process. */
static const char *object_of(const char *function)
{
    Dl_info info;
    struct link_map *object;
    void *address = definition_of(function);
    if (!address || !dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP))
        return NULL;
    /* The program itself has no name in this list. */
    return object->l_name[0] ? object->l_name : executable;
}

static int put_object(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    if (!info->dlpi_name[0])
        return 0;
    if (!*(bool *)first)
        put_char(',');
    *(bool *)first = false;
    put_quoted(info->dlpi_name);
    return 0;
}

/* glibc's own mallinfo2, whoever else has one. */
static struct mallinfo2 (*libc_mallinfo2(void))(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return libc ? (struct mallinfo2(*)(void))dlsym(libc, "mallinfo2") : NULL;
}

enum { TEST_BLOCKS = 16, FREED_AT_MOST = 64 * 1024 };

static unsigned calls_made; /* of malloc and free */

/* Whether glibc's malloc serves requests of this size.
 *
 * Several blocks, because up to seven small ones may come from glibc's thread cache, which it
 * counts as in use all the time. What another thread does meanwhile must not tip the scale either,
 * hence half. Large blocks are not freed: that would raise the size from which on glibc maps, and
 * so change the program under test; nobody touches them, so they cost no memory. */
static bool libc_serves(size_t size, struct mallinfo2 (*mallinfo2)(void))
{
    void *volatile blocks[TEST_BLOCKS]; /* volatile: the compiler must not remove the calls */
    bool freed = size <= FREED_AT_MOST;
    int count = freed ? TEST_BLOCKS : 1;
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < count; i++)
        blocks[i] = malloc(size);
    struct mallinfo2 after = mallinfo2();
    for (int i = 0; freed && i < count; i++)
        free(blocks[i]);
    calls_made += (unsigned)count * (freed ? 2 : 1);
    size_t used_before = before.uordblks + before.hblkhd;
    size_t used_after = after.uordblks + after.hblkhd;
    return used_after >= used_before + count * size / 2;
}

static const char *served_by_libc(void)
{
    static const size_t sizes[] = {64, 1 << 10, 40 << 10, 1 << 20, 4 << 20};
    struct mallinfo2 (*mallinfo2)(void) = libc_mallinfo2();
    if (!mallinfo2)
        return "null";
    bool served = false;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        served |= libc_serves(sizes[i], mallinfo2);
    return served ? "true" : "false";
}

/* ---- The record ------------------------------------------------------------------------------ */

static int open_record(const char *directory)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%d.probe", directory, (int)getpid());
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

__attribute__((constructor)) static void write_record(void)
{
    int saved_errno = errno;
    const char *directory = secure_getenv("LAB_PROBE_DIR");
    record.fd = directory ? open_record(directory) : -1;
    if (record.fd >= 0) {
        ssize_t length = readlink("/proc/self/exe", executable, sizeof executable - 1);
        executable[length > 0 ? length : 0] = '\0';
        put("{\"malloc\":");
        put_quoted(object_of("malloc"));
        put(",\"free\":");
        put_quoted(object_of("free"));
        put(",\"served_by_libc\":");
        put(served_by_libc());
        put(",\"calls\":");
        put_number(calls_made);
        put(",\"objects\":[");
        bool first = true;
        dl_iterate_phdr(put_object, &first);
        put("]}\n");
        flush();
        close(record.fd);
    }
    errno = saved_errno;
}
