"""Recipe for Conan 2: ../README.md says what was tried. `conan create packaging/recipes/conan` at
the top of the tree builds the tree that it lies in."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

TOP = os.path.join("..", "..", "..")
SOURCES = ("CMakeLists.txt", "Cargo.toml", "LICENSE", "cmake/*", "core/*", "include/*", "lab/*",
           "crates/*", "packaging/*", "tests/*")


class HakmemConan(ConanFile):
    """The library; the command is not part of it."""
    name = "hakmem"
    description = "Replacement for malloc that shows where memory is"
    license = "MIT"
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):
        manifest = load(self, os.path.join(self.recipe_folder, TOP, "Cargo.toml"))
        self.version = re.search(r'^version = "(.+)"$', manifest, re.M)[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, os.path.join(self.recipe_folder, TOP), self.export_sources_folder)

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("hakmem is for Linux on x86-64 and AArch64")

    def layout(self):
        cmake_layout(self, generator="Ninja")

    def generate(self):
        CMakeToolchain(self, generator="Ninja").generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="library")

    def package(self):
        cmake = CMake(self)
        cmake.install(component="library")
        cmake.install(component="development")
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package's own files for CMake know its three targets.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "hakmem")]
        self.cpp_info.libs = ["hakmem"]
