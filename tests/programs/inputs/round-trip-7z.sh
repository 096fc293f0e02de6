#!/bin/sh
# round-trip-7z.sh FILE: 7zz packs the file with 2 threads, tests the archive, unpacks it, compares
# that with the file, and prints the checksum of what was packed.
set -eu
file=$1

rm -f packed.7z
7zz a -bso0 -bsp0 -mx=3 -mmt=2 -mtm- packed.7z "$file"
7zz t -bso0 -bsp0 packed.7z
7zz x -bso0 -bsp0 -so packed.7z | cmp - "$file"
cksum < packed.7z
