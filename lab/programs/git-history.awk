# Prints a history for `git fast-import`: `count` commits, each of which changes a few of 200
# files. Names and dates are fixed, so the objects are the same on every machine.
#
#     awk -v count=N -f git-history.awk
function random(below) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % below
}

function make_line() {
    return sprintf("line %d of %d: %d %d", random(1000), random(1000), random(60000), random(60000))
}

function print_data(text) {
    printf "data %d\n%s\n", length(text), text
}

# Replaces some lines of the file, or writes it for the first time.
function change_file(file, i, text) {
    for (i = 0; i < 60; i++) {
        if (!((file, i) in line) || random(20) == 0) {
            line[file, i] = make_line()
        }
        text = text line[file, i] "\n"
    }
    printf "M 100644 inline directory-%d/file-%d.txt\n", file % 15, file
    print_data(text)
}

BEGIN {
    state = 20
    for (commit = 1; commit <= count; commit++) {
        print "commit refs/heads/main"
        printf "author A <a@example.org> %d +0000\n", 1600000000 + 60 * commit
        printf "committer A <a@example.org> %d +0000\n", 1600000000 + 60 * commit
        print_data("change " commit)
        first = random(200)
        for (changes = random(5); changes >= 0; changes--) {
            change_file((first + 17 * changes) % 200)
        }
    }
}
