# Prints a book in XML: chapters of paragraphs with references to each other.
#
#     awk -v chapters=N -f xslt.awk
function random(below) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % below
}

BEGIN {
    state = 20
    print "<book>"
    for (chapter = 1; chapter <= chapters; chapter++) {
        printf "<chapter id='c%d' level='%d'><title>Chapter %d</title>\n", chapter, random(5), chapter
        for (paragraphs = 20; paragraphs > 0; paragraphs--) {
            printf "<para kind='k%d'>word %d <ref to='c%d'/> and <em>word %d</em>, word %d</para>\n",
                random(7), random(9999), 1 + random(chapters), random(999), random(99)
        }
        print "</chapter>"
    }
    print "</book>"
}
