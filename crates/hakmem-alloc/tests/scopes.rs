//! Scopes: what threads allocate inside of them, their limits, and their ends.
#![allow(unsafe_code)]

use std::thread;

use hakmem_alloc::{Entered, Hakmem, Scope, ScopeError};

#[global_allocator]
static ALLOCATOR: Hakmem = Hakmem;

/// Neither Miri nor the hardened library has scopes.
fn scope(name: &str, limit: usize) -> Option<Scope<'static>> {
    match Scope::new(name, limit) {
        Ok(scope) => Some(scope),
        Err(_) if cfg!(any(miri, feature = "hardened")) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_a_thread_allocates_inside_counts() -> Result<(), ScopeError> {
    let Some(scope) = scope("inside", 0) else {
        return Ok(());
    };
    let (inside, outside) = {
        let _inside = scope.enter()?;
        let inside = vec![1_u8; 1000];
        let _outside = Entered::outside()?;
        (inside, vec![2_u8; 1000])
    };
    let usage = scope.usage();
    assert_eq!(usage.live_blocks, 1);
    assert!(usage.live_bytes >= 1000 && usage.live_bytes < 2000);
    thread::scope(|threads| threads.spawn(move || drop(inside)).join()).expect("no panic");
    assert_eq!(scope.usage().live_blocks, 0);
    drop(outside);
    Ok(())
}

#[test]
fn what_lies_in_an_inner_scope_counts_in_both() -> Result<(), ScopeError> {
    let Some(outer) = scope("outer", 0) else {
        return Ok(());
    };
    let inner = outer.inner("inner", 0)?;
    let block = {
        let _inside = inner.enter()?;
        Box::new([0_u64; 100])
    };
    assert_eq!(inner.usage().live_blocks, 1);
    assert_eq!(outer.usage().live_blocks, 1);
    drop(inner); // it holds a block, which stays valid
    assert!(block.iter().all(|number| *number == 0));
    assert_eq!(outer.usage().live_blocks, 1);
    Ok(())
}

#[test]
fn a_limit_holds() -> Result<(), ScopeError> {
    let Some(scope) = scope("limited", 10_000) else {
        return Ok(());
    };
    let mut bytes: Vec<u8> = Vec::new();
    {
        let _inside = scope.enter()?;
        assert!(bytes.try_reserve_exact(20_000).is_err());
        assert!(bytes.try_reserve_exact(5_000).is_ok());
    }
    scope.set_limit(0);
    assert_eq!(scope.usage().limit_bytes, 0);
    let _inside = scope.enter()?;
    assert!(bytes.try_reserve_exact(20_000).is_ok());
    Ok(())
}

#[test]
fn a_reset_ends_all_blocks() -> Result<(), ScopeError> {
    let Some(scope) = scope("reset", 0) else {
        return Ok(());
    };
    {
        let _inside = scope.enter()?;
        for _ in 0..1000 {
            Vec::leak(vec![1_u8; 1000]);
        }
    }
    assert_eq!(scope.usage().live_blocks, 1000);
    // SAFETY: nobody knows these blocks any more.
    unsafe { scope.reset() };
    assert_eq!(scope.usage().live_blocks, 0);
    assert_eq!(scope.usage().resident_bytes, 0);
    // SAFETY: there are none.
    unsafe { scope.destroy() };
    Ok(())
}

#[cfg(feature = "allocator-api2")]
#[test]
fn collections_lie_in_a_scope() {
    use allocator_api2::boxed::Box;
    use allocator_api2::vec::Vec;

    let Some(scope) = scope("collections", 1 << 20) else {
        return;
    };
    let mut numbers = Vec::new_in(&scope);
    for number in 0..10_000_u32 {
        numbers.push(number);
    }
    let boxed = Box::new_in(7_u8, &scope);
    assert_eq!(scope.usage().live_blocks, 2);
    assert!(scope.usage().live_bytes >= 40_000);
    assert!(numbers.iter().copied().eq(0..10_000));
    assert!(numbers.try_reserve(1 << 20).is_err());
    assert_eq!(*boxed, 7);
    drop(numbers);
    drop(boxed);
    assert_eq!(scope.usage().live_blocks, 0);
}
