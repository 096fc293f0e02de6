#!/bin/sh
# git-check.sh FRESH PACKED: succeeds if the second repository holds the objects of the first,
# undamaged, and all of them in packs.
set -eu

list() {
    git -C "$1" cat-file --batch-all-objects --batch-check
}

git -C "$2" fsck --strict --no-progress
git -C "$2" count-objects -v | grep -qx 'count: 0'
list "$1" > fresh.objects
list "$2" > packed.objects
cmp fresh.objects packed.objects
