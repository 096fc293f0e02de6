# Prints `count` pseudo-random lines of 5 to 60 bytes, the same on every machine: words that come
# again and again, as in real text, and a number each.
#
#     awk -v count=N -f lines.awk
function random(below) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % below
}

BEGIN {
    state = 20
    for (i = 0; i < 500; i++) {
        word[i] = ""
        for (letters = 2 + random(8); letters > 0; letters--) {
            word[i] = word[i] sprintf("%c", 97 + random(26))
        }
    }
    for (i = 0; i < count; i++) {
        line = random(60000)
        for (words = random(8); words > 0; words--) {
            line = line " " word[random(500)]
        }
        print line
    }
}
