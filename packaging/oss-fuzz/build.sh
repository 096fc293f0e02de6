#!/bin/bash
# build.sh: builds the targets of tests/fuzz for OSS-Fuzz, in a checkout of hakmem.
#
# From OSS-Fuzz come CC, CXX, CFLAGS, CXXFLAGS, SANITIZER, and the directories WORK and OUT. In OUT
# are then a program a target, with its inputs, its dictionary and its longest input.
set -eu

fuzz=tests/fuzz
configure=(-S . -B "$WORK/build" -G Ninja --log-level=WARNING)
case $SANITIZER in
address | undefined) configure+=(-DHAKMEM_SANITIZE="$SANITIZER") ;;
esac
# libFuzzer is in C++, and of the C++ library that it was built with.
case " $CXXFLAGS " in
*' -stdlib=libc++ '*) configure+=(-DCMAKE_EXE_LINKER_FLAGS=-stdlib=libc++) ;;
esac
cmake "${configure[@]}"
cmake --build "$WORK/build" --target fuzz

# add TARGET PROGRAM LONGEST FOLDER...: the program with what tests/fuzz/fuzz.py gives it.
add() {
    local target=$1 program=$2 longest=$3 folder
    shift 3
    cp "$WORK/build/$fuzz/$program" "$OUT/fuzz_$target"
    printf '[libfuzzer]\nmax_len = %s\n' "$longest" >"$OUT/fuzz_$target.options"
    [ ! -f "$fuzz/$target.dict" ] || cp "$fuzz/$target.dict" "$OUT/fuzz_$target.dict"
    rm -f "$OUT/fuzz_${target}_seed_corpus.zip"
    for folder; do
        [ ! -d "$fuzz/$folder" ] || zip -q -r "$OUT/fuzz_${target}_seed_corpus.zip" "$fuzz/$folder"
    done
}

add heap fuzz_heap 2048 corpus/heap crashes/heap
add hardened fuzz_hardened_heap 2048 corpus/heap crashes/heap corpus/hardened crashes/hardened
add options fuzz_options 600 corpus/options crashes/options
add text fuzz_text 600 corpus/text crashes/text
