#!/bin/sh
# objects.sh INPUT UNITS: assembles that many objects of objects.awk into the directory `objects`.
set -eu
input=$1
units=$2

mkdir -p objects.part
unit=0
while [ "$unit" -lt "$units" ]; do
    awk -v unit="$unit" -v units="$units" -v count=400 -f "$input/objects.awk" |
        as -o "objects.part/$unit.o" -
    unit=$((unit + 1))
done
printf '%s\n' objects.part/*.o | sort -V | sed 's/\.part//' > objects.list
mv objects.part objects
