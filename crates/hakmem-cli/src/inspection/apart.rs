//! Looks in a thread of its own: at the memory of who may be hostile, that of a file perhaps, or of
//! a page whose server never answers. A defect that is found by one process is to end no service.

use std::fs::{self, read_link};
use std::path::PathBuf;
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, Result};

/// How long a look may take: so many times [`WAIT`], since a machine that stood still meanwhile
/// lets only one of these pass.
const WAITS: u32 = 50;
const WAIT: Duration = Duration::from_millis(100);
/// One that waits itself for so long in one go does not come back.
const STUCK: u32 = 12;

/// Looks; `None`: that panicked, or does not come back.
pub fn apart<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    apart_for(WAITS, look)
}

/// Looks as long as that goes on.
///
/// # Errors
/// As [`apart`], of this process.
pub fn unless_stuck<T: Send + 'static>(
    pid: i32,
    look: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let stuck = || anyhow!("nothing can be read of {pid}: a look at its memory does not come back");
    apart_for(u32::MAX, look).ok_or_else(stuck)?
}

/// Looks with another patience.
pub fn apart_for<T: Send + 'static>(
    waits: u32,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = sync_channel(1);
    let (done, result) = sync_channel(1);
    let thread = thread::Builder::new().spawn(move || {
        let _ = tell.send(read_link("/proc/thread-self").unwrap_or_default());
        done.send(look())
    });
    thread.ok()?;
    let own = PathBuf::from("/proc").join(told.recv().ok()?);
    let (mut before, mut stuck) = (Vec::new(), 0);
    for _ in 0..waits {
        match result.recv_timeout(WAIT) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        let now = progress(&own);
        stuck = if now == before { stuck + 1 } else { 0 };
        if stuck >= STUCK {
            return None;
        }
        before = now;
    }
    None
}

/// What stays the same as long as a thread waits; one that only waits for a processor does not.
fn progress(thread: &std::path::Path) -> Vec<u8> {
    fs::read(thread.join("schedstat")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Instant;

    #[test]
    fn what_panics_or_hangs_stops_nobody() {
        assert_eq!(apart(|| 1), Some(1));
        assert_eq!(apart(|| -> u32 { panic!("as a test") }), None);
        assert_eq!(apart(|| sleep(WAIT * WAITS * 4)), None);
        let began = Instant::now();
        let error = unless_stuck(7, || {
            sleep(WAIT * WAITS * 4);
            Ok(())
        });
        assert!(error.unwrap_err().to_string().contains("of 7"));
        assert!(began.elapsed() < WAIT * WAITS);
        // One that goes on is waited for.
        let slow = || (0..2 * STUCK).for_each(|_| sleep(WAIT));
        assert_eq!(apart_for(u32::MAX, slow), Some(()));
    }
}
