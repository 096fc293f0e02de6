//! Cores, descriptors and processes that are damaged, or lie.

mod core_file;
mod garbage;
mod lies;
