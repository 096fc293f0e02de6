"""Installs each package in a bare system, by the commands of docs/install.md, and uses it there.

Nothing but what Debian's smallest system has is there, and no network: what a package needs and
does not ask for is missing.
"""

import time

import project
import roots

# From nothing to the first comparison, with a package.
FIRST_COMPARISON_SECONDS = 120

PAGE = project.TOP / "docs/install.md"

# Says who served malloc, fails if it was not hakmem, and compares; `hakmem` is the command.
USE = r"""
seq 200000 > /tmp/lines
said=$(HAKMEM_STATS=1 $hakmem run -- sort /tmp/lines 2>&1 >/dev/null)
echo "$said" | grep -q '^hakmem @VERSION@ statistics of process'
$hakmem --version | grep -q 'hakmem @VERSION@'
$hakmem doctor -- sort -o /dev/null /tmp/lines
$hakmem compare --with system -- sort -o /dev/null /tmp/lines > /tmp/comparison
cat /tmp/comparison
grep -q 'hakmem (A/A)' /tmp/comparison
$hakmem bench --quick --runs 1 --with system startup > /dev/null
"""

PRELOAD = r"""
said=$(LD_PRELOAD=$library HAKMEM_STATS=1 sort /tmp/lines 2>&1 >/dev/null)
echo "$said" | grep -q '^hakmem @VERSION@ statistics of process'
"""

BUILD = r"""
rm -rf /tmp/build && mkdir /tmp/build && cd /tmp/build
cat > use.c <<'C'
#include <hakmem/hakmem.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char *block = malloc(100);
    int good = block && hakmem_usable_size(block) >= 100 &&
               strcmp(hakmem_version(), HAKMEM_VERSION) == 0;
    free(block);
    return !good;
}
C
cc -o shared use.c $(pkg-config --cflags --libs hakmem)
cc -static -o static use.c $(pkg-config --static --cflags --libs hakmem)
./shared
./static
test "$(pkg-config --modversion hakmem)" = @VERSION@
mkdir consumer
printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(consumer LANGUAGES C)' \
    'find_package(hakmem REQUIRED)' 'add_executable(consumer ../use.c)' \
    'target_link_libraries(consumer PRIVATE hakmem::override)' > consumer/CMakeLists.txt
cmake -S consumer -B consumer/build -G Ninja > /dev/null
cmake --build consumer/build > /dev/null
consumer/build/consumer
"""

# The program has to be one of musl: the library for glibc would not be loaded.
MUSL = r"""
rm -rf /tmp/musl && mkdir /tmp/musl && cd /tmp/musl
tar -xf /packages/hakmem-*-linux-x86_64.tar.gz --strip-components=1
tar -xf /packages/hakmem-*-linux-x86_64-musl.tar.gz --strip-components=1
cat > use.c <<'C'
#include <stdlib.h>
int main(void)
{
    void *volatile block = malloc(100);
    free(block);
    return block == NULL;
}
C
musl-gcc -o use use.c
said=$(HAKMEM_STATS=1 bin/hakmem run -- ./use 2>&1)
echo "$said" | grep -q '^hakmem @VERSION@ statistics of process'
"""

# An RPM asks for parts of the C library by names that Debian's packages do not provide. This one
# says what is there; everything else that ours ask for is looked at.
STAND_IN = r"""
mkdir -p /tmp/stand-in && cd /tmp/stand-in
{
    printf '%s\n' 'Name: debian' 'Version: 12' 'Release: 1' 'Summary: What the system has' \
        'License: MIT' 'BuildArch: noarch' 'Provides: /bin/sh' 'Provides: /sbin/ldconfig' \
        'Provides: rtld(GNU_HASH)' 'Provides: /usr/bin/pkg-config'
    for library in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 libgcc_s.so.1 ld-linux-x86-64.so.2
    do
        file=$(ls /lib/x86_64-linux-gnu/$library)
        echo "Provides: $library()(64bit)"
        readelf -VW "$file" | grep -o 'Name: [A-Z]*_[A-Z0-9.]*' | cut -d' ' -f2 | sort -u |
            sed "s/.*/Provides: $library(&)(64bit)/"
    done
    printf '%s\n' '%description' 'What the system has.' '%files'
} > debian.spec
rpmbuild -bb --define '_rpmdir /tmp/stand-in' debian.spec > /dev/null
"""


REMOVED = r"""
for left in /usr/bin/hakmem /usr/lib*/libhakmem* /usr/lib/*/libhakmem* /usr/share/hakmem \
    /usr/libexec/hakmem /usr/include/hakmem /usr/lib/*/cmake/hakmem /usr/lib64/cmake/hakmem
do
    test ! -e "$left" || { echo "$left is still there"; exit 1; }
done
"""

PYTHON_PROGRAM = r"""
cat > /tmp/app.py <<'PYTHON'
lines = sorted(str(number) for number in range(100000))
assert "/libhakmem.so.0" in open("/proc/self/maps").read()
print(len(lines))
PYTHON
PATH=/environment/bin:$PATH
test "$(hakmem run -- python /tmp/app.py)" = 100000
test "$(python -m hakmem run -- python3 /tmp/app.py)" = 100000
library=$(python -c 'import hakmem; print(hakmem.library())')
test "$(LD_PRELOAD=$library python /tmp/app.py)" = 100000
"""


def filled(script, **variables):
    """The script with the version put in, and variables set before it."""
    lines = ["\n%s='%s'" % pair for pair in variables.items()]
    return "".join(lines) + script.replace("@VERSION@", project.version())


def documented(heading):
    """The commands of a section of the page, for who is root already."""
    section = PAGE.read_text().partition("\n## %s\n" % heading)[2].partition("\n## ")[0]
    commands = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    if len(commands) != 2:
        raise project.Failure("%s: two commands under %r, found %s" % (PAGE, heading, commands))
    return "\n".join(["cd /packages", *(word.replace("sudo ", "") for word in commands)])


def debian(release, packages, build):
    """Two of the packages in a bare Debian, from the installation to a comparison, and away."""
    root = roots.Root(release, build)
    root.copy(packages)
    root.run("echo 'APT::Get::Assume-Yes \"true\";' > /etc/apt/apt.conf.d/yes")
    begin = time.monotonic()
    root.run(documented("Debian, Ubuntu"))
    seconds = time.monotonic() - begin
    if seconds > FIRST_COMPARISON_SECONDS:
        raise project.Failure("%.0f s from the package to the first comparison" % seconds)
    root.run(filled(USE, hakmem="hakmem") + filled(PRELOAD, library="libhakmem.so.0"))
    root.run("apt-get purge -y hakmem libhakmem0" + REMOVED)
    root.remove()
    return "%.0f s to the first comparison" % seconds


def debian_development(root, packages):
    """Programs built with the development package, in the system that has compilers."""
    root.copy(packages)
    root.run("dpkg -i /packages/libhakmem0_*.deb /packages/libhakmem-dev_*.deb" + filled(BUILD))
    root.run("dpkg -P libhakmem-dev libhakmem0" + REMOVED)
    return "pkg-config, CMake, shared, static"


def musl(root, packages):
    """The library for musl, unpacked over the tarball, in the system that has musl's compiler."""
    root.copy(packages)
    root.run(filled(MUSL))
    return "hakmem run"


def lint(root, packages):
    """Debian's own checker: no error and no warning."""
    root.copy(packages, "/lint")
    root.run("lintian --allow-root --fail-on error,warning /lint/*.deb")
    return "no error, no warning"


def arm64(root, packages, build):
    """The files of the packages in a Debian of that processor, which qemu runs."""
    target = roots.Root("arm64", build)
    root.copy(packages, "/arm64-packages")
    run = "qemu-aarch64 -L /arm64"
    said = root.run(filled(r"""
for package in /arm64-packages/*.deb; do
    test "$(dpkg-deb -f "$package" Architecture)" = arm64
    dpkg-deb -x "$package" /arm64
done
$run /arm64/usr/bin/hakmem --version | grep -q 'hakmem @VERSION@'
seq 100000 > /tmp/lines
$run -E HAKMEM_STATS=1 -E LD_PRELOAD=/usr/lib/aarch64-linux-gnu/libhakmem.so.0 \
    /arm64/usr/bin/sort -o /dev/null /tmp/lines 2>&1
""", run=run), binds=[(target.directory, "/arm64")])
    if "hakmem %s statistics of process" % project.version() not in said:
        raise project.Failure("hakmem did not serve sort on 64-bit ARM: " + said)
    target.remove()
    return "sort under qemu"


def rpm(packages, build):
    """RPM's own check of what packages need, then as for Debian."""
    root = roots.Root("rpm", build)
    root.copy(packages)
    root.run(STAND_IN + "rpm --initdb\nrpm -i /tmp/stand-in/noarch/debian-12-1.noarch.rpm")
    root.run(documented("RPM: Fedora, RHEL, openSUSE"))
    root.run("rpm -i /packages/hakmem-devel-*.rpm\nrpm -V hakmem hakmem-libs hakmem-devel")
    root.run(filled(USE, hakmem="hakmem") + filled(PRELOAD, library="/usr/lib64/libhakmem.so.0"))
    root.run("rpm -e hakmem hakmem-devel hakmem-libs" + REMOVED)
    root.remove()
    return "installed, verified, used, removed"


def tarball(package, build):
    """Unpacked at one place, and moved to another."""
    root = roots.Root("bookworm", build)
    root.copy([package])
    root.run(documented("Anywhere, without root"))
    root.run("mv /packages/%s /srv/moved" % package.name[:-len(".tar.gz")]
             + filled(USE, hakmem="/srv/moved/bin/hakmem")
             + filled(PRELOAD, library="/srv/moved/lib/libhakmem.so"))
    root.remove()
    return "unpacked, moved, used"


def wheel(package, build):
    """Installed by pip into an environment, without an index."""
    root = roots.Root("trixie", build)
    root.copy([package])
    root.run("python3 -m venv /environment\necho 'print(1)' > /packages/app.py\n"
             "PATH=/environment/bin:$PATH\n" + documented("Python"))
    root.run(PYTHON_PROGRAM + filled(USE, hakmem="/environment/bin/hakmem"))
    root.run("/environment/bin/pip uninstall --quiet -y hakmem\n"
             "test ! -e /environment/lib/python3*/site-packages/hakmem")
    root.remove()
    return "pip, run, compare"
