//! What a core file says of the program: its name, its threads, its files.

use std::ops::Range;

use super::{piece, Core};
use crate::layout::number;
use crate::maps::Mapping;

const NOTES_MAX: u64 = 64 << 20;

const NT_PRSTATUS: u64 = 1;
const NT_PRPSINFO: u64 = 3;
const NT_AUXV: u64 = 6;
/// In NT_AUXV: where the kernel put the name of the program, in the stack.
const AT_EXECFN: u64 = 31;
const NT_FILE: u64 = 0x4649_4c45;

impl Core {
    pub(super) fn add_notes(&mut self, offset: u64, bytes: u64) {
        let Some(notes) = piece(&self.file, offset, bytes.min(NOTES_MAX)) else {
            return;
        };
        let mut at = 0;
        while at + 12 <= notes.len() {
            let name = number(&notes, at, 4) as usize;
            let length = number(&notes, at + 4, 4) as usize;
            let kind = number(&notes, at + 8, 4);
            let start = at + 12 + name.next_multiple_of(4);
            let Some(note) = notes.get(start..start.saturating_add(length)) else {
                return;
            };
            match kind {
                NT_PRSTATUS => self.add_thread(note),
                NT_PRPSINFO => self.add_program(note),
                NT_FILE => self.add_files(note),
                NT_AUXV => {
                    let mut pairs = note.chunks_exact(16);
                    let pair = pairs.find(|pair| number(pair, 0, 8) == AT_EXECFN);
                    self.stack = pair.map_or(self.stack, |pair| number(pair, 8, 8));
                }
                _ => {}
            }
            at = start + length.next_multiple_of(4);
        }
    }

    /// `struct elf_prstatus` of 64-bit Linux, whose length tells the processor.
    fn add_thread(&mut self, note: &[u8]) {
        const X86_64: (usize, usize) = (336, 112 + 19 * 8);
        const AARCH64: (usize, usize) = (392, 112 + 31 * 8);
        let known = [X86_64, AARCH64];
        let known = known.iter().find(|(length, _)| *length == note.len());
        let pointer = known.map(|(_, place)| number(note, *place, 8));
        self.stack_pointers.extend(pointer);
        self.threads.extend_from_slice(note);
    }

    /// `struct elf_prpsinfo` of 64-bit Linux.
    fn add_program(&mut self, note: &[u8]) {
        let text = |range: Range<usize>| {
            let bytes = note.get(range).unwrap_or(&[]);
            let end = bytes.iter().position(|&byte| byte == 0);
            String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
        };
        self.pid = Some(number(note, 24, 4) as i32);
        self.short_name = text(40..56);
        self.program = text(56..136).trim().into();
        if self.program.is_empty() {
            self.program = self.short_name.clone();
        }
    }

    /// Which files were mapped where: a count, the size of a page, three words each, the names.
    fn add_files(&mut self, note: &[u8]) {
        let (count, page) = (number(note, 0, 8) as usize, number(note, 8, 8));
        let Some(names) = count
            .checked_mul(24)
            .and_then(|table| note.get(16 + table..))
        else {
            return;
        };
        let names = names.split(|&byte| byte == 0).map(String::from_utf8_lossy);
        for (index, name) in names.take(count).enumerate() {
            let word = |place: usize| number(note, 16 + index * 24 + place * 8, 8);
            let addresses = word(0)..word(1);
            if addresses.is_empty() {
                continue;
            }
            self.files.push((
                Mapping {
                    addresses,
                    readable: true,
                    writable: false,
                    shared: false,
                    offset: word(2).saturating_mul(page),
                    name: name.into_owned(),
                },
                None,
            ));
        }
    }
}
