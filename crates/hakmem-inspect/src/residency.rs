//! Which pages of a process have memory.
//!
//! Linux 6.7 and newer tell it range by range and leave out the page of zeros, which every process
//! has and none pays for (PAGEMAP_SCAN). Older ones tell it page by page, and of the page of zeros
//! one has to find out: in a mapping that has more pages than it is charged for, those are it that
//! are not the process's alone.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::error::Error;
use crate::layout::words;
use crate::maps::Mapping;
use crate::process::swapped_bytes;

/// Ranges of addresses that have memory, in order and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    present: Vec<Range<u64>>,
    /// Bytes in swap, as the process is charged for them. By range and by page the kernel calls
    /// that of guard regions so, too, which have no memory anywhere.
    pub swapped: u64,
}

/// What the kernel says of one range.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const PRESENT: u64 = 1 << 3;
const PFNZERO: u64 = 1 << 5;

nix::ioctl_readwrite! {
    /// PAGEMAP_SCAN of linux/fs.h.
    pagemap_scan, b'f', 16, ScanArgument
}

/// The kernel holds a lock of the process while it looks at so much: threads that map memory wait.
const STEP: u64 = 256 << 20;
/// A mapping is looked at in no more steps: most of a long one is empty.
const STEPS: u64 = 64;
/// Ranges that are told at once.
const RANGES: usize = 4096;

impl Residency {
    /// Adds a range behind all others.
    fn push(&mut self, range: Range<u64>) {
        match self.present.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ if range.start < range.end => self.present.push(range),
            _ => {}
        }
    }

    /// What these ranges say, which are in order.
    pub fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> Residency {
        let mut residency = Residency::default();
        for range in ranges {
            residency.push(range);
        }
        residency
    }

    /// Asks the kernel about the mappings of a process.
    ///
    /// # Errors
    /// It does not answer.
    pub fn read(pid: i32, mappings: &[Mapping]) -> Result<Residency, Error> {
        let what = format!("/proc/{pid}/pagemap");
        let read = File::open(&what).and_then(|pagemap| match scan(&pagemap, mappings) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                read_entries(pid, &pagemap, mappings)
            }
            result => result,
        });
        let mut residency = read.map_err(|error| Error::Read { what, error })?;
        residency.swapped = swapped_bytes(pid).unwrap_or(0);
        Ok(residency)
    }

    /// The parts of the range that have memory.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self
            .present
            .partition_point(|present| present.end <= range.start);
        let (start, end) = (range.start, range.end);
        self.present[first..]
            .iter()
            .take_while(move |present| present.start < end)
            .map(move |present| present.start.max(start)..present.end.min(end))
    }

    /// Bytes of the range that have memory.
    pub fn bytes(&self, range: Range<u64>) -> u64 {
        self.within(range).map(|part| part.end - part.start).sum()
    }

    /// Bytes that have memory.
    pub fn total(&self) -> u64 {
        self.present.iter().map(|part| part.end - part.start).sum()
    }
}

/// Pages of devices and of the kernel itself count nowhere.
fn counts(mapping: &Mapping) -> bool {
    !mapping.name.starts_with("[vvar") && mapping.name != "[vsyscall]"
}

fn scan(pagemap: &File, mappings: &[Mapping]) -> io::Result<Residency> {
    let mut residency = Residency::default();
    let mut regions = vec![PageRegion::default(); RANGES];
    for mapping in mappings.iter().filter(|mapping| counts(mapping)) {
        let step = STEP.max((mapping.bytes() / STEPS).next_multiple_of(STEP));
        let mut start = mapping.addresses.start;
        while start < mapping.addresses.end {
            let mut argument = ScanArgument {
                size: size_of::<ScanArgument>() as u64,
                start,
                end: start.saturating_add(step).min(mapping.addresses.end),
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                category_mask: PRESENT,
                return_mask: PRESENT | PFNZERO,
                ..ScanArgument::default()
            };
            // SAFETY: the argument is of the size that it says, and so is the array, which lives
            // and is not looked at until the call returns.
            #[allow(unsafe_code)]
            let found = unsafe { pagemap_scan(pagemap.as_raw_fd(), &mut argument) }?;
            let found = (found as usize).min(RANGES);
            for region in &regions[..found] {
                if region.categories & PFNZERO == 0 {
                    residency.push(region.start..region.end);
                }
            }
            // Where the array is full it ends early. How far it came the kernel says as well
            // (walk_end), but in versions of 2026 not rightly if it went in several pieces.
            start = match found {
                RANGES => regions[RANGES - 1].end.max(start + 1),
                _ => argument.end,
            };
        }
    }
    Ok(residency)
}

/// The bits of an entry of pagemap.
const ENTRY_PRESENT: u64 = 1 << 63;
const ENTRY_FILE: u64 = 1 << 61;
const ENTRY_EXCLUSIVE: u64 = 1 << 56;

fn read_entries(pid: i32, pagemap: &File, mappings: &[Mapping]) -> io::Result<Residency> {
    let page = page_size();
    let charged = charged_bytes(pid)?;
    let mut residency = Residency::default();
    for mapping in mappings.iter().filter(|mapping| counts(mapping)) {
        let entries = entries(pagemap, mapping, page)?;
        let present = entries
            .iter()
            .filter(|&&entry| entry & ENTRY_PRESENT != 0)
            .count() as u64;
        let start = mapping.addresses.start;
        let place = charged.partition_point(|&(first, _)| first < start);
        let charged = charged.get(place).filter(|&&(first, _)| first == start);
        let has_zeros = charged.is_some_and(|&(_, bytes)| present * page > bytes);
        for (index, entry) in entries.iter().enumerate() {
            let at = start + index as u64 * page;
            let zero = has_zeros && entry & (ENTRY_FILE | ENTRY_EXCLUSIVE) == 0;
            if entry & ENTRY_PRESENT != 0 && !zero {
                residency.push(at..at + page);
            }
        }
    }
    Ok(residency)
}

/// Nothing longer is asked about page by page: it would take as much memory as a small heap.
const ENTRIES_MAX: u64 = 1 << 27;

fn entries(pagemap: &File, mapping: &Mapping, page: u64) -> io::Result<Vec<u64>> {
    let count = (mapping.bytes() / page).min(ENTRIES_MAX);
    let mut bytes = vec![0; count as usize * 8];
    let mut done = 0;
    while done < bytes.len() {
        let end = (done + (512 << 10)).min(bytes.len());
        let offset = mapping.addresses.start / page * 8 + done as u64;
        match pagemap.read_at(&mut bytes[done..end], offset)? {
            0 => break,
            length => done += length,
        }
    }
    Ok(words(&bytes).collect())
}

/// What each mapping is charged for, by its start, from /proc/PID/smaps.
fn charged_bytes(pid: i32) -> io::Result<Vec<(u64, u64)>> {
    let smaps = File::open(format!("/proc/{pid}/smaps"))?;
    let mut charged: Vec<(u64, u64)> = Vec::new();
    for line in BufReader::new(smaps).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if let Some(rss) = line.strip_prefix("Rss:") {
            let kib: u64 = rss.trim_end_matches("kB").trim().parse().unwrap_or(0);
            if let Some(last) = charged.last_mut() {
                last.1 = kib * 1024;
            }
        } else if let Some(start) = line.split_once('-').map(|(start, _)| start) {
            if let Ok(start) = u64::from_str_radix(start, 16) {
                charged.push((start, u64::MAX));
            }
        }
    }
    Ok(charged)
}

/// Bytes of a page of the system.
pub fn page_size() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    size.ok().flatten().map_or(4096, |size| size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_ranges_are_found() {
        let residency = Residency::of([0x1000..0x2000, 0x2000..0x3000, 0x5000..0x6000]);
        assert_eq!(residency.present.len(), 2);
        assert_eq!(residency.bytes(0..u64::MAX), 0x3000);
        assert_eq!(residency.total(), 0x3000);
        assert_eq!(residency.bytes(0x2800..0x5800), 0x800 + 0x800);
        assert_eq!(residency.bytes(0x3000..0x5000), 0);
        let parts: Vec<_> = residency.within(0x1800..0x5001).collect();
        assert_eq!(parts, [0x1800..0x3000, 0x5000..0x5001]);
    }

    #[test]
    fn both_ways_to_ask_say_the_same() {
        let pid = std::process::id() as i32;
        // Some pages with memory, some that are the page of zeros, some without any.
        let block = vec![0u8; 64 << 20];
        let start = block.as_ptr() as u64;
        let mut sum = 0;
        for page in 0..1000 {
            sum += u32::from(block[page * 4096]);
        }
        let mut block = block;
        // Apart, so that they are more ranges than the kernel tells at once.
        for page in 0..5000 {
            block[(2000 + page * 2) * 4096] = 1;
        }
        assert_eq!(sum, 0);
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = crate::maps::parse(&text);
        let range = start..start + (64 << 20);
        let scanned = Residency::read(pid, &mappings).unwrap();
        // As on a Linux before 6.7.
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let by_page = read_entries(pid, &pagemap, &mappings).unwrap();
        let parts = scanned.present.windows(2);
        assert!(parts.into_iter().all(|pair| pair[0].end < pair[1].start));
        let expected = 5000 * 4096;
        for residency in [scanned, by_page] {
            let bytes = residency.bytes(range.clone());
            // The kernel may give huge pages.
            assert!(bytes >= expected, "{bytes}");
            assert!(bytes <= expected + (48 << 20), "{bytes}");
        }
        std::hint::black_box(&block);
    }
}
