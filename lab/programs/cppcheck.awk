# Prints a source in C++ with `count` classes for analysers: containers, branches, loops, mistakes.
#
#     awk -v count=N -f cppcheck.awk
BEGIN {
    print "#include <map>\n#include <string>\n#include <vector>"
    for (i = 0; i < count; i++) {
        printf "struct part_%d {\n    int number_%d = %d;\n    std::vector<int> list;\n", i, i, i
        printf "    int weigh(int least, const std::map<std::string, int> &names) const {\n"
        printf "        int total = 0, unused_%d = %d;\n", i, i * 7919 % 1009
        for (j = 0; j < 6; j++) {
            printf "        for (int i = %d; i < least; i++) {\n", j
            printf "            if (i %% %d == 0 && number_%d > %d) {\n", j + 2, i, j
            printf "                total += i < 10 ? list[i] : least / %d;\n            } else if (!names.empty()) {\n", j + 1
            printf "                total -= names.begin()->second + %d;\n            }\n        }\n", j
        }
        printf "        char buffer[%d];\n        buffer[%d] = 0;\n", i % 9 + 1, i % 10
        printf "        int *pointer = total ? &total : nullptr;\n        return *pointer;\n    }\n};\n"
        if (i > 0) {
            printf "template <class T> int use_%d(T what) { return part_%d().weigh(what, {}) + part_%d().number_%d; }\n", i, i, i - 1, i - 1
            printf "int call_%d() { return use_%d(%d); }\n", i, i, i
        }
    }
}
