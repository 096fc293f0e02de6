//! Which threads of a process sleep in system calls that go on after a stop.

use std::fs;

use syscalls::Sysno;

use crate::remote::Sleep;

/// The threads of a process that sleep in calls that go on, the best ones first.
pub(crate) fn sleepers(pid: i32) -> Vec<(i32, Sleep)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tids = tasks.into_iter().flatten().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    let mut found: Vec<_> = tids
        .filter_map(|tid| {
            let (rank, sleep) = sleep_of(pid, tid)?;
            Some((rank, tid, sleep))
        })
        .collect();
    found.sort_by_key(|&(rank, ..)| rank);
    let found = found.into_iter();
    found.map(|(_, tid, sleep)| (tid, sleep)).collect()
}

/// How well a thread goes on after a stop, and with what.
fn sleep_of(pid: i32, tid: i32) -> Option<(Rank, Sleep)> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let mut words = text.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let number_of = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let arguments: Vec<u64> = words.map_while(number_of).collect();
    let name = Sysno::new(number as usize)?.name();
    let rank = rank(name, arguments.get(..6)?, |file| {
        let link = fs::read_link(format!("/proc/{pid}/fd/{file}")).unwrap_or_default();
        // Those of a disk, or of another machine, are read with locks held that others need.
        !link.starts_with("/") || link.starts_with("/dev")
    })?;
    let sleep = Sleep {
        number,
        first: arguments[0],
        knows_rest: rank == Rank::Rest,
    };
    Some((rank, sleep))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The call is made again.
    Again,
    /// It goes on for the rest of its time.
    Rest,
    /// It would end, and is made again from here.
    Anew,
    /// The same, and its timeout begins anew.
    Late,
}

fn rank(name: &str, arguments: &[u64], waits: impl Fn(u64) -> bool) -> Option<Rank> {
    const PRIVATE_OR_REALTIME: u64 = 128 | 256;
    const ABSOLUTE: u64 = 1;
    let is_wait = || [0, 9].contains(&(arguments[1] & !PRIVATE_OR_REALTIME));
    let anew = |is_endless| if is_endless { Rank::Anew } else { Rank::Late };
    Some(match name {
        "futex" if is_wait() && arguments[3] == 0 => Rank::Again,
        "futex" if is_wait() => Rank::Rest,
        "pause" | "ppoll" | "pselect6" | "rt_sigsuspend" | "select" | "wait4" | "waitid" => {
            Rank::Again
        }
        "accept" | "accept4" | "read" | "readv" | "recvfrom" | "recvmsg" if waits(arguments[0]) => {
            Rank::Again
        }
        "clock_nanosleep" if arguments[1] & ABSOLUTE != 0 => Rank::Again,
        // The last one is any of them, after a stop.
        "clock_nanosleep" | "nanosleep" | "poll" | "restart_syscall" => Rank::Rest,
        "rt_sigtimedwait" => anew(arguments[2] == 0),
        "epoll_pwait" | "epoll_wait" => anew((arguments[3] as i32) < 0),
        "epoll_pwait2" => anew(arguments[3] == 0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_go_on_exactly_come_first() {
        let of = |name, third, fourth| rank(name, &[7, 128, third, fourth, 0, 0], |file| file != 7);
        assert_eq!(of("futex", 0, 0), Some(Rank::Again));
        assert_eq!(of("futex", 0, 1), Some(Rank::Rest));
        assert_eq!(of("poll", 0, 0), Some(Rank::Rest));
        assert_eq!(of("epoll_wait", 0, u64::from(u32::MAX)), Some(Rank::Anew));
        assert_eq!(of("epoll_wait", 0, 100), Some(Rank::Late));
        assert_eq!(of("rt_sigtimedwait", 0, 0), Some(Rank::Anew));
        assert_eq!(of("read", 0, 0), None);
        assert!(Rank::Again < Rank::Rest && Rank::Rest < Rank::Anew && Rank::Anew < Rank::Late);
    }
}
