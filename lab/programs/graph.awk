# Prints a directed graph in Graphviz' language: a tree with some edges across.
#
#     awk -v nodes=N -f graph.awk
BEGIN {
    print "digraph { node [shape=box]"
    for (node = 2; node <= nodes; node++) {
        printf "n%d -> n%d [label=\"%d\"]\n", int(node / 3) + 1, node, node * 7919 % 1009
        if (node % 11 == 0) {
            printf "n%d -> n%d\n", node, node * 31 % nodes + 1
        }
    }
    print "}"
}
