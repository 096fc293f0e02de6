#!/bin/sh
# library.sh TOP: builds hakmem's libraries from a copy of their sources, with 2 compilers at once.
set -eu
top=$1

rm -rf build
if [ ! -d source ]; then
    mkdir source
    cp -r "$top/core" "$top/include" "$top/cmake" "$top/CMakeLists.txt" source
    # Neither the tests nor the command are built here.
    mkdir source/lab source/crates
    touch source/lab/CMakeLists.txt source/crates/CMakeLists.txt
fi
cmake -S source -B build -G Ninja > cmake.log
cmake --build build --target library -j 2 > ninja.log
cksum build/hakmem.o build/libhakmem.so
