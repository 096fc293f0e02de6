//! What stands for the library where no C code can run: it knows nothing, and has nothing to give.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

pub use hakmem_sys::{Scope, ScopeCallback};

use super::{ScopeFigures, Stats, Usage};

const ENOENT: c_int = 2;

pub fn hakmem_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

pub unsafe extern "C" fn hakmem_get_stats(_: *mut Stats, _: usize) -> usize {
    0
}

pub fn hakmem_tier_count() -> c_uint {
    0
}

pub fn hakmem_tier_name(_: c_uint) -> *const c_char {
    c"".as_ptr()
}

pub unsafe extern "C" fn hakmem_get_tier(_: c_uint, _: *mut Usage, _: usize) -> usize {
    0
}

pub fn hakmem_class_count() -> c_uint {
    0
}

pub fn hakmem_class_size(_: c_uint) -> usize {
    0
}

pub unsafe extern "C" fn hakmem_get_class(_: c_uint, _: *mut Usage, _: usize) -> usize {
    0
}

pub unsafe extern "C" fn hakmem_stats_json(buffer: *mut c_char, capacity: usize) -> usize {
    const EMPTY: &[u8] = b"{}";
    for (at, byte) in EMPTY.iter().take(capacity).enumerate() {
        // SAFETY: the caller says that so many bytes are there.
        unsafe { buffer.add(at).write(*byte as c_char) };
    }
    EMPTY.len()
}

pub fn hakmem_purge() -> usize {
    0
}

pub fn hakmem_thread_flush() {}

pub fn hakmem_good_size(size: usize) -> usize {
    size
}

pub unsafe extern "C" fn hakmem_usable_size(_: *const c_void) -> usize {
    0
}

pub unsafe extern "C" fn hakmem_option_get(_: *const c_char, _: *mut c_long) -> c_int {
    ENOENT
}

pub unsafe extern "C" fn hakmem_option_set(_: *const c_char, _: c_long) -> c_int {
    ENOENT
}

pub unsafe extern "C" fn hakmem_scope_create(
    _: *const c_char,
    _: usize,
    _: Option<ScopeCallback>,
    _: *mut c_void,
) -> *mut Scope {
    core::ptr::null_mut()
}

pub unsafe extern "C" fn hakmem_scope_enter(_: *mut Scope) -> c_int {
    0
}

pub unsafe extern "C" fn hakmem_scope_leave(_: *mut Scope) {}

pub unsafe extern "C" fn hakmem_scope_usage(
    _: *mut Scope,
    _: *mut ScopeFigures,
    _: usize,
) -> usize {
    0
}

pub unsafe extern "C" fn hakmem_scope_limit(_: *mut Scope, _: usize) {}

pub unsafe extern "C" fn hakmem_scope_reset(_: *mut Scope) {}

pub unsafe extern "C" fn hakmem_scope_destroy(_: *mut Scope) {}

#[cfg(feature = "allocator-api2")]
pub unsafe extern "C" fn hakmem_scope_aligned_alloc(
    _: *mut Scope,
    _: usize,
    _: usize,
) -> *mut c_void {
    core::ptr::null_mut()
}

#[cfg(feature = "allocator-api2")]
pub unsafe extern "C" fn hakmem_free(_: *mut c_void) {}
