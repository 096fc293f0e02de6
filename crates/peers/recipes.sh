#!/bin/sh
# recipes.sh NAME: builds the peer NAME in the current, empty directory, the way its authors do.
#
# build.sh calls it with these variables:
#   SOURCE         the folder of the unpacked crate, never written to; or the name of the package
#   CRATE_VERSION  the crate's version, such as 0.7.1+5.3.1, or the package's
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

# build_mimalloc FOLDER LIBRARY OPTION...: malloc overridden, statistics as the authors have them.
build_mimalloc() {
    folder=$SOURCE/c_src/$1 built=$2
    shift 2
    cmake_library "$folder" mimalloc \
        -DMI_BUILD_STATIC=OFF -DMI_BUILD_OBJECT=OFF -DMI_BUILD_TESTS=OFF "$@"
    cp "cmake/$built" library.so
    echo "cmake Release, ${*:-defaults} (gcc -O3 -ftls-model=initial-exec, MI_OVERRIDE=ON)" >flags
    # 30600 stands for 3.6.0.
    sed -n 's/^#define MI_MALLOC_VERSION *\([0-9]*\).*/\1/p' "$folder/include/mimalloc.h" |
        awk '{ print int($1 / 10000) "." int($1 / 100) % 100 "." $1 % 100 }' >version
}

build_mimalloc3() {
    build_mimalloc mimalloc3 libmimalloc.so
}

build_mimalloc2() {
    build_mimalloc mimalloc libmimalloc.so
}

# Guard pages, encoded lists, random order, checks of what is freed: what the authors call secure.
# MI_SECURE=FULL, with a guard page behind each of their pages, they call expensive.
build_mimalloc3_secure() {
    build_mimalloc mimalloc3 libmimalloc-secure.so -DMI_SECURE=ON
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

# compile_snmalloc TARGET WORDS: a shim that the authors name for LD_PRELOAD.
compile_snmalloc() {
    cmake_library "$SOURCE/upstream" "$1" -DSNMALLOC_BUILD_TESTING=OFF
    cp "cmake/lib$1.so" library.so
    echo "cmake Release, target $1 (g++ -O3, $2, static libstdc++)" >flags
    # Library and crate come from one repository and share their version.
    echo "$CRATE_VERSION" >version
}

build_snmalloc() {
    compile_snmalloc snmallocshim 'without checks'
}

# What the authors call hardened: random order, encoded lists, checks of frees and of memcpy.
build_snmalloc_checks() {
    compile_snmalloc snmallocshim-checks 'with checks'
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

# compile_hardened_malloc CONFIGURATION: the flags of the authors' Makefile, which the crate does
# not have. gcc 12 knows words of C23 only from a header.
compile_hardened_malloc() {
    folder=$SOURCE/vendor/hardened-malloc configuration=$SOURCE/config-$1.conf
    flags='-O3 -flto -march=native -fPIC -fvisibility=hidden -fno-plt -fstack-clash-protection
        -fstack-protector-strong'
    [ "$(uname -m)" != x86_64 ] || flags="$flags -fcf-protection"
    defines=$(sed -n 's/^[A-Z_]*=/-D&/p' "$configuration")
    # Word splitting is meant: one argument a flag.
    # shellcheck disable=SC2086
    {
        gcc -std=c2x -include stdalign.h -D_GNU_SOURCE $flags $defines -I"$folder" \
            -I"$folder/include" -c "$folder"/*.c
        g++ -std=c++17 -fsized-deallocation -D_GNU_SOURCE $flags $defines -I"$folder" \
            -I"$folder/include" -c "$folder/new.cc"
        g++ $flags -shared $link_flags \
            -Wl,-O1,-z,defs,-z,relro,-z,now,-z,nodlopen,-z,text ./*.o -o library.so
    }
    echo "gcc -O3 -flto -march=native, the authors' configuration $1" >flags
    # The crate is numbered by the system that the allocator is made for, and by the day.
    echo "${CRATE_VERSION##*.}" >version
}

build_hardened_malloc() {
    compile_hardened_malloc default
}

build_hardened_malloc_light() {
    compile_hardened_malloc light
}

# As the distribution has built it; the library has no build system apart from that of all of LLVM.
build_scudo() {
    name=libclang_rt.scudo_standalone-$(uname -m).so
    cp "$(dpkg -L "$SOURCE" | grep "/$name\$")" library.so
    echo "as Debian's package $SOURCE has it" >flags
    echo "$CRATE_VERSION" | sed 's/^[0-9]*://; s/-.*//' >version
}

"build_$(echo "$1" | tr - _)"
if ! [ -s library.so ] || ! [ -s flags ] || ! grep -qx '[0-9][0-9.-]*' version; then
    echo 'the recipe has to leave library.so, flags and version' >&2
    exit 1
fi
# Symbols stay, for profilers.
strip --strip-debug library.so
