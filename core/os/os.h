/* The interface to the operating system: memory.c, files.c and process.c implement it for Linux.
 *
 * No function here changes errno, is a cancellation point or calls malloc. All may be called from
 * any thread. Each system call is counted by kind (os_counts).
 */
#ifndef OS_OS_H
#define OS_OS_H

#include "base/macros.h"

enum os_call { OS_MMAP, OS_MUNMAP, OS_MREMAP, OS_MADVISE, OS_MPROTECT, OS_FUTEX, OS_CALL_COUNT };

/* Calls made so far, by kind; atomic, any thread. */
extern uint64_t os_counts[OS_CALL_COUNT];

/* Looks at the C library's functions for calls by which memory goes. To be called as early as
 * possible, before other libraries change them; later calls do nothing. */
void os_start(void);

/* Finds the kernel's function for clocks; before, they are read by system calls. To be called once,
 * by the constructor. */
void os_find_clock(void);

/* True if a library has changed them since, to learn what goes. It may hold a lock of its own while
 * it calls malloc, in which the C library's gives nothing back: so free alone does then. */
bool os_is_watched(void);

/* Bytes of a page of the system: 4, 16 or 64 KiB. Constant. */
size_t os_page_size(void);

/* CPUs that this process may run on, at least 1. */
unsigned os_cpu_count(void);

/* The limits in bytes on address space (RLIMIT_AS) and on private writable memory (RLIMIT_DATA);
 * SIZE_MAX: there is none. */
size_t os_address_space_limit(void);
size_t os_data_limit(void);

/* The most memory that was ever resident, in bytes, maybe of the program that called exec; if
 * unknown, more than any. Opens no file, for which a filter of system calls might kill. */
size_t os_resident_peak(void);

/* True if the program has more rights than the user who started it: then its environment cannot be
 * trusted. */
bool os_is_privileged(void);

/* Milliseconds of a monotonic clock, cheap and coarse (a few ms). */
uint64_t os_clock_ms(void);

/* Nanoseconds of that clock, exact. */
uint64_t os_clock_ns(void);

/* The distance of two times of the same clock. To be asked instead of a difference: in a child of
 * fork, which may have a clock of its own (a time namespace), a stored time can lie ahead. */
ALWAYS_INLINE uint64_t os_time_between(uint64_t now, uint64_t stored)
{
    return now > stored ? now - stored : stored - now;
}

/* Nanoseconds since 1970, by the wall clock. */
uint64_t os_clock_unix_ns(void);

/* Unpredictable bytes; false: the system has none yet, or refuses. */
bool os_random(void *bytes, size_t size);

/* Sleeps for at most that long. */
void os_sleep_ms(unsigned ms);

/* Maps `size` bytes of zeroed memory that may be read and written, at an address that is a
 * multiple of `alignment` (a power of two), near `hint` if that is free. NULL when it fails. */
void *os_map(size_t size, size_t alignment, void *hint);

/* Address space that reads as zero and costs nothing until os_make_writable: it is not charged
 * against the commit limit. NULL when it fails. */
void *os_reserve(size_t size);
bool os_make_writable(void *address, size_t size);

/* Reserves at a random distance below `near`, up to a part of it, so that neither the lower half
 * of the address nor `near` reveals the other half. */
void *os_reserve_scattered(size_t size, const void *near);

/* From now on, touching the range causes SIGSEGV; its memory goes back. False: the system refuses.
 */
bool os_make_untouchable(void *address, size_t size);

/* Fresh zeroed memory in place of mapped pages, which may be read and written. It costs a mapping
 * or two if the pages around have marks or other rights. False: the system refuses. */
bool os_map_anew(void *address, size_t size);

/* Makes whole pages untouchable by marks in their page tables, which cost no mapping (Linux 6.13).
 * os_unguard makes them pages that read as zero. False: the system cannot, or not for this memory:
 * os_guard refuses locked memory. */
bool os_guard(void *address, size_t size);
bool os_unguard(void *address, size_t size);

/* Takes the rights of whole pages, which keep their memory, until os_make_writable. False: the
 * system refuses. */
bool os_make_inaccessible(void *address, size_t size);

/* How many mappings a process may have. */
size_t os_mapping_limit(void);

/* Zeroed memory that is zero again in a child of fork; never returned. If the system cannot do
 * that, it is ordinary memory. NULL: there is none. */
void *os_map_wiped(size_t size);

/* Returns address space. False when the system refuses (it may need a mapping more to split one):
 * the memory is then still mapped. */
bool os_unmap(void *address, size_t size);

/* Returns a mapping of os_map that no program had. If the system refuses it, os_discard_leftovers
 * tries again. */
void os_discard(void *address, size_t size);
void os_discard_leftovers(void);

/* Gives the memory of whole pages back and keeps the addresses: they read as zero afterwards.
 * False: the system refuses, and the contents are unspecified. */
bool os_purge(void *address, size_t size);

/* Gives the pages memory before they are touched, which costs less than a page fault each; a hint,
 * as os_advise_huge_pages is. With the option huge_pages=0 neither is made. */
void os_populate(void *address, size_t size);

/* How many of the bytes of whole pages are in memory; all, if the system does not tell. */
size_t os_resident_bytes(void *address, size_t size);

/* False if the range is several mappings to the system, as it is while a part has advice, rights, a
 * lock or an observer that the program gave it. Changes nothing. */
bool os_is_one_mapping(void *address, size_t size);

/* True if the system gives huge pages to memory for which nobody asked; reads the setting once. */
bool os_gives_huge_pages(void);

/* Asks for huge pages in the range, or for none. */
void os_advise_huge_pages(void *address, size_t size, bool wanted);

/* A refused move, by a filter of system calls, changes nothing. A failed one leaves the mapping,
 * but the target may be gone. */
enum os_move_result { OS_MOVED, OS_MOVE_REFUSED, OS_MOVE_FAILED };

/* Makes a whole mapping longer in place. Refused: the addresses behind it are taken. Failed:
 * for the system these are several mappings, and a move would fail, too. */
enum os_move_result os_resize(void *address, size_t old_size, size_t new_size);

/* Makes a whole mapping longer in place or, if there is no room, elsewhere; NULL: it is as before.
 */
void *os_relocate(void *address, size_t old_size, size_t new_size);

/* Moves a whole mapping to `target`, mapped before by os_map with `new_size` bytes, which it
 * replaces, and makes it `new_size` long. No content is copied. */
enum os_move_result os_move(void *address, size_t old_size, void *target, size_t new_size);

/* Sleeps while `*word` is `expected`, but not for long: a signal handler may have forked just
 * before, and in the child no thread would wake the sleeper. Wakes at most one sleeper of `word`.
 */
void os_futex_wait(uint32_t *word, uint32_t expected);
void os_futex_wake(uint32_t *word);

enum { STDERR = 2 };

/* Writes the text to a file descriptor, as far as possible. */
void os_write(int fd, const char *text, size_t length);

/* In between, what the system sends to the thread since a file cannot be written to is no signal
 * that ends the program: it is blocked, and at the end consumed if it came. The first returns the
 * blocked signals for the second, and sets `waiting` to those that came before. */
uint64_t os_begin_quiet(uint64_t *waiting);
void os_end_quiet(uint64_t kept, uint64_t waiting, bool failed);

/* Writes the text; false: not all was written. A pipe without a reader and the limit on the size of
 * files are such failures, and not signals that end the program. */
bool os_write_quietly(int fd, const char *text, size_t length);

/* The identity of an open file; all 0 for a closed descriptor. */
struct os_file {
    uint64_t device, number;
};

struct os_file os_file_of(int fd);

/* Another descriptor for the file, with a high number, which exec closes; -1: there is none. */
int os_duplicate(int fd);

/* Opens a file that decides for other users: a regular one of the superuser's, to which no other
 * user may write. Returns a descriptor, and the file's length; OS_NO_FILE: there is none that this
 * process may read; OS_UNTRUSTED: it is not such a file. */
enum { OS_NO_FILE = -1, OS_UNTRUSTED = -2 };
int os_open_trusted(const char *path, size_t *size);

/* Reads on to the end of the file or of the buffer; returns the bytes. */
size_t os_read(int fd, char *buffer, size_t capacity);

/* Reads the beginning of a file, or the target of a link. Returns the bytes; 0: it cannot. */
size_t os_read_file(const char *path, char *buffer, size_t capacity);
size_t os_read_link(const char *path, char *buffer, size_t capacity);

/* Reads a file of the kernel's from `from` on, by one system call, which is enough for files of a
 * page. The path may be in the buffer. */
size_t os_read_piece(const char *path, size_t from, char *buffer, size_t capacity);

/* Opens a file to write to it from its beginning, and returns a descriptor, or -1. Another user may
 * have prepared the path: an existing file has to be a regular file of the user's own, under this
 * name alone, or his link to one. */
int os_create_file(const char *path, int mode);
void os_close(int fd);
int os_process_id(void);

/* The calling thread's id, above 0 and below 2^30. */
uint32_t os_thread_id(void);

/* True while a thread of the process has the id. */
bool os_thread_exists(uint32_t id);

/* True if the program may read all of these bytes, which are not touched. */
bool os_is_readable(const void *address, size_t size);

/* Blocks all signals for the calling thread; returns those that were blocked before. */
uint64_t os_block_signals(void);
void os_restore_signals(uint64_t blocked);

#endif
