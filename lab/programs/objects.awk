# Prints an assembler source with `count` functions, each in a section of its own, that call those
# of other sources, with a string and a table each. `unit` is the number of the source.
#
#     awk -v unit=N -v units=N -v count=N -f objects.awk
BEGIN {
    for (i = 0; i < count; i++) {
        name = "function_of_unit_" unit "_with_number_" i
        other = "function_of_unit_" (unit * 7 + i) % units "_with_number_" (i * 31 + 1) % count
        printf ".section .text.%s,\"ax\",@progbits\n.globl %s\n.type %s,@function\n", name, name, name
        printf "%s:\n.cfi_startproc\ncall %s\nlea .L%d(%%rip), %%rax\nlea table_%s(%%rip), %%rdx\nret\n",
            name, other, i, name
        printf ".cfi_endproc\n.size %s, .-%s\n", name, name
        printf ".section .rodata.str1.1,\"aMS\",@progbits,1\n.L%d: .string \"text %d\"\n", i, i * 17 % 997
        printf ".section .data.rel.table_%s,\"aw\",@progbits\n.globl table_%s\n", name, name
        printf "table_%s: .quad %s, %s, %d\n", name, name, other, i
    }
    if (unit == 0) {
        print ".section .text.start,\"ax\",@progbits\n.globl _start\n_start:"
        for (i = 0; i < units; i++) {
            print "call function_of_unit_" i "_with_number_0"
        }
    }
}
