#!/bin/sh
# git-history.sh INPUT COMMITS DIRECTORY: makes a repository in which every object is a file of its
# own, as after much work without `git gc`. The objects are the same on every machine.
set -eu
input=$1
commits=$2
directory=$3

git init -q --bare -b main "$directory.part"
awk -v count="$commits" -f "$input/git-history.awk" |
    git -C "$directory.part" -c fastimport.unpackLimit=1000000 fast-import --quiet
mv "$directory.part" "$directory"
