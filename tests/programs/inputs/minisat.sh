#!/bin/sh
# minisat.sh PROBLEM: prints the verdict and the model. minisat says by its exit status whether the
# problem can be satisfied: 10 yes, 20 no; anything else is a failure.
set -eu

status=0
minisat -verb=0 "$1" model > /dev/null || status=$?
echo "status $status"
cat model
[ "$status" -eq 10 ] || [ "$status" -eq 20 ]
