#!/bin/sh
# library.sh TOP: builds hakmem's libraries from a copy of their sources, with 2 compilers at once.
set -eu
top=$1

rm -rf build
if [ ! -d source ]; then
    mkdir source
    cp -r "$top/core" "$top/include" "$top/cmake" "$top/CMakeLists.txt" "$top/Cargo.toml" source
    # Neither the tests nor the command nor packages are built here.
    mkdir -p source/lab source/crates source/packaging
    touch source/lab/CMakeLists.txt source/crates/CMakeLists.txt source/packaging/packages.cmake
    find "$top/tests" -name CMakeLists.txt | while read -r file; do
        mkdir -p "source/tests/$(basename "$(dirname "$file")")"
        touch "source/tests/$(basename "$(dirname "$file")")/CMakeLists.txt"
    done
fi
cmake -S source -B build -G Ninja > cmake.log
cmake --build build --target library -j 2 > ninja.log
cksum build/hakmem.o build/libhakmem.so
