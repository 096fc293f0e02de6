#!/bin/sh
# lto.sh INPUT UNITS: gcc compiles the sources of lto.awk and optimizes them together when it links
# them, in 2 processes. Runs the program, and prints its checksum.
set -eu
input=$1
units=$2

objects=
unit=0
while [ "$unit" -lt "$units" ]; do
    awk -v unit="$unit" -v units="$units" -f "$input/lto.awk" > "$unit.c"
    gcc -O2 -flto -c -o "$unit.o" "$unit.c"
    objects="$objects $unit.o"
    unit=$((unit + 1))
done
# Word splitting is meant.
# shellcheck disable=SC2086
gcc -O2 -flto=2 -o program $objects
./program
cksum program
