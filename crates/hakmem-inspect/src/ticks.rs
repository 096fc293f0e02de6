//! The processor's clock, in whose ticks the library counts.

use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Ticks in a millisecond, which takes some milliseconds to find out; 0 where no clock is known.
pub fn per_ms() -> u64 {
    static RATE: OnceLock<u64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (first, begin) = together();
        sleep(Duration::from_millis(5));
        let (second, end) = together();
        let ms = end.duration_since(begin).as_secs_f64() * 1000.0;
        (second.saturating_sub(first) as f64 / ms).round() as u64
    })
}

/// Both clocks at once: of several readings the one that was interrupted least.
fn together() -> (u64, Instant) {
    let read = |_| {
        let before = now();
        let time = Instant::now();
        (now().saturating_sub(before), before, time)
    };
    let best = (0..9).map(read).min();
    best.map_or((0, Instant::now()), |(_, ticks, time)| (ticks, time))
}

#[cfg(target_arch = "x86_64")]
fn now() -> u64 {
    // SAFETY: every processor of this kind has the instruction, which reads a counter.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
}

#[cfg(target_arch = "aarch64")]
fn now() -> u64 {
    let ticks;
    // SAFETY: it reads a counter, which Linux lets programs do.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
    }
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn now() -> u64 {
    0
}
