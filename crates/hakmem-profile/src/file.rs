//! The file `.hakprof`, as docs/hakprof.md describes it.
//!
//! A file may have been cut off anywhere, be from a program that still runs, or be damaged. What
//! can be read is, and [`Recording::problems`] says what could not.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use thiserror::Error;

use crate::frame::Frame;
use crate::pins::Pinned;

/// The first bytes of a recording.
pub const MAGIC: &[u8; 8] = b"hakprof\n";
/// The newest version that is understood.
pub const VERSION: u32 = 1;
/// In the header of a look at one moment.
pub(crate) const LOOK: u32 = 2;
/// The same of a recording that began while the process ran.
pub(crate) const ATTACHED: u32 = 1;
pub(crate) const EXTENT_MAGIC: u32 = 0x7478_6568;
pub(crate) const EXTENT_HEAD: usize = 64;
/// The length of the header up to its texts.
pub const HEADER_NUMBERS: usize = 160;
pub(crate) const TEXT_BYTES: usize = 4096;
/// Frames that a site has at most: a stack of so many was cut off at its outer end.
pub const FRAMES_MAX: usize = 32;
pub(crate) const PATH_BYTES: usize = 904;
/// Bytes that a record of each kind has at least.
const RECORD_BYTES: [usize; 4] = [SITE_BYTES - SCOPE_BYTES, 64, 200, 1024];
/// Of a site; older files leave out the scope at its end.
pub(crate) const SITE_BYTES: usize = 416;
pub(crate) const SCOPE_BYTES: usize = 96;
/// A frame that is no return address: a place of Python and its number among the sites.
pub const PYTHON: u64 = 1 << 63;

/// Why nothing of a file can be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FileError {
    /// It is something else.
    #[error("this is no recording: it does not begin with \"hakprof\"")]
    NoRecording,
    /// Made by a newer library.
    #[error(
        "this recording is of version {found}, and this hakmem reads up to version {VERSION}: \
         use the hakmem that it was recorded with"
    )]
    Newer {
        /// The version of the file.
        found: u32,
    },
    /// Not even the header is whole.
    #[error("this recording was cut off after {bytes} bytes, before its header ended")]
    CutOff {
        /// Length of the file.
        bytes: usize,
    },
    /// Nothing in it can be found.
    #[error("the header of this recording is damaged: {what}")]
    Damaged {
        /// What cannot be true.
        what: &'static str,
    },
}

/// What the header says.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Monotonic clock at the start, ns.
    pub start_ns: u64,
    /// The same moment since 1970, ns.
    pub start_unix_ns: u64,
    /// When something was logged last, ns.
    pub last_ns: u64,
    /// Process id.
    pub process: u32,
    /// Id of the logged process that was forked; 0: none.
    pub parent: u32,
    /// The recording ended in good order, mostly with the process.
    pub ended: bool,
    /// The process ran before the recording began.
    pub attached: bool,
    /// It is a look at one moment: of what died before it is not known when.
    pub is_look: bool,
    /// Mean distance of samples in bytes; 0: the file knows neither samples nor times.
    pub sample_mean_bytes: u64,
    /// Births for which there was no room.
    pub lost_samples: u64,
    /// The weight of these in bytes.
    pub lost_bytes: u64,
    /// Sites for which there was no room.
    pub lost_sites: u64,
    /// Modules for which there was no room.
    pub lost_modules: u64,
    /// Dead samples that were given up.
    pub thinned_samples: u64,
    /// Name and version of the library.
    pub writer: String,
    /// Path of the executable.
    pub program: String,
    /// The arguments.
    pub command: Vec<String>,
}

/// Where allocations come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// When it was seen first, ns.
    pub time_ns: u64,
    /// Samples born there.
    pub born_samples: u64,
    /// Their weight in bytes.
    pub born_bytes: u64,
    /// Samples that died.
    pub dead_samples: u64,
    /// Their weight in bytes.
    pub dead_bytes: u64,
    /// Of that, freed by another thread.
    pub remote_bytes: u64,
    /// Of that, ended by realloc.
    pub realloc_bytes: u64,
    /// Return addresses, the innermost first.
    pub frames: Vec<u64>,
    /// The scope that the thread was in, behind those around it; empty: none.
    pub scope: String,
}

impl Site {
    /// All but the frames and the scope, in the order of the file.
    pub(crate) fn numbers(&mut self) -> [&mut u64; 7] {
        [
            &mut self.time_ns,
            &mut self.born_samples,
            &mut self.born_bytes,
            &mut self.dead_samples,
            &mut self.dead_bytes,
            &mut self.remote_bytes,
            &mut self.realloc_bytes,
        ]
    }
}

/// One sampled allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Number of its site.
    pub site: u32,
    /// ns.
    pub birth_ns: u64,
    /// ns; `None`: it lives.
    pub death_ns: Option<u64>,
    /// When its process ended, of several that are shown as one, ns; `None`: with all of them.
    pub gone_ns: Option<u64>,
    /// Samples that it is the sum of.
    pub count: u64,
    /// What the program asked for.
    pub requested_bytes: u64,
    /// What it got.
    pub usable_bytes: u64,
    /// Bytes asked for that it stands for, those of thinned samples included.
    pub weight_bytes: f64,
    /// Thread that allocated it.
    pub birth_thread: u32,
    /// Thread that freed it.
    pub death_thread: u32,
    /// Number of the size class; 0: a big block.
    pub size_class: u8,
    /// Placed before a page that cannot be accessed.
    pub guarded: bool,
    /// Freed by another thread.
    pub remote: bool,
    /// Ended by realloc.
    pub realloc: bool,
    /// Freed by its thread before that allocated anything else, where that is known.
    pub temporary: bool,
}

impl Sample {
    /// Estimated number of blocks that it stands for. One of no bytes weighs as one of a byte.
    pub fn blocks(&self) -> f64 {
        self.weight_bytes / self.requested_bytes.max(1) as f64
    }

    /// Estimated bytes that these blocks have, rounding included.
    pub fn held_bytes(&self) -> f64 {
        self.blocks() * self.usable_bytes as f64
    }

    /// When it stopped to take memory.
    pub fn left_ns(&self) -> Option<u64> {
        self.death_ns.or(self.gone_ns)
    }

    /// Whether it took memory at this time.
    pub fn lives_at(&self, time_ns: u64) -> bool {
        self.birth_ns <= time_ns && self.left_ns().is_none_or(|left| left > time_ns)
    }

    /// The variance of its weight as an estimate: each sample was picked with a chance of the bytes
    /// of one block / the weight.
    pub fn variance(&self) -> f64 {
        let block = self.requested_bytes.max(1) as f64;
        (self.weight_bytes * (self.weight_bytes / self.count as f64 - block)).max(0.0)
    }
}

/// The allocator at one moment; bytes unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Snapshot {
    pub time_ns: u64,
    pub rss: u64,
    pub live_blocks: u64,
    pub live: u64,
    pub magazines: u64,
    pub transfer: u64,
    pub slabs_free: u64,
    pub page_heap_free: u64,
    pub big_cache: u64,
    pub metadata: u64,
    pub mapped: u64,
    pub committed: u64,
    pub purged: u64,
    pub threads: u64,
    pub malloc_calls: u64,
    pub free_calls: u64,
    pub tier_live: [u64; 4],
    pub log: u64,
    pub rss_highest: u64,
}

impl Snapshot {
    /// All but the time, in the order of the file.
    pub fn amounts(&mut self) -> [&mut u64; 21] {
        let [tiny, mid, large, big] = &mut self.tier_live;
        [
            &mut self.rss,
            &mut self.live_blocks,
            &mut self.live,
            &mut self.magazines,
            &mut self.transfer,
            &mut self.slabs_free,
            &mut self.page_heap_free,
            &mut self.big_cache,
            &mut self.metadata,
            &mut self.mapped,
            &mut self.committed,
            &mut self.purged,
            &mut self.threads,
            &mut self.malloc_calls,
            &mut self.free_calls,
            tiny,
            mid,
            large,
            big,
            &mut self.log,
            &mut self.rss_highest,
        ]
    }
}

/// A loaded file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// When it was seen first, ns.
    pub time_ns: u64,
    /// First address.
    pub start: u64,
    /// Behind the last one.
    pub end: u64,
    /// Address less this: the one in the file.
    pub bias: u64,
    /// Empty: it has none.
    pub build_id: Vec<u8>,
    /// As the process saw it.
    pub path: String,
}

/// All of a file.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The header.
    pub header: Header,
    /// By number; those that are not there have no frames.
    pub sites: Vec<Site>,
    /// In no order.
    pub samples: Vec<Sample>,
    /// By time.
    pub snapshots: Vec<Snapshot>,
    /// In the order in which they were seen.
    pub modules: Vec<Module>,
    /// Python functions that stand in frames, by these.
    pub python: HashMap<u64, Frame>,
    /// What live blocks pinned when they pinned most, if somebody has looked.
    pub pinned: Option<Pinned>,
    /// The user who owns the file, or whose process it is.
    pub user: Option<u32>,
    /// Names and numbers of the processes that are shown as one; none: it is of one process.
    pub processes: Vec<(String, u32)>,
    /// Samples of blocks that live may be missing.
    pub is_partial: bool,
    /// What could not be read, or what was lost when it was written, as sentences.
    pub problems: Vec<String>,
}

impl Recording {
    /// Whether every allocation is in it, since every one was a sample, and found room.
    pub fn has_every_block(&self) -> bool {
        let header = &self.header;
        header.sample_mean_bytes == 1 && header.thinned_samples == 0 && header.lost_samples == 0
    }

    /// Finds out which blocks were freed before their thread's next allocation.
    fn find_temporary(&mut self) {
        self.samples
            .sort_by_key(|sample| (sample.birth_thread, sample.birth_ns));
        let mut next: Option<(u32, u64)> = None;
        for sample in self.samples.iter_mut().rev() {
            let thread = sample.birth_thread;
            let next_ns = next.filter(|it| it.0 == thread).map_or(u64::MAX, |it| it.1);
            next = Some((thread, sample.birth_ns));
            let freed = sample
                .death_ns
                .filter(|_| !sample.remote && !sample.realloc);
            sample.temporary = freed.is_some_and(|death| death < next_ns);
        }
    }

    /// The name that the program was called by.
    pub fn program(&self) -> String {
        let program = &self.header.program;
        let called = self.header.command.first().unwrap_or(program);
        crate::units::one_line(crate::units::called_name(called, program))
    }
}

/// More ns than any recording has, since 1970 or the machine began; sums and differences of a few
/// are none that a number could not hold.
pub(crate) const TIME_MAX: u64 = 1 << 62;
/// More of anything than is counted in a process.
pub(crate) const COUNT_MAX: u64 = 1 << 52;
/// More samples than a site has.
pub(crate) const SAMPLES_MAX: u64 = 1 << 32;

/// Numbers at places of a slice; behind its end they are 0.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    fn u8(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub fn u32(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 4).and_then(|b| b.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default())
    }

    pub fn u64(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + 8).and_then(|b| b.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    /// A time, ns: no later than two centuries.
    pub fn time(&self, at: usize) -> u64 {
        self.u64(at).min(TIME_MAX)
    }

    /// A number of anything: sums of all in a file are numbers as well.
    pub fn count(&self, at: usize) -> u64 {
        self.u64(at).min(COUNT_MAX)
    }

    /// Text up to a NUL, `length` or the end.
    fn text(&self, at: usize, length: usize) -> String {
        let rest = self.0.get(at..).unwrap_or_default();
        let bytes = &rest[..rest.len().min(length)];
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// Where things are in the file.
struct Layout {
    header_bytes: usize,
    extent_bytes: usize,
    extents: usize,
    record_bytes: [usize; 4],
}

/// What was left out, counted.
#[derive(Default)]
struct Damage {
    extents: usize,
    unfinished: usize,
    samples: usize,
    strangers: usize,
}

/// A file of which parts are read, and its length.
struct Source<R> {
    /// Fills a buffer from an offset on; fewer bytes: it has no more.
    read: R,
    length: usize,
}

impl<R: Fn(&mut [u8], usize) -> usize> Source<R> {
    /// So many bytes from there on, or those that there are.
    fn part(&self, offset: usize, length: usize, part: &mut Vec<u8>) {
        part.resize(length.min(self.length.saturating_sub(offset)), 0);
        let got = (self.read)(part, offset);
        part.truncate(got);
    }
}

/// Reads a file, a part after the other.
///
/// # Errors
/// Nothing in it can be read.
pub fn read(file: &File) -> Result<Recording, FileError> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let read = |part: &mut [u8], offset: usize| {
        let mut got = 0;
        while got < part.len() {
            match file.read_at(&mut part[got..], (offset + got) as u64) {
                Ok(more) if more > 0 => got += more,
                _ => break,
            }
        }
        got
    };
    read_from(&Source {
        read,
        length: length as usize,
    })
}

/// Reads one that is in memory.
///
/// # Errors
/// Nothing in it can be read.
pub fn parse(bytes: &[u8]) -> Result<Recording, FileError> {
    let read = |part: &mut [u8], offset: usize| {
        let rest = bytes.get(offset..).unwrap_or_default();
        part.copy_from_slice(&rest[..part.len()]);
        part.len()
    };
    read_from(&Source {
        read,
        length: bytes.len(),
    })
}

fn read_from<R: Fn(&mut [u8], usize) -> usize>(source: &Source<R>) -> Result<Recording, FileError> {
    let mut bytes = Vec::new();
    source.part(0, HEADER_NUMBERS, &mut bytes);
    if !bytes.starts_with(MAGIC) {
        return Err(match MAGIC.starts_with(&bytes) && !bytes.is_empty() {
            true => FileError::CutOff { bytes: bytes.len() },
            false => FileError::NoRecording,
        });
    }
    if bytes.len() < HEADER_NUMBERS {
        return Err(FileError::CutOff { bytes: bytes.len() });
    }
    let layout = layout(&bytes)?;
    source.part(0, layout.header_bytes, &mut bytes);
    let mut recording = Recording {
        header: header(&bytes),
        ..Recording::default()
    };
    recording.pinned = Pinned::of_file(&bytes, recording.header.sample_mean_bytes);
    let mut damage = Damage::default();
    read_extents(source, &layout, &mut recording, &mut damage);
    let sites = recording.sites.len();
    for sample in &mut recording.samples {
        if sample.site as usize >= sites {
            sample.site = 0;
            damage.strangers += 1;
        }
    }
    if recording.has_every_block() {
        recording.find_temporary();
    }
    if recording.header.is_look {
        for sample in &mut recording.samples {
            let site = recording.sites.get(sample.site as usize);
            let count = site.map_or(1, |site| match sample.death_ns {
                Some(_) => site.dead_samples,
                None => site.born_samples.saturating_sub(site.dead_samples),
            });
            sample.count = count.clamp(1, SAMPLES_MAX);
        }
    }
    recording.snapshots.sort_by_key(|snapshot| snapshot.time_ns);
    recording
        .snapshots
        .dedup_by_key(|snapshot| snapshot.time_ns);
    say_damage(source.length, &layout, &damage, &mut recording);
    say_losses(&mut recording);
    Ok(recording)
}

/// Of the first bytes of a recording that has not ended: the process that writes to it, and the
/// mean distance of its samples.
pub fn writer_of(header: &[u8; HEADER_NUMBERS]) -> Option<(i32, u64)> {
    let fields = Fields(header);
    let is_open = header.starts_with(MAGIC) && fields.u32(8) == VERSION && fields.u32(72) == 0;
    let process = i32::try_from(fields.u32(64)).ok()?;
    is_open.then_some((process, fields.count(80)))
}

fn layout(bytes: &[u8]) -> Result<Layout, FileError> {
    let fields = Fields(bytes);
    let version = fields.u32(8);
    if version > VERSION {
        return Err(FileError::Newer { found: version });
    }
    let damaged = |what| Err(FileError::Damaged { what });
    if version == 0 {
        return damaged("it has no version");
    }
    let layout = Layout {
        header_bytes: fields.u32(12) as usize,
        extent_bytes: fields.u32(16) as usize,
        extents: fields.u32(20) as usize,
        record_bytes: [24, 28, 32, 36].map(|at| fields.u32(at) as usize),
    };
    if !(HEADER_NUMBERS..=1 << 24).contains(&layout.header_bytes) {
        return damaged("the length of the header");
    }
    if !(2048..=1 << 24).contains(&layout.extent_bytes) {
        return damaged("the length of extents");
    }
    let fits = |(had, known): (&usize, &usize)| (*known..=layout.extent_bytes).contains(had);
    if !layout.record_bytes.iter().zip(&RECORD_BYTES).all(fits) {
        return damaged("the length of records");
    }
    Ok(layout)
}

fn header(bytes: &[u8]) -> Header {
    let fields = Fields(bytes);
    let start_ns = fields.time(40);
    let command_bytes = (fields.u32(8416) as usize).min(TEXT_BYTES);
    let command = bytes.get(4320..4320 + command_bytes).unwrap_or_default();
    let command = command.strip_suffix(b"\0").unwrap_or(command);
    let arguments = command.split(|byte| *byte == 0);
    Header {
        start_ns,
        start_unix_ns: fields.time(48),
        last_ns: fields.time(56).max(start_ns),
        process: fields.u32(64),
        parent: fields.u32(68),
        ended: fields.u32(72) != 0,
        attached: fields.u32(76) == ATTACHED,
        is_look: fields.u32(76) == LOOK,
        sample_mean_bytes: fields.count(80),
        lost_samples: fields.count(88),
        lost_bytes: fields.count(96),
        lost_sites: fields.count(104),
        lost_modules: fields.count(112),
        thinned_samples: fields.count(120),
        writer: fields.text(160, 64),
        program: fields.text(224, TEXT_BYTES),
        command: match command {
            [] => Vec::new(),
            _ => arguments
                .map(|a| String::from_utf8_lossy(a).into_owned())
                .collect(),
        },
    }
}

fn read_extents<R: Fn(&mut [u8], usize) -> usize>(
    source: &Source<R>,
    layout: &Layout,
    recording: &mut Recording,
    damage: &mut Damage,
) {
    let present = source.length / layout.extent_bytes + 1;
    let mut extent = Vec::new();
    for number in 0..layout.extents {
        let start = layout.header_bytes + number * layout.extent_bytes;
        source.part(start, EXTENT_HEAD, &mut extent);
        if extent.len() < EXTENT_HEAD {
            break;
        }
        let head = Fields(&extent);
        let (kind, order) = (head.u32(4) as usize, head.u32(8) as usize);
        if head.u32(0) != EXTENT_MAGIC || !(1..=4).contains(&kind) || order >= present {
            damage.extents += 1;
            continue;
        }
        source.part(start, layout.extent_bytes, &mut extent);
        let record_bytes = layout.record_bytes[kind - 1];
        let per_extent = (layout.extent_bytes - EXTENT_HEAD) / record_bytes;
        let records = extent.get(EXTENT_HEAD..).unwrap_or_default();
        let records = records.chunks_exact(record_bytes);
        for (index, record) in records.take(per_extent).enumerate() {
            let record = Fields(record);
            let number = order * per_extent + index;
            match (record.u32(0), kind) {
                (0, _) => {}
                (1, _) => damage.unfinished += 1,
                (2, 1) => read_site(number, &record, recording),
                (2 | 3, 2) => match read_sample(&record) {
                    Some(sample) => recording.samples.push(sample),
                    None => damage.samples += 1,
                },
                (2, 3) => recording.snapshots.push(read_snapshot(&record)),
                (2, 4) => recording.modules.push(read_module(&record)),
                _ => damage.samples += 1,
            }
        }
    }
}

fn read_site(number: usize, record: &Fields, recording: &mut Recording) {
    let frames = (record.u32(4) as usize).min(FRAMES_MAX);
    if frames == 0 && record.u32(68) != 0 {
        let place = read_python(record);
        recording.python.insert(PYTHON | number as u64, place);
        return;
    }
    if recording.sites.len() <= number {
        recording.sites.resize_with(number + 1, Site::default);
    }
    let site = &mut recording.sites[number];
    for (index, number) in site.numbers().into_iter().enumerate() {
        *number = record.count(8 + 8 * index);
    }
    site.frames = (0..frames).map(|i| record.u64(64 + 8 * i)).collect();
    site.scope = record.text(SITE_BYTES - SCOPE_BYTES, SCOPE_BYTES);
}

/// A function of Python and its line.
fn read_python(record: &Fields) -> Frame {
    let end = SITE_BYTES - SCOPE_BYTES;
    let text = |at: usize, length: usize, kind: u8| {
        let letters = record.0.get(at..at + length).unwrap_or_default();
        let number = |letter: &[u8]| {
            letter
                .iter()
                .rfold(0, |it, &byte| it << 8 | u32::from(byte))
        };
        let letters = letters.chunks_exact(usize::from(kind.max(1))).map(number);
        let letters = letters.take_while(|&letter| letter != 0);
        let text: String = letters
            .map(|it| char::from_u32(it).unwrap_or('\u{fffd}'))
            .collect();
        text
    };
    let function = text(end, SCOPE_BYTES, record.u8(68));
    let file = text(72, end - 72, record.u8(69));
    Frame::of_python(&function, &file, Some(record.u32(64)))
}

/// `None`: what it says cannot be.
fn read_sample(record: &Fields) -> Option<Sample> {
    let (birth_ns, death_ns) = (record.time(8), record.time(16));
    let is_dead = record.u32(0) == 3;
    let (weight, thinned) = (record.u64(40), record.u8(59));
    let usable_bytes = record.u64(32);
    let possible = thinned < 64 && weight < 1 << 56 && usable_bytes < 1 << 56;
    if !possible || (is_dead && death_ns < birth_ns) {
        return None;
    }
    Some(Sample {
        site: record.u32(4),
        birth_ns,
        death_ns: is_dead.then_some(death_ns),
        gone_ns: None,
        count: 1,
        requested_bytes: record.u64(24).min(usable_bytes),
        usable_bytes,
        weight_bytes: weight as f64 * 2f64.powi(i32::from(thinned)),
        birth_thread: record.u32(48),
        death_thread: record.u32(52),
        size_class: record.u8(56),
        guarded: record.u8(57) & 1 != 0,
        remote: record.u8(58) & 1 != 0,
        realloc: record.u8(58) & 2 != 0,
        temporary: false,
    })
}

fn read_snapshot(record: &Fields) -> Snapshot {
    let mut snapshot = Snapshot {
        time_ns: record.time(8),
        ..Snapshot::default()
    };
    for (index, field) in snapshot.amounts().into_iter().enumerate() {
        *field = record.count(16 + 8 * index);
    }
    snapshot
}

fn read_module(record: &Fields) -> Module {
    let id_bytes = (record.u32(4) as usize).min(32);
    Module {
        time_ns: record.time(8),
        start: record.u64(16),
        end: record.u64(24),
        bias: record.u64(32),
        build_id: record.0[40..40 + id_bytes].to_vec(),
        path: record.text(120, PATH_BYTES),
    }
}

fn say_damage(length: usize, layout: &Layout, damage: &Damage, recording: &mut Recording) {
    let whole = layout.header_bytes + layout.extents * layout.extent_bytes;
    recording.is_partial = length < whole || damage.extents > 0 || damage.samples > 0;
    let mut say = |text: String| recording.problems.push(text);
    if length < whole {
        let share = 100.0 * length as f64 / whole as f64;
        say(format!(
            "The file was cut off: {share:.0}% of it is there, and only that is shown."
        ));
    }
    if damage.extents > 0 {
        let (bad, all) = (damage.extents, layout.extents);
        say(format!(
            "{bad} of {all} parts of the file are damaged and were left out."
        ));
    }
    if damage.samples > 0 {
        say(format!(
            "{} records are damaged and were left out.",
            damage.samples
        ));
    }
    if damage.strangers > 0 {
        say(format!(
            "{} samples are of call sites that are not in the file.",
            damage.strangers
        ));
    }
    if damage.unfinished > 0 {
        say(format!(
            "{} records were being written when the file was read or the process ended.",
            damage.unfinished
        ));
    }
}

fn say_losses(recording: &mut Recording) {
    let header = &recording.header;
    let mut problems = Vec::new();
    recording.is_partial |= header.lost_samples > 0;
    if header.lost_samples > 0 {
        problems.push(format!(
            "{} samples found no room in the log, {} in all: record with a larger record_mib.",
            header.lost_samples,
            crate::units::bytes(header.lost_bytes as f64)
        ));
    }
    if header.lost_sites > 0 || header.lost_modules > 0 {
        problems.push(format!(
            "{} call sites and {} modules found no room in the log.",
            header.lost_sites, header.lost_modules
        ));
    }
    if header.thinned_samples > 0 {
        problems.push(format!(
            "The log was full: {} samples of freed blocks were thinned out, so the past is coarse.",
            header.thinned_samples
        ));
    }
    recording.problems.extend(problems);
}
