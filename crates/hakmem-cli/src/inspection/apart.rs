//! Looks in a thread of its own: at the memory of who may be hostile, that of a file perhaps, or of
//! a page whose server never answers. A defect that is found by one process is to end no service.

use std::fs::{self, read_link};
use std::path::PathBuf;
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, Result};

/// How long a look may take: so many times [`WAIT`], since a machine that stood still meanwhile
/// lets only one of these pass.
const WAITS: u32 = 50;
const WAIT: Duration = Duration::from_millis(100);
/// One that waits itself for so long in one go does not come back.
const STUCK: u32 = 12;
/// Of many looks the next one begins when one takes longer than this, unless so many do that wait
/// for nothing: each may take much memory.
const BRIEF: Duration = Duration::from_millis(20);
const BUSY_MAX: usize = 3;

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
    let mut look = Look::begin(waits, look)?;
    loop {
        if let Some(end) = look.end_within(WAIT) {
            return end;
        }
    }
}

/// Looks at one after the other, and tells what has come of each, `None`: as [`apart`]. While one
/// waits the next ones begin, so that many that do not come back take no longer than one.
pub fn apart_each<K, T: Send + 'static, L: FnOnce() -> T + Send + 'static>(
    looks: impl IntoIterator<Item = (K, L)>,
    mut tell: impl FnMut(K, Option<T>),
) {
    let mut late: Vec<(K, Look<T>)> = Vec::new();
    for (key, look) in looks {
        let look = Look::begin(WAITS, look);
        match look.map(|mut look| (look.end_within(BRIEF), look)) {
            None => tell(key, None),
            Some((Some(end), _)) => tell(key, end),
            Some((None, look)) => late.push((key, look)),
        }
        while late.iter().filter(|(_, look)| look.stuck == 0).count() > BUSY_MAX {
            late = still_late(late, &mut tell);
        }
    }
    while !late.is_empty() {
        late = still_late(late, &mut tell);
    }
}

fn still_late<K, T: Send + 'static>(
    late: Vec<(K, Look<T>)>,
    tell: &mut impl FnMut(K, Option<T>),
) -> Vec<(K, Look<T>)> {
    let mut still = Vec::new();
    let last = late.len().saturating_sub(1);
    for (place, (key, mut look)) in late.into_iter().enumerate() {
        let time = if place == last { WAIT } else { Duration::ZERO };
        match look.end_within(time) {
            Some(end) => tell(key, end),
            None => still.push((key, look)),
        }
    }
    still
}

/// A look that goes on in a thread of its own.
struct Look<T> {
    result: Receiver<T>,
    thread: PathBuf,
    /// Its progress when that was looked at last, and when.
    before: Vec<u8>,
    at: Instant,
    /// So often there was none since then.
    stuck: u32,
    /// So often it is still waited for.
    waits: u32,
}

impl<T: Send + 'static> Look<T> {
    fn begin(waits: u32, look: impl FnOnce() -> T + Send + 'static) -> Option<Look<T>> {
        let (tell, told) = sync_channel(1);
        let (done, result) = sync_channel(1);
        let thread = thread::Builder::new().spawn(move || {
            let _ = tell.send(read_link("/proc/thread-self").unwrap_or_default());
            done.send(look())
        });
        thread.ok()?;
        Some(Look {
            result,
            thread: PathBuf::from("/proc").join(told.recv().ok()?),
            before: Vec::new(),
            at: Instant::now(),
            stuck: 0,
            waits,
        })
    }

    /// What has come of it: nothing, if it panicked or does not come back. `None`: it goes on.
    fn end_within(&mut self, time: Duration) -> Option<Option<T>> {
        match self.result.recv_timeout(time) {
            Ok(result) => return Some(Some(result)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(None),
        }
        if self.at.elapsed() < WAIT {
            return None;
        }
        self.at = Instant::now();
        let now = progress(&self.thread);
        self.stuck = if now == self.before {
            self.stuck + 1
        } else {
            0
        };
        self.waits -= 1;
        self.before = now;
        (self.stuck >= STUCK || self.waits == 0).then_some(None)
    }
}

/// What stays the same as long as a thread waits; one that only waits for a processor does not.
fn progress(thread: &std::path::Path) -> Vec<u8> {
    fs::read(thread.join("schedstat")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

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
        // Many that hang take no longer, and keep nobody from being told.
        let (began, mut told) = (Instant::now(), Vec::new());
        let looks = (0..40).map(|number| {
            let look = move || {
                while number != 20 {
                    std::thread::park();
                }
                number
            };
            (number, look)
        });
        apart_each(looks, |number, end| {
            told.extend(end.map(|end| (number, end)))
        });
        assert_eq!(told, [(20, 20)]);
        assert!(began.elapsed() < WAIT * STUCK * 20);
        // One that goes on is waited for.
        let slow = || (0..2 * STUCK).for_each(|_| sleep(WAIT));
        assert_eq!(apart_for(u32::MAX, slow), Some(()));
    }
}
