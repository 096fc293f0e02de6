# Recipe for Nix: ../README.md says what was tried. `nix-build` in this directory builds the tree that
# it lies in.
{ pkgs ? import <nixpkgs> { } }:

let
  top = ../../..;
  version = (builtins.fromTOML (builtins.readFile (top + "/Cargo.toml"))).workspace.package.version;
  isSource = path: _type: !(builtins.elem (baseNameOf path) [ "build" ".git" ]);
in
pkgs.stdenv.mkDerivation {
  pname = "libhakmem";
  inherit version;
  src = builtins.filterSource isSource top;
  nativeBuildInputs = [ pkgs.cmake pkgs.ninja ];
  # Paths of installed files are found from where they lie.
  cmakeFlags = [ "-DCMAKE_INSTALL_LIBDIR=lib" "-DCMAKE_INSTALL_INCLUDEDIR=include" ];
  ninjaFlags = [ "library" ];
  installPhase = ''
    runHook preInstall
    cmake --install . --prefix $out --component library
    cmake --install . --prefix $out --component development
    runHook postInstall
  '';
  # The archive and the object are to be linked into programs.
  dontStrip = true;
  meta = {
    description = "Replacement for malloc that shows where memory is";
    license = pkgs.lib.licenses.mit;
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
