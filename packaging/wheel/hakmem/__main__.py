"""python -m hakmem: the command."""

from hakmem import main

main()
