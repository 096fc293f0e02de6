//! The command from end to end. The programs and libraries that it needs are those of a build
//! tree: build/, or the directory that LAB_TEST_BUILD names.

mod bench;
mod compare;
mod doctor;
mod explain;
mod fixtures;
mod generate;
mod inspect;
mod inspect_live;
mod inspect_pinned;
mod inspect_python;
mod inspect_scopes;
mod metrics;
mod musl;
mod options;
mod peaks;
mod record;
mod record_end;
mod record_every;
mod record_output;
mod record_parts;
mod record_pinned;
mod record_python;
mod record_symbols;
mod report;
mod restart;
mod run;
mod run_stats;
mod serve;
mod trim;
