#!/bin/sh
# rust.sh INPUT ROUNDS: rustc compiles the program trees in 8 parts at once and runs it. Prints the
# checksums of the program and of its output.
set -eu
input=$1
rounds=$2

/usr/bin/rustc --edition 2021 -C opt-level=2 -C codegen-units=8 -o trees "$input/trees.rs"
cksum trees
./trees "$rounds"
