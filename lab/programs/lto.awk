# Prints one source of a program of `units` sources in C whose functions call each other.
#
#     awk -v unit=N -v units=N -f lto.awk
BEGIN {
    other = (unit + 1) % units
    for (i = 0; i < 70; i++) {
        printf "unsigned f_%d_%d(unsigned depth, unsigned value);\n", other, i
    }
    for (i = 0; i < 70; i++) {
        printf "static unsigned g_%d(unsigned *list, unsigned count, unsigned value) {\n", i
        printf "    for (unsigned i = 0; i < count; i++) { list[i %% 16] += value * %du ^ i; }\n", i + 3
        printf "    switch (value %% 5) { case 0: return list[%d]; case 1: return list[1] * 7;\n", i % 16
        printf "    case 2: return value >> 3; default: return list[value %% 16] + %du; }\n}\n", i
        printf "unsigned f_%d_%d(unsigned depth, unsigned value) {\n", unit, i
        printf "    unsigned list[16] = {value, %du};\n", unit
        printf "    if (depth == 0) { return g_%d(list, value %% 20, value); }\n", i
        printf "    value = f_%d_%d(depth - 1, value * 31 + %du);\n", other, (i * 7 + 1) % 70, i
        printf "    for (unsigned i = 0; i < value %% 9; i++) { value ^= g_%d(list, i, value); }\n", (i + 1) % 70 < i ? 0 : i
        printf "    return value;\n}\n"
    }
    if (unit == 0) {
        print "#include <stdio.h>\nint main(void) {\n    unsigned total = 0;"
        for (i = 0; i < 70; i++) {
            printf "    total += f_0_%d(%d, %d);\n", i, 5 + i % 7, i
        }
        print "    printf(\"%u\\n\", total);\n    return 0;\n}"
    }
}
