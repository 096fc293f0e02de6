# Prints an integer program in the LP format: items are packed into bins of equal room.
#
#     awk -v items=N -f packing.awk
function random(below) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % below
}

BEGIN {
    state = 20
    bins = int(items / 2)
    print "Minimize\n cost:"
    for (bin = 1; bin <= bins; bin++) {
        printf " + %d open_%d", 10 + bin, bin
    }
    print "\nSubject To"
    for (item = 1; item <= items; item++) {
        size[item] = 20 + random(40)
        printf " placed_%d:", item
        for (bin = 1; bin <= bins; bin++) {
            printf " + in_%d_%d", item, bin
        }
        print " = 1"
    }
    for (bin = 1; bin <= bins; bin++) {
        printf " room_%d:", bin
        for (item = 1; item <= items; item++) {
            printf " + %d in_%d_%d", size[item], item, bin
        }
        printf " - 97 open_%d <= 0\n", bin
    }
    print "Binary"
    for (bin = 1; bin <= bins; bin++) {
        printf " open_%d\n", bin
        for (item = 1; item <= items; item++) {
            printf " in_%d_%d\n", item, bin
        }
    }
    print "End"
}
