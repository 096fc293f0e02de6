//! Memory by part of a program.

use alloc::ffi::CString;
use core::error::Error;
use core::fmt::{self, Debug, Display, Formatter};
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::{self, NonNull};

use super::{sys, ScopeFigures};

/// A named set of blocks that lie apart from all others: a program knows what a part of it holds,
/// and bounds it.
///
/// While a thread is in a scope, all that it allocates by hakmem comes from there. Any thread may
/// drop what was allocated in any scope, at any time.
///
/// ```
/// # use hakmem_alloc::{Hakmem, Scope, ScopeError};
/// # #[global_allocator]
/// # static ALLOCATOR: Hakmem = Hakmem;
/// # fn main() -> Result<(), ScopeError> {
/// let cache = Scope::new("cache", 1 << 20)?;
/// let entry: Vec<u8> = {
///     let _inside = cache.enter()?;
///     vec![1; 1000]
/// };
/// assert_eq!(cache.usage().live_blocks, 1);
/// drop(entry);
/// assert_eq!(cache.usage().live_bytes, 0);
/// # Ok(())
/// # }
/// ```
///
/// # At the limit
///
/// An allocation fails as if there were no memory. Most collections end the process then; use
/// their `try_reserve` where that may happen.
///
/// # Its end
///
/// When a `Scope` is dropped, the scope ends if it holds no block any more. Otherwise it lives on
/// without a handle, and its blocks stay valid. [`Scope::destroy`] ends it at once.
pub struct Scope<'outer> {
    scope: NonNull<sys::Scope>,
    outer: PhantomData<&'outer ()>,
}

// SAFETY: all calls with a scope may be made in any thread, at the same time as others.
unsafe impl Send for Scope<'_> {}
// SAFETY: as above.
unsafe impl Sync for Scope<'_> {}

impl Scope<'static> {
    /// Makes a scope, which lies in no other. `name`: for messages and statistics, which know its
    /// first 47 bytes, up to a NUL. `limit`: how many bytes its blocks may have together, by their
    /// usable sizes; 0: no limit.
    ///
    /// # Errors
    ///
    /// There is no memory, or the library has no scopes, as with the feature `hardened`.
    pub fn new(name: &str, limit: usize) -> Result<Scope<'static>, ScopeError> {
        let _outside = Entered::enter(ptr::null_mut())?;
        Scope::make(name, limit)
    }
}

impl<'outer> Scope<'outer> {
    fn make(name: &str, limit: usize) -> Result<Scope<'outer>, ScopeError> {
        let name = name.split('\0').next().unwrap_or_default();
        let name = CString::new(name).map_err(|_| ScopeError)?;
        // SAFETY: the name ends with a NUL, and there is no callback.
        let scope =
            unsafe { sys::hakmem_scope_create(name.as_ptr(), limit, None, ptr::null_mut()) };
        Ok(Scope {
            scope: NonNull::new(scope).ok_or(ScopeError)?,
            outer: PhantomData,
        })
    }

    /// Makes a scope inside this one: what it holds counts in both, and both limits hold.
    ///
    /// # Errors
    ///
    /// As [`Scope::new`].
    pub fn inner(&self, name: &str, limit: usize) -> Result<Scope<'_>, ScopeError> {
        let _inside = self.enter()?;
        Scope::make(name, limit)
    }

    /// Lets the calling thread allocate from the scope until the guard is dropped. A thread may be
    /// in several; the last one serves. Guards have to be dropped in the opposite order, or the
    /// process ends with a message.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn enter(&self) -> Result<Entered<'_>, ScopeError> {
        Entered::enter(self.scope.as_ptr())
    }

    /// What the scope holds, with those inside it. Asks the system, for 2 MiB a call.
    pub fn usage(&self) -> ScopeFigures {
        let mut usage = ScopeFigures::default();
        // SAFETY: the scope lives as long as its handle, and the figures are that long.
        unsafe {
            sys::hakmem_scope_usage(self.scope.as_ptr(), &mut usage, size_of::<ScopeFigures>())
        };
        usage
    }

    /// Sets the limit; 0: none. A scope that holds more gets nothing more until it holds less.
    pub fn set_limit(&self, limit: usize) {
        // SAFETY: the scope lives as long as its handle.
        unsafe { sys::hakmem_scope_limit(self.scope.as_ptr(), limit) }
    }

    /// Ends all blocks of the scope and of those inside it, and gives their pages back at once.
    ///
    /// # Safety
    ///
    /// Nobody uses or drops these blocks any more.
    pub unsafe fn reset(&self) {
        // SAFETY: the scope lives as long as its handle; of its blocks so says the caller.
        unsafe { sys::hakmem_scope_reset(self.scope.as_ptr()) }
    }

    /// The same, and ends the scope.
    ///
    /// # Safety
    ///
    /// Nobody uses or drops these blocks any more.
    pub unsafe fn destroy(self) {
        // SAFETY: as in `reset`. What comes after it finds a scope without blocks.
        unsafe { self.reset() }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if self.usage().live_blocks == 0 {
            // SAFETY: nobody has a block of it, nor, since the handle is borrowed for that, is in
            // it or has a scope inside it. A guard that was forgotten leads to a message.
            unsafe { sys::hakmem_scope_destroy(self.scope.as_ptr()) }
        }
    }
}

impl Debug for Scope<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Scope").field(&self.usage()).finish()
    }
}

/// The calling thread is in a scope, or outside of all, until this is dropped.
#[derive(Debug)]
#[must_use = "the thread leaves when it is dropped"]
pub struct Entered<'scope> {
    scope: *mut sys::Scope,
    // Of the thread that has entered.
    scope_of_thread: PhantomData<(&'scope (), *mut ())>,
}

impl Entered<'_> {
    fn enter(scope: *mut sys::Scope) -> Result<Self, ScopeError> {
        // SAFETY: it is null, or lives as long as its handle, which the guard borrows.
        match unsafe { sys::hakmem_scope_enter(scope) } {
            0 => Ok(Entered {
                scope,
                scope_of_thread: PhantomData,
            }),
            _ => Err(ScopeError),
        }
    }

    /// Lets the calling thread allocate outside of all scopes until the guard is dropped: for what
    /// outlives them.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn outside() -> Result<Entered<'static>, ScopeError> {
        Entered::enter(ptr::null_mut())
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // SAFETY: it was entered by this thread.
        unsafe { sys::hakmem_scope_leave(self.scope) }
    }
}

/// There is no memory for a scope, or the library has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScopeError;

impl Display for ScopeError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("there is no memory for a scope, or the library has no scopes")
    }
}

impl Error for ScopeError {}

/// Collections that lie in a scope, whatever their thread is in:
///
/// ```
/// # use hakmem_alloc::{Scope, ScopeError};
/// use allocator_api2::vec::Vec;
///
/// # fn main() -> Result<(), ScopeError> {
/// let index = Scope::new("index", 0)?;
/// let mut numbers = Vec::new_in(&index);
/// numbers.extend(0..1000_u32);
/// assert!(index.usage().live_bytes >= 4000);
/// # Ok(())
/// # }
/// ```
// SAFETY: a block stays valid until it is freed, even if the scope is dropped or moved.
#[cfg(feature = "allocator-api2")]
unsafe impl allocator_api2::alloc::Allocator for Scope<'_> {
    fn allocate(
        &self,
        layout: core::alloc::Layout,
    ) -> Result<NonNull<[u8]>, allocator_api2::alloc::AllocError> {
        // SAFETY: the scope lives as long as its handle.
        let block = unsafe {
            sys::hakmem_scope_aligned_alloc(self.scope.as_ptr(), layout.align(), layout.size())
        };
        let block = NonNull::new(block.cast::<u8>()).ok_or(allocator_api2::alloc::AllocError)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, _: core::alloc::Layout) {
        // SAFETY: the caller says that the block is live and of this allocator.
        unsafe { sys::hakmem_free(block.as_ptr().cast()) }
    }
}
