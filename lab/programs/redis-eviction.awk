# redis-eviction.awk: one phase of redis-eviction.sh as commands for redis-cli --pipe.
#
#     awk -v phase=2 -v count=50000 -v least=200 -v most=600 -f redis-eviction.awk
#
# A value begins with its key, so that a reader can tell whether it is the right one; its length is
# drawn between `least` and `most`. There are more keys than fit: most commands evict another one.

BEGIN {
    srand(phase)
    filling = "0123456789abcdefghijklmnopqrstuvwxyz"
    while (length(filling) < most) {
        filling = filling filling
    }
    for (i = 0; i < count; i++) {
        key = "key:" int(rand() * 400000)
        value = substr(key "=" filling, 1, least + int(rand() * (most - least + 1)))
        printf "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", length(key), key, length(value), value
    }
}
