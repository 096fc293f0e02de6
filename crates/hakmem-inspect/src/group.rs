//! The limit of a process's control group on its memory, and how near it is.

use std::fs::read_to_string;
use std::path::Path;

use crate::standing::Standing;

/// What a control group has, and may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// In bytes, without pages of files that go when others need them.
    pub used: u64,
    /// In bytes.
    pub limit: u64,
}

/// Where the kernel shows control groups: the unified ones, and those of the memory controller.
/// Files with the limit and the amount used, and the line of `memory.stat` with what goes.
const PLACES: [(&str, [&str; 3]); 2] = [
    (
        "/sys/fs/cgroup",
        ["memory.max", "memory.current", "inactive_file "],
    ),
    (
        "/sys/fs/cgroup/memory",
        [
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file ",
        ],
    ),
];

/// More bytes than any machine has: there is no limit.
const UNLIMITED: u64 = 1 << 60;

impl Room {
    /// That of the group which has least left, of those that the process is in; `None`: none has a
    /// limit.
    pub fn of(pid: i32) -> Option<Room> {
        let group = Standing::of(pid).control_group;
        let group = Path::new(group.trim_start_matches('/'));
        let rooms = PLACES.iter().flat_map(|(mount, names)| {
            let groups = group.ancestors();
            groups.filter_map(move |group| Room::read(&Path::new(mount).join(group), names))
        });
        rooms.min_by_key(|room| room.limit.saturating_sub(room.used))
    }

    fn read(group: &Path, [limit, used, goes]: &[&str; 3]) -> Option<Room> {
        let number = |name: &str| -> Option<u64> {
            read_to_string(group.join(name)).ok()?.trim().parse().ok()
        };
        // The word `max` is no number.
        let limit = number(limit).filter(|&limit| limit < UNLIMITED)?;
        let statistics = read_to_string(group.join("memory.stat")).unwrap_or_default();
        let goes = statistics.lines().find_map(|line| line.strip_prefix(goes));
        let goes = goes.and_then(|number| number.parse().ok()).unwrap_or(0);
        Some(Room {
            used: number(used)?.saturating_sub(goes),
            limit,
        })
    }

    /// Whether more than so many percent are used.
    pub fn is_above(&self, percent: u64) -> bool {
        u128::from(self.used) * 100 > u128::from(self.limit) * u128::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::write;

    #[test]
    fn pages_of_files_that_go_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for (_, names @ [limit, used, goes]) in PLACES {
            assert_eq!(Room::read(path, &names), None);
            for text in ["max\n", "9223372036854771712\n", "nonsense", ""] {
                write(path.join(limit), text).unwrap();
                write(path.join(used), "950\n").unwrap();
                assert_eq!(Room::read(path, &names), None, "{text}");
            }
            write(path.join(limit), "1000\n").unwrap();
            let room = Room::read(path, &names).unwrap();
            assert!(room.is_above(94) && !room.is_above(95), "{room:?}");
            let text = format!("anon 5\n{goes}100\nslab 7\n");
            write(path.join("memory.stat"), text).unwrap();
            let (used, limit) = (850, 1000);
            assert_eq!(Room::read(path, &names), Some(Room { used, limit }));
        }
        let huge = u64::MAX;
        let (used, limit) = (huge, huge);
        assert!(!Room { used, limit }.is_above(100));
    }
}
