//! The [hakmem] memory allocator as a static library, and declarations of its C interface.
//!
//! To use it as the allocator of a program take the crate [`hakmem-alloc`], which is safe. This one
//! builds the C sources that it carries, and declares what they define.
//!
//! Nothing of the C library is replaced, unless the feature `override` is on: then `malloc`, `free`
//! and the rest of their family, and C++'s operators `new` and `delete`, are hakmem's for the whole
//! process.
//!
//! All functions may be called from any thread at any time, except from a signal handler.
//!
//! [hakmem]: https://crates.io/crates/hakmem-alloc
//! [`hakmem-alloc`]: https://docs.rs/hakmem-alloc
#![no_std]
#![deny(missing_docs)]
// The declarations of another language's functions are what this crate is.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

/// The whole heap: what [`hakmem_get_stats`] fills in.
///
/// Calls count since the program started. While other threads run, the figures are a snapshot that
/// may lag by the calls in flight.
#[repr(C)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks that were handed out and not freed.
    pub live_blocks: u64,
    /// Usable bytes of those.
    pub live_bytes: u64,
    /// Free blocks in the caches of threads and between them.
    pub cached_blocks: u64,
    /// Bytes of those.
    pub cached_bytes: u64,
    /// Allocations served.
    pub malloc_calls: u64,
    /// Of these, by the thread's own cache, without any lock.
    pub malloc_hits: u64,
    /// Blocks freed.
    pub free_calls: u64,
    /// Of these, into the thread's own cache, without any lock.
    pub free_hits: u64,
    /// Calls passed on to the C library (`HAKMEM_FALLBACK=libc`), if statistics are asked for.
    pub libc_calls: u64,
    /// Resizes that left the block where it was.
    pub reallocs_in_place: u64,
    /// Address space held for blocks, in bytes.
    pub mapped_bytes: u64,
    /// Of these: in use by slabs and big blocks.
    pub committed_bytes: u64,
    /// Of these: free and not given back to the system.
    pub retained_bytes: u64,
    /// Bytes given back to the system since the start.
    pub purged_bytes: u64,
    /// Bytes of the allocator's own records, besides the above.
    pub metadata_bytes: u64,
    /// Threads that have a cache.
    pub threads: u64,
    /// Calls of `mmap` made by the allocator.
    pub mmap_calls: u64,
    /// Calls of `munmap`.
    pub munmap_calls: u64,
    /// Calls of `mremap`.
    pub mremap_calls: u64,
    /// Calls of `madvise`.
    pub madvise_calls: u64,
    /// Calls of `mprotect`.
    pub mprotect_calls: u64,
    /// Calls of `futex`.
    pub futex_calls: u64,
    /// Of `cached_bytes`: between threads.
    pub transfer_bytes: u64,
    /// Of `committed_bytes`: in slabs that are kept without a block in use.
    pub empty_bytes: u64,
    /// In the measuring library, else 0: nanoseconds in calls of malloc that no cache served at
    /// once.
    pub malloc_slow_ns: u64,
    /// The same of free.
    pub free_slow_ns: u64,
    /// The same of times that a thread waited for a lock.
    pub lock_waits: u64,
    /// And how long, all together.
    pub lock_wait_ns: u64,
    /// Bytes that may be resident, by the option `limit_mib` and the control group; 0: no limit.
    pub memory_limit_bytes: u64,
    /// Times that memory was given back because a limit was near.
    pub limit_purges: u64,
}

/// A scope, of which only pointers are known: see [`hakmem_scope_create`].
#[repr(C)]
pub struct Scope {
    _private: [u8; 0],
}

/// What a scope holds, with those inside it: what [`hakmem_scope_usage`] fills in.
#[repr(C)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeFigures {
    /// Blocks that were handed out and not freed.
    pub live_blocks: u64,
    /// Usable bytes of those.
    pub live_bytes: u64,
    /// Bytes of its pages that are in memory.
    pub resident_bytes: u64,
    /// Bytes that its blocks may have together; 0: no limit.
    pub limit_bytes: u64,
}

/// Called in a thread whose allocation of so many bytes finds the scope at its limit; 1: it has
/// made room, so the allocation tries again; 0: that fails.
pub type ScopeCallback = unsafe extern "C" fn(*mut Scope, usize, *mut c_void) -> c_int;

/// Calls and memory of blocks of one tier or one size class: see [`hakmem_get_tier`].
#[repr(C)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blocks that were handed out and not freed.
    pub live_blocks: u64,
    /// Usable bytes of those.
    pub live_bytes: u64,
    /// Free blocks in the caches of threads and between them.
    pub cached_blocks: u64,
    /// Bytes of those.
    pub cached_bytes: u64,
    /// Allocations served.
    pub malloc_calls: u64,
    /// Of these, by the thread's own cache, without any lock.
    pub malloc_hits: u64,
    /// Blocks freed.
    pub free_calls: u64,
    /// Of these, into the thread's own cache, without any lock.
    pub free_hits: u64,
    /// Batches that threads took from what they share.
    pub refills: u64,
    /// Batches that threads returned.
    pub flushes: u64,
    /// Blocks returned to another shard than that of the thread.
    pub remote_frees: u64,
    /// Slabs in use; of the tier `big`, mappings.
    pub slabs: u64,
    /// Bytes of those.
    pub committed_bytes: u64,
    /// Of `cached_blocks`: between threads.
    pub transfer_blocks: u64,
    /// Of `slabs`: kept without a block in use.
    pub empty_slabs: u64,
}

unsafe extern "C" {
    /// A block of at least `size` bytes at a multiple of `alignment`, a power of two. Null when
    /// there is no memory. A `size` of 0 gets a block, too.
    pub safe fn hakmem_alloc(size: usize, alignment: usize) -> *mut c_void;

    /// The same, filled with zeroes.
    pub safe fn hakmem_alloc_zeroed(size: usize, alignment: usize) -> *mut c_void;

    /// Changes the size of `block`, at a multiple of `alignment` from now on. Null when there is no
    /// memory: the block is as before. A null `block` gets a new one; a `size` of 0 counts as 1.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this allocator. It is no longer live unless null is
    /// returned.
    pub fn hakmem_resize(block: *mut c_void, size: usize, alignment: usize) -> *mut c_void;

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this allocator. Mistakes end the process with a message,
    /// as far as they are seen.
    pub fn hakmem_free(block: *mut c_void);

    /// Usable bytes of a block; 0 for null.
    ///
    /// # Safety
    ///
    /// `block` is null or a live block of this allocator.
    pub fn hakmem_usable_size(block: *const c_void) -> usize;

    /// Usable bytes that a request for `size` bytes gets at least; `size` when it cannot be served.
    pub safe fn hakmem_good_size(size: usize) -> usize;

    /// Gives all free memory back to the system that can be given back. Returns the bytes.
    pub safe fn hakmem_purge() -> usize;

    /// Returns what the calling thread has cached to what all threads share.
    pub safe fn hakmem_thread_flush();

    /// The version of the library, `MAJOR.MINOR.PATCH`: static, and never null.
    pub safe fn hakmem_version() -> *const c_char;

    /// Fills in `*stats`. Returns the bytes of it that the library knows.
    ///
    /// # Safety
    ///
    /// `stats` points to `size` bytes that may be written.
    pub fn hakmem_get_stats(stats: *mut Stats, size: usize) -> usize;

    /// Number of tiers.
    pub safe fn hakmem_tier_count() -> c_uint;

    /// Name of a tier in one word: static; null when there is no such tier.
    pub safe fn hakmem_tier_name(tier: c_uint) -> *const c_char;

    /// Fills in `*usage` for a tier. Returns the bytes of it that the library knows; 0 when there
    /// is no such tier.
    ///
    /// # Safety
    ///
    /// `usage` points to `size` bytes that may be written.
    pub fn hakmem_get_tier(tier: c_uint, usage: *mut Usage, size: usize) -> usize;

    /// Number of size classes of all tiers but `big`, which has none.
    pub safe fn hakmem_class_count() -> c_uint;

    /// Bytes of the blocks of a size class; 0 when there is no such class.
    pub safe fn hakmem_class_size(index: c_uint) -> usize;

    /// As [`hakmem_get_tier`], for a size class.
    ///
    /// # Safety
    ///
    /// `usage` points to `size` bytes that may be written.
    pub fn hakmem_get_class(index: c_uint, usage: *mut Usage, size: usize) -> usize;

    /// Writes all statistics and the configuration as one JSON object, cut off at `capacity` and
    /// with a NUL at its end. Returns the length of the whole text without the NUL.
    ///
    /// # Safety
    ///
    /// `buffer` points to `capacity` bytes that may be written; it may be null if that is 0.
    pub fn hakmem_stats_json(buffer: *mut c_char, capacity: usize) -> usize;

    /// Writes the live profile to a file, in the text form that `go tool pprof` reads. Returns 0;
    /// `ENODATA`: nothing was sampled, see the option `sample_kib`; `EIO`: it cannot be written.
    ///
    /// # Safety
    ///
    /// `path` is a string with a NUL at its end.
    pub fn hakmem_profile_write(path: *const c_char) -> c_int;

    /// Makes a scope, whose blocks may have `limit` bytes together; 0: no limit. At the limit
    /// `callback` is called with `argument`. Null: there is no memory, or the library has no
    /// scopes.
    ///
    /// # Safety
    ///
    /// `name` is a string with a NUL at its end, and the callback may be called with its argument
    /// in any thread that allocates in the scope. It does not unwind.
    pub fn hakmem_scope_create(
        name: *const c_char,
        limit: usize,
        callback: Option<ScopeCallback>,
        argument: *mut c_void,
    ) -> *mut Scope;

    /// Lets the calling thread allocate from the scope, or, with null, from none, until it leaves.
    /// Returns 0, or `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The scope is null, or was not destroyed.
    pub fn hakmem_scope_enter(scope: *mut Scope) -> c_int;

    /// Leaves what was entered last, which has to be this scope.
    ///
    /// # Safety
    ///
    /// None is asked for: a mistake ends the process.
    pub fn hakmem_scope_leave(scope: *mut Scope);

    /// A block of the scope, at a multiple of `alignment`. Null: there is no memory, or no room
    /// below the limit.
    ///
    /// # Safety
    ///
    /// The scope was not destroyed, and the alignment is a power of two.
    pub fn hakmem_scope_aligned_alloc(
        scope: *mut Scope,
        alignment: usize,
        size: usize,
    ) -> *mut c_void;

    /// Fills in `*usage`. Returns the bytes of it that the library knows.
    ///
    /// # Safety
    ///
    /// The scope was not destroyed, and `usage` points to `size` bytes that may be written.
    pub fn hakmem_scope_usage(scope: *mut Scope, usage: *mut ScopeFigures, size: usize) -> usize;

    /// Sets the limit of a scope; 0: none.
    ///
    /// # Safety
    ///
    /// The scope was not destroyed.
    pub fn hakmem_scope_limit(scope: *mut Scope, limit: usize);

    /// Ends all blocks of the scope and of those inside it.
    ///
    /// # Safety
    ///
    /// The scope was not destroyed, and nobody uses those blocks any more.
    pub fn hakmem_scope_reset(scope: *mut Scope);

    /// Ends the scope and those inside it, with all their blocks.
    ///
    /// # Safety
    ///
    /// The scope was not destroyed, and nobody uses it or those blocks any more.
    pub fn hakmem_scope_destroy(scope: *mut Scope);

    /// Reads an option. Returns 0, or `ENOENT` when there is none of that name.
    ///
    /// # Safety
    ///
    /// `name` is a string with a NUL at its end, `value` may be written.
    pub fn hakmem_option_get(name: *const c_char, value: *mut c_long) -> c_int;

    /// Changes an option. Returns 0; `ENOENT`: no such option; `ERANGE`: outside its limits;
    /// `EPERM`: it can be set at the start only; `ENOMEM`: no memory for what it asks.
    ///
    /// # Safety
    ///
    /// `name` is a string with a NUL at its end.
    pub fn hakmem_option_set(name: *const c_char, value: c_long) -> c_int;
}
