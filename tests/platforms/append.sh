#!/bin/sh
# append.sh OPTION COMPILER ARGUMENT...: runs the compiler with the option behind all others. The
# build sets the level of optimisation file by file; the last one on the command line holds.
option=$1
shift
exec "$@" "$option"
