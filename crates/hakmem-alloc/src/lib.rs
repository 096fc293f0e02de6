//! [hakmem] as the allocator of a Rust program: fast, small, and strict about misuse.
//!
//! ```
//! use hakmem_alloc::Hakmem;
//!
//! #[global_allocator]
//! static ALLOCATOR: Hakmem = Hakmem;
//!
//! fn main() {
//!     let numbers: Vec<u64> = (0..1_000_000).collect();
//!     let stats = hakmem_alloc::stats();
//!     assert!(stats.live_bytes >= 8_000_000);
//!     drop(numbers);
//!     assert!(hakmem_alloc::purge() >= 8_000_000);
//! }
//! ```
//!
//! # What it replaces
//!
//! Allocations of Rust code, and no others: `malloc` stays that of the C library, for C code in
//! the program and for its shared libraries. With the feature `override` all of the process
//! allocates with hakmem, C++'s operators `new` and `delete` included; that is for programs to
//! choose, not for libraries.
//!
//! # How it lives in a process
//!
//! - It starts with the first allocation; options are read from the environment before `main`
//!   (`HAKMEM_PRESET=lean`, `HAKMEM_OPTIONS=purge_delay_ms=100,magazine_kib=16`), and statistics
//!   are printed at exit if `HAKMEM_STATS=1` says so.
//! - Threads may allocate and free until their very end, destructors of thread-local variables
//!   included; any thread may free what another allocated.
//! - After `fork` a child may allocate at once, whatever the threads of its parent did.
//! - There is no background thread, unless `HAKMEM_BACKGROUND=1` asks for one. Free memory goes
//!   back in the course of calls, and by [`purge`].
//! - A double free, or a pointer that is no block, ends the process with one line that names it.
//! - Not for signal handlers, as any `malloc`.
//!
//! Under [Miri], which cannot run C code, [`Hakmem`] is `std::alloc::System`, and all figures are
//! 0.
//!
//! [hakmem]: https://crates.io/crates/hakmem-sys
//! [Miri]: https://github.com/rust-lang/miri
#![cfg_attr(not(miri), no_std)]
#![deny(missing_docs)]
// An allocator hands out memory, and this one is called through C functions.
#![allow(unsafe_code)]

extern crate alloc;

use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::error::Error;
use core::ffi::{c_char, c_int, c_uint, CStr};
use core::fmt::{self, Display, Formatter};
use core::mem::size_of;

#[cfg(not(miri))]
use hakmem_sys as sys;
#[cfg(miri)]
#[path = "miri.rs"]
mod sys;

mod scope;

pub use hakmem_sys::{ScopeFigures, Stats, Usage};
pub use scope::{Entered, Scope, ScopeError};

/// The allocator: see the [crate].
///
/// All values of this type are the same one heap. It need not be the global allocator to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hakmem;

// SAFETY: hakmem_alloc and hakmem_resize return null or a block of that size and alignment, which
// nobody else has until it is freed. None of them unwinds.
#[cfg(not(miri))]
unsafe impl GlobalAlloc for Hakmem {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        sys::hakmem_alloc(layout.size(), layout.align()).cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        sys::hakmem_alloc_zeroed(layout.size(), layout.align()).cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller says that the block is live and of this allocator.
        unsafe { sys::hakmem_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { sys::hakmem_resize(block.cast(), size, layout.align()) }.cast()
    }
}

// SAFETY: System is an allocator.
#[cfg(miri)]
unsafe impl GlobalAlloc for Hakmem {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { std::alloc::System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { std::alloc::System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { std::alloc::System.realloc(block, layout, size) }
    }
}

/// The version of hakmem, as `MAJOR.MINOR.PATCH`.
pub fn version() -> &'static str {
    // SAFETY: the string is static and ends with a NUL.
    unsafe { text(sys::hakmem_version()) }
}

/// Figures of the whole heap.
///
/// While other threads run they are a snapshot, which may lag by the calls in flight.
pub fn stats() -> Stats {
    let mut stats = Stats::default();
    // SAFETY: it is as long as that.
    unsafe { sys::hakmem_get_stats(&mut stats, size_of::<Stats>()) };
    stats
}

/// Figures by size of the request, smallest first: the name of each tier, and what is in it.
///
/// ```
/// for (name, usage) in hakmem_alloc::tiers() {
///     println!("{name}: {} blocks", usage.live_blocks);
/// }
/// ```
pub fn tiers() -> impl Iterator<Item = (&'static str, Usage)> {
    (0..sys::hakmem_tier_count()).map(|tier| {
        let usage = usage_of(tier, sys::hakmem_get_tier);
        // SAFETY: there is such a tier, so there is a name: static, and with a NUL.
        (unsafe { text(sys::hakmem_tier_name(tier)) }, usage)
    })
}

/// Figures by size class, smallest first: the bytes of its blocks, and what is in it. Blocks above
/// the largest class have none.
pub fn classes() -> impl Iterator<Item = (usize, Usage)> {
    (0..sys::hakmem_class_count()).map(|class| {
        let usage = usage_of(class, sys::hakmem_get_class);
        (sys::hakmem_class_size(class), usage)
    })
}

/// All statistics and the effective options, as one JSON object.
pub fn stats_json() -> String {
    let mut text: Vec<u8> = Vec::new();
    loop {
        // SAFETY: so many bytes are there.
        let length =
            unsafe { sys::hakmem_stats_json(text.as_mut_ptr().cast::<c_char>(), text.capacity()) };
        if length < text.capacity() {
            // SAFETY: they were written now.
            unsafe { text.set_len(length) };
            return String::from_utf8_lossy(&text).into_owned();
        }
        // The figures may have become longer until the next round.
        text.reserve(length + 1024);
    }
}

/// Gives all free memory back to the system that can be given back, and returns how many bytes that
/// were. It costs system calls: for a program that has dropped much and will not need it soon.
pub fn purge() -> usize {
    sys::hakmem_purge()
}

/// Returns what the calling thread has cached to what all threads share: for a thread that will
/// sleep for long.
pub fn thread_flush() {
    sys::hakmem_thread_flush();
}

/// Usable bytes that a request for `size` bytes gets at least; `size` when it cannot be served.
///
/// ```
/// assert!(hakmem_alloc::good_size(1000) >= 1000);
/// ```
pub fn good_size(size: usize) -> usize {
    sys::hakmem_good_size(size)
}

/// Usable bytes of a block: at least what was asked for, the same until it is resized.
///
/// # Safety
///
/// `block` is null, for which the answer is 0, or a live block of this allocator.
pub unsafe fn usable_size(block: *const u8) -> usize {
    // SAFETY: so says the caller.
    unsafe { sys::hakmem_usable_size(block.cast()) }
}

/// The value of an option, in its unit; of one that takes a word, which of the words, from 0.
/// `None`: there is no such option.
///
/// ```
/// assert!(hakmem_alloc::option("purge_delay_ms").is_some());
/// assert!(hakmem_alloc::option("no such thing").is_none());
/// ```
pub fn option(name: &str) -> Option<i64> {
    let name = CString::new(name).ok()?;
    let mut value = 0;
    // SAFETY: the name ends with a NUL, and the value may be written.
    let status = unsafe { sys::hakmem_option_get(name.as_ptr(), &mut value) };
    (status == 0).then_some(value)
}

/// Changes an option while the program runs.
///
/// # Errors
///
/// There is no such option, the value is outside its limits, it can be set at the start only, or
/// there is no memory for what it asks. It is as before then.
///
/// ```
/// use hakmem_alloc::{set_option, OptionError};
///
/// set_option("purge_delay_ms", 100).unwrap();
/// assert_eq!(set_option("purge_delay_ms", -1), Err(OptionError::OutOfRange));
/// ```
pub fn set_option(name: &str, value: i64) -> Result<(), OptionError> {
    let name = CString::new(name).map_err(|_| OptionError::Unknown)?;
    // SAFETY: the name ends with a NUL.
    match unsafe { sys::hakmem_option_set(name.as_ptr(), value) } {
        0 => Ok(()),
        ERANGE => Err(OptionError::OutOfRange),
        EPERM => Err(OptionError::StartOnly),
        ENOMEM => Err(OptionError::OutOfMemory),
        _ => Err(OptionError::Unknown),
    }
}

/// Why an option was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// There is no option of that name.
    Unknown,
    /// The value is outside the limits of the option.
    OutOfRange,
    /// The option can be set at the start of the program only, by its environment variable.
    StartOnly,
    /// There is no memory for what the option asks.
    OutOfMemory,
}

impl Display for OptionError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            OptionError::Unknown => "hakmem has no such option",
            OptionError::OutOfRange => "the value is outside the limits of the option",
            OptionError::StartOnly => "the option can be set at the start of the program only",
            OptionError::OutOfMemory => "there is no memory for what the option asks",
        })
    }
}

impl Error for OptionError {}

// As Linux numbers them.
const EPERM: c_int = 1;
const ENOMEM: c_int = 12;
const ERANGE: c_int = 34;

fn usage_of(index: c_uint, get: unsafe extern "C" fn(c_uint, *mut Usage, usize) -> usize) -> Usage {
    let mut usage = Usage::default();
    // SAFETY: it is as long as that.
    unsafe { get(index, &mut usage, size_of::<Usage>()) };
    usage
}

/// A string of the library's.
///
/// # Safety
///
/// It is static and ends with a NUL.
unsafe fn text(string: *const c_char) -> &'static str {
    // SAFETY: so says the caller.
    unsafe { CStr::from_ptr(string) }.to_str().unwrap_or("")
}
