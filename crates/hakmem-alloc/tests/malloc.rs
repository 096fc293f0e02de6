//! Whose the C library's names are: its own, or hakmem's with the feature `override`.
#![cfg(not(miri))]
// The C library's functions are what is tested.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::hint::black_box;
use std::mem::MaybeUninit;

use hakmem_alloc::Hakmem;

#[global_allocator]
static ALLOCATOR: Hakmem = Hakmem;

/// The file that a function of that name comes from, as a shared library would find it.
fn file_of(name: &CStr) -> String {
    // SAFETY: the name is a string, the information is filled in if that is said, and its strings
    // last as long as the file is loaded.
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        assert_ne!(libc::dladdr(function, info.as_mut_ptr()), 0);
        let file = CStr::from_ptr(info.assume_init().dli_fname);
        file.to_string_lossy().into_owned()
    }
}

/// A static program has no shared library that it could be asked of.
const IS_DYNAMIC: bool = cfg!(not(target_feature = "crt-static"));

/// So many that what the other test asks for meanwhile does not count.
const CALLS: u64 = 100_000;

/// The calls that hakmem counts while C code asks for that many blocks.
fn calls_of_c_code() -> u64 {
    let before = hakmem_alloc::stats().malloc_calls;
    for _ in 0..CALLS {
        // SAFETY: the string has a NUL, and its copy is freed once.
        unsafe { libc::free(black_box(libc::strdup(c"a string of C".as_ptr())).cast()) };
    }
    hakmem_alloc::stats().malloc_calls - before
}

const NAMES: [&CStr; 6] = [
    c"malloc",
    c"free",
    c"calloc",
    c"realloc",
    c"posix_memalign",
    c"memalign",
];

#[test]
#[cfg(not(feature = "override"))]
fn c_code_keeps_the_malloc_of_the_c_library() {
    for name in NAMES.into_iter().filter(|_| IS_DYNAMIC) {
        assert!(
            file_of(name).contains("libc"),
            "{name:?} is from {}",
            file_of(name)
        );
    }
    assert!(calls_of_c_code() < CALLS / 2);
}

#[test]
#[cfg(feature = "override")]
fn c_code_gets_the_malloc_of_hakmem() {
    for name in NAMES.into_iter().filter(|_| IS_DYNAMIC) {
        assert!(
            !file_of(name).contains("libc"),
            "{name:?} is from {}",
            file_of(name)
        );
    }
    assert!(calls_of_c_code() >= CALLS);
}

/// Blocks of Rust are hakmem's in both cases.
#[test]
fn rust_allocates_with_hakmem() {
    let before = hakmem_alloc::stats().malloc_calls;
    let boxes: Vec<Box<usize>> = (0..1000).map(Box::new).collect();
    assert!(hakmem_alloc::stats().malloc_calls >= before + 1000);
    for value in &boxes {
        // SAFETY: the block is live.
        assert!(unsafe { hakmem_alloc::usable_size((&raw const **value).cast()) } >= 8);
    }
}
