#!/bin/sh
# java.sh INPUT ROUNDS: javac compiles the program Crew, and java runs it with 4 threads. Prints the
# checksum of the class and what the program prints.
set -eu
input=$1
rounds=$2

rm -rf classes
javac -d classes "$input/Crew.java"
cksum classes/Crew.class
java -cp classes -Xmx256m Crew 4 "$rounds"
