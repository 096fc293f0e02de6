# Prints a satisfiability problem: random clauses of three literals, the same on every machine.
#
#     awk -v variables=N -f sat.awk
function random(below) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % below
}

BEGIN {
    state = 20
    clauses = int(variables * 4.2)
    print "p cnf", variables, clauses
    for (i = 0; i < clauses; i++) {
        line = ""
        for (j = 0; j < 3; j++) {
            line = line (random(2) ? "-" : "") (1 + random(variables)) " "
        }
        print line "0"
    }
}
