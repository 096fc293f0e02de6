#!/bin/sh
# uninstall.sh BUILD PREFIX: removes from below DESTDIR what `make install` with the same PREFIX
# puts there. What that is, an installation into a directory of its own shows; a list that is
# written by the installation itself would be lost with build/. Directories of hakmem's that are
# empty then go, those of the system stay.
set -eu

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=${DESTDIR-}
case $root in "" | /*) ;; *) root=$PWD/$root ;; esac
DESTDIR=$stage cmake --install "$1" --prefix "$2" > /dev/null
cd "$stage"
find . ! -type d | while IFS= read -r path; do
    rm -f "$root/${path#./}"
done
find . -depth -type d -path '*hakmem*' | while IFS= read -r path; do
    rmdir "$root/${path#./}" 2> /dev/null || :
done
