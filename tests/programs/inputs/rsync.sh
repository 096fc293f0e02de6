#!/bin/sh
# rsync.sh FILES: copies a tree of files, changes it, and brings the copy up to date by differences;
# prints what was transferred and fails if the copy differs in the end.
set -eu
files=$1

rm -rf source copy
mkdir -p source
awk -v files="$files" 'BEGIN {
    for (n = 0; n < files; n++) {
        name = sprintf("source/%03d", n)
        for (line = 0; line < 200 + n % 50; line++) print line * 7919 % 10007, n > name
        close(name)
    }
}'
# A fixed time keeps the list of changes the same in every run.
touch -d '2020-01-01 UTC' source/* source
rsync --archive --compress --checksum --itemize-changes source/ copy
awk -v files="$files" 'BEGIN {
    for (n = 0; n < files; n += 3) print "one more line" >> sprintf("source/%03d", n)
}'
rm source/001 source/004
rsync --archive --compress --checksum --no-whole-file --delete --itemize-changes source/ copy |
    sort
diff -r source copy
