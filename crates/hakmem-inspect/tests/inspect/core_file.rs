//! Core files that are damaged are read as far as they make sense.

use hakmem_inspect::Core;

/// A core file of one segment with two pages in the file.
fn core(start: u64, bytes: u64, length: u64) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    let mut put = |at: usize, value: u64, length: usize| {
        file[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
    };
    put(16, 4, 2);
    put(32, 64, 8);
    put(54, 56, 2);
    put(56, 1, 2);
    put(64, 1 | 6 << 32, 8);
    put(72, 120, 8);
    put(80, start, 8);
    put(96, bytes, 8);
    put(104, length, 8);
    file.extend([1; 8192]);
    file
}

#[test]
fn segments_end_with_the_addresses() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let resident = |start, bytes, length| {
        std::fs::write(file.path(), core(start, bytes, length)).unwrap();
        Core::open(file.path())
            .unwrap()
            .residency()
            .unwrap()
            .total()
    };
    assert_eq!(resident(1 << 30, 8192, 8192), 8192);
    let start = u64::MAX - 4095;
    assert!(resident(start, 8192, u64::MAX) <= 4096);
    assert!(resident(start + 4000, 8192, 8192) <= 4096);
}
