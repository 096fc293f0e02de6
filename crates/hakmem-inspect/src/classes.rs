//! The size classes of the library.

use crate::error::Error;
use crate::layout::Layout;
use crate::memory::Memory;

/// A size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// Bytes of a block.
    pub size: u64,
    /// Blocks of a slab.
    pub blocks: u64,
    /// Units of a slab.
    pub units: u64,
    /// 0, 1 and 2: tiny, mid and large.
    pub tier: usize,
}

/// No block is shorter.
const SIZE_LEAST: u64 = 16;

/// The size classes of the library.
///
/// # Errors
/// They cannot be read.
pub fn size_classes(
    memory: &dyn Memory,
    layout: &Layout,
    file: &str,
) -> Result<Vec<SizeClass>, Error> {
    let count = layout.constant("CLASS_COUNT", 255)?;
    let bytes = layout.size("size_class")?;
    let [size, blocks, units] = layout.fields("size_class", ["size", "blocks", "units"])?;
    let address = layout.address_of("size_classes")?;
    let table = memory.bytes(address, count * bytes);
    let tiny_last = layout.constant("TINY_CLASS_LAST", 255)?;
    let mid_last = layout.constant("MID_CLASS_LAST", 255)?;
    let sizes = layout.constant("SIZE_COUNT", 255)?;
    let class = |(number, class): (usize, &[u8])| SizeClass {
        // Shorter blocks would be more than anybody can have.
        size: match size.of(class) {
            ..SIZE_LEAST => 0,
            size => size,
        },
        blocks: blocks.of(class),
        units: units.of(class),
        // Twins have a number behind all others, and are tiny.
        tier: match number {
            _ if number <= tiny_last || number > sizes => 0,
            _ if number <= mid_last => 1,
            _ => 2,
        },
    };
    let table = table.unwrap_or_default();
    let classes: Vec<_> = table.chunks_exact(bytes).enumerate().map(class).collect();
    // Class 0 is none.
    match classes.get(1) {
        Some(first) if first.size > 0 => Ok(classes),
        _ => Err(Error::NoConstants { file: file.into() }),
    }
}
