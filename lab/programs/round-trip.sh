#!/bin/sh
# round-trip.sh FILE COMPRESSOR [OPTION ...]: compresses the file, unpacks the result, compares
# that with the file, and prints the size and the checksum of what was packed.
set -eu
file=$1
compressor=$2
shift

"$@" -c "$file" > packed
"$compressor" -d -c packed > unpacked
cmp "$file" unpacked
cksum < packed
