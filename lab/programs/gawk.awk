# gawk.awk: indexes lines by word, rewrites and sorts them, and prints checksums. Of every block of
# lines an index is made and dropped.
#
#     gawk -f gawk.awk FILE
function finish(word, count, sum, i) {
    count = asorti(lines, order)
    for (i = 1; i <= count; i++) {
        word = order[i]
        sum = (sum * 31 + length(lines[word]) + split(lines[word], part, ",")) % 1000003
    }
    print NR, count, sum, length(longest)
    delete lines
    delete seen
    longest = ""
}

{
    for (i = 1; i <= NF; i++) {
        lines[$i] = lines[$i] "," NR
        seen[$i][NF][NR % 100] = toupper($i)
        if (length(lines[$i]) > length(longest)) {
            longest = lines[$i]
        }
    }
    text = gensub(/([a-m]+)([n-z]+)/, "\\2-\\1", "g")
    gsub(/[aeiou]/, "<&>", text)
    total += length(text)
}

NR % 5000 == 0 {
    finish()
}

END {
    finish()
    print total
}
