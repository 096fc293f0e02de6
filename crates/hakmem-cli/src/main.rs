//! The `hakmem` command; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    hakmem_cli::main()
}
