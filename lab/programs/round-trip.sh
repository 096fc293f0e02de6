#!/bin/sh
# round-trip.sh FILE COMPRESSOR [OPTION ...]: compresses the file, unpacks the result, compares
# that with the file, and prints the size and the checksum of what was packed. From file to file: xz
# that writes to standard output opens no other file any more, and an allocator leaves no figures.
set -eu
file=$1
compressor=$2
shift

rm -f unpacked*
ln "$file" unpacked
"$@" -k -f unpacked
rm unpacked
set -- unpacked.*
"$compressor" -d -q -k "$1"
cmp "$file" unpacked
cksum < "$1"
