#!/bin/sh
# build.sh PROCESSOR: builds the packages for x86_64 or aarch64, inside the system that roots.py
# makes for it. /source has the sources, /crates the crates that the command needs; /objects is
# kept for the next time, and /out takes the packages.
set -eu
processor=$1
tree=/objects/$processor
export CARGO_HOME=/objects/cargo-home CARGO_NET_OFFLINE=true

case $processor in
x86_64) machine=x86_64-linux-gnu toolchain= ;;
aarch64) machine=aarch64-linux-gnu toolchain=/source/packaging/aarch64.cmake ;;
*) echo "no packages are made for $processor" >&2; exit 2 ;;
esac

# package KIND LIBRARIES: makes packages of one kind, with the libraries in that directory below the
# prefix. Nothing is compiled anew for that.
package() {
    cmake -S /source -B "$tree" -G Ninja --log-level=WARNING -D CMAKE_TOOLCHAIN_FILE="$toolchain" \
        -D CMAKE_INSTALL_PREFIX=/usr -D CMAKE_INSTALL_LIBDIR="$2" -D HAKMEM_WERROR=1
    cmake --build "$tree" --target library command
    cpack --config "$tree/CPackConfig.cmake" -G "$1" -B "$tree/packed"
}

# The library for programs of musl, which the command takes from there if it is unpacked beside it.
package_for_musl() {
    cmake -S /source -B "$tree/musl" -G Ninja --log-level=WARNING -D CMAKE_C_COMPILER=musl-gcc \
        -D CMAKE_INSTALL_LIBDIR="lib/$processor-linux-musl" -D HAKMEM_WERROR=1
    cmake --build "$tree/musl" --target library
    cpack --config "$tree/musl/CPackConfig.cmake" -G TGZ -B "$tree/packed"
}

mkdir -p "$CARGO_HOME" "$tree/package"
cat > "$CARGO_HOME/config.toml" <<TOML
[source.crates-io]
replace-with = "vendored-sources"
[source.vendored-sources]
directory = "/crates"
TOML
cd /source
python3 packaging/crates.py "$tree/package/third-party-licences.txt"

rm -rf "$tree/packed"
package DEB "lib/$machine"
package RPM lib64
package TGZ lib
[ "$processor" != x86_64 ] || package_for_musl
find "$tree/packed" -maxdepth 1 -type f -exec cp {} /out/ \;
