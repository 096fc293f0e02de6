# symbols.gdb: gdb reads all debug information of a program, and tells what is in it.
set pagination off
set confirm off
set width 0
maint expand-symtabs
info types vector
info functions map
info variables
info types registry
ptype registry<0>
