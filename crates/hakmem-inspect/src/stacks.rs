//! Which parts of stacks are in use: below its stack pointer a thread has left what it once had.

use std::fs;
use std::ops::Range;

use crate::maps::Mapping;

/// A function may use so much below the pointer without moving it.
const RED_ZONE: u64 = 128;

/// The stack pointers of threads that wait; of a thread that runs nobody knows it.
pub(crate) fn pointers(pid: i32) -> Vec<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let pointer = |thread: fs::DirEntry| {
        let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
        let pointer = call.split_whitespace().rev().nth(1)?;
        u64::from_str_radix(pointer.strip_prefix("0x")?, 16).ok()
    };
    let threads = threads.into_iter().flatten().flatten();
    threads.filter_map(pointer).collect()
}

/// What lies below the pointers in stacks: in that of the kernel and in those that begin behind a
/// guard. Other memory in which a pointer lies may hold more than a stack.
pub(crate) fn unused(mappings: &[Mapping], pointers: &[u64]) -> Vec<Range<u64>> {
    let mut below: Option<&Mapping> = None;
    let mut unused = Vec::new();
    for mapping in mappings {
        let guard = below.replace(mapping);
        let range = &mapping.addresses;
        let is_guarded = guard.is_some_and(|it| it.addresses.end == range.start && !it.readable);
        let lowest = pointers.iter().filter(|it| range.contains(it)).min();
        if mapping.name == "[stack]" || is_guarded && !mapping.is_file() {
            unused.extend(lowest.map(|it| range.start..range.start.max(it - RED_ZONE)));
        }
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_cut_below_the_lowest_pointer() {
        let maps = crate::maps::parse(
            "10000-11000 ---p 0 00:00 0\n\
             11000-20000 rw-p 0 00:00 0\n\
             30000-40000 rw-p 0 00:00 0\n\
             50000-60000 rw-p 0 00:00 0 [stack]\n",
        );
        let pointers = [0x18000, 0x17000, 0x38000, 0x50010];
        let expected = [0x11000..0x16f80, 0x50000..0x50000];
        assert_eq!(unused(&maps, &pointers), expected);
        assert_eq!(unused(&maps, &[]), []);
    }

    #[test]
    fn the_pointers_of_threads_that_wait_are_known() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            let local = 0u64;
            tell.send(std::ptr::from_ref(&local) as u64).unwrap();
            wait.recv().unwrap_err();
        });
        let local = told.recv().unwrap();
        let is_near = |&pointer: &u64| pointer < local && local - pointer < 1 << 16;
        let pid = std::process::id() as i32;
        let mut looks = std::iter::repeat_with(|| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            pointers(pid).iter().any(is_near)
        });
        assert!(looks.by_ref().take(1000).any(|is_seen| is_seen));
        drop(stop);
        waiting.join().unwrap();
    }
}
