#!/bin/sh
# recipes.sh NAME: builds the peer NAME in the current, empty directory, the way its authors do.
#
# build.sh calls it with these variables:
#   SOURCE         the folder of the unpacked crate; never written to
#   CRATE_VERSION  the crate's version, such as 0.7.1+5.3.1
#   RECIPES        the folder of this file
#   JOBS           how many compilers may run at once
#
# A recipe leaves three files: library.so, and for the record `version`, of the allocator as its
# sources tell it, and `flags`, what it was built with.
set -eu

# Libraries that the build system names but the code does not use would only slow down each start.
link_flags=-Wl,--as-needed

# cmake_library FOLDER TARGET OPTION...: builds one target of the CMake project in FOLDER.
cmake_library() {
    folder=$1 target=$2
    shift 2
    set -- -DCMAKE_BUILD_TYPE=Release -DCMAKE_SHARED_LINKER_FLAGS="$link_flags" "$@"
    cmake -S "$folder" -B cmake -G Ninja "$@"
    cmake --build cmake --parallel "$JOBS" --target "$target" --verbose
}

# Defaults: malloc overridden, no guards, statistics as the authors have them.
build_mimalloc() {
    cmake_library "$SOURCE/c_src/$1" mimalloc \
        -DMI_BUILD_STATIC=OFF -DMI_BUILD_OBJECT=OFF -DMI_BUILD_TESTS=OFF
    cp cmake/libmimalloc.so library.so
    echo 'cmake Release, defaults (gcc -O3 -ftls-model=initial-exec, MI_OVERRIDE=ON)' >flags
    # 30600 stands for 3.6.0.
    sed -n 's/^#define MI_MALLOC_VERSION *\([0-9]*\).*/\1/p' "$SOURCE/c_src/$1/include/mimalloc.h" |
        awk '{ print int($1 / 10000) "." int($1 / 100) % 100 "." $1 % 100 }' >version
}

build_mimalloc3() {
    build_mimalloc mimalloc3
}

build_mimalloc2() {
    build_mimalloc mimalloc
}

# Defaults. The crate keeps the generated configure outside the source tree, and the version, which
# the authors take from git, behind the `+` of its own.
build_jemalloc() {
    upstream=${CRATE_VERSION#*+}
    sh "$SOURCE/configure/configure" --srcdir="$SOURCE/jemalloc" --with-version="$upstream" \
        LDFLAGS="$link_flags"
    make -j "$JOBS" build_lib_shared
    cp lib/libjemalloc.so.2 library.so
    echo 'configure, defaults (gcc -O3 -funroll-loops, statistics on, profiling off)' >flags
    echo "${upstream%%-*}" >version
}

# The shim that the authors name for LD_PRELOAD; the -checks variants are the hardened ones.
build_snmalloc() {
    cmake_library "$SOURCE/upstream" snmallocshim -DSNMALLOC_BUILD_TESTING=OFF
    cp cmake/libsnmallocshim.so library.so
    echo 'cmake Release, target snmallocshim (g++ -O3, without checks, static libstdc++)' >flags
    # Library and crate come from one repository and share their version.
    echo "$CRATE_VERSION" >version
}

# What configure.py generates for the target rpmallocwrap, without -ffast-math: the code has no
# floating point, and with it gcc 12 would make the library change the arithmetic of the program.
build_rpmalloc() {
    flags='-O3 -funroll-loops -DENABLE_PRELOAD=1 -DENABLE_OVERRIDE=1'
    # Word splitting is meant: one argument a flag.
    # shellcheck disable=SC2086
    gcc -std=c11 -D_GNU_SOURCE -fPIC -shared -pthread -DBUILD_DYNAMIC_LINK=1 $flags $link_flags \
        "$SOURCE/rpmalloc/rpmalloc/rpmalloc.c" -o library.so
    echo "gcc $flags" >flags
    sed -n '1s/[^0-9.]*$//p' "$SOURCE/rpmalloc/CHANGELOG" >version
}

# The authors number no versions; the crate's log has the day on which it took the sources.
build_tcmalloc() {
    cmake_library "$RECIPES/tcmalloc" tcmalloc -DSOURCES="$SOURCE/c_src"
    cp cmake/libtcmalloc.so library.so
    echo 'g++ -O2 -fno-omit-frame-pointer, pages of 8 KiB, static abseil and libstdc++' >flags
    sed -n "s/^## \[$CRATE_VERSION\].* - \([0-9-]*\)$/\1/p" "$SOURCE/CHANGELOG.md" >version
}

"build_$1"
if ! [ -s library.so ] || ! [ -s flags ] || ! grep -qx '[0-9][0-9.-]*' version; then
    echo 'the recipe has to leave library.so, flags and version' >&2
    exit 1
fi
# Symbols stay, for profilers.
strip --strip-debug library.so
