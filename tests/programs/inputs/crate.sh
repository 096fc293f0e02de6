#!/bin/sh
# crate.sh TOP CRATE: builds a crate of hakmem, with what it depends on, and prints the checksum of
# what came of it.
set -eu
top=$1
crate=$2

cargo build --quiet --locked --offline --jobs 2 --package "$crate" \
    --manifest-path "$top/Cargo.toml" --target-dir target
# A build of the same sources in the same directory gives the same bytes.
for library in target/debug/deps/*.rlib; do
    cksum "$library"
done
