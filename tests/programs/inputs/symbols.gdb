# symbols.gdb: reads all debug information of a C++ program, then stops it, looks around, goes on.
set pagination off
set confirm off
set width 0
info types vector
info functions fill
info variables
break fill
run
bt
info args
finish
ptype shapes
tbreak 49
continue
print index
# The message at the end holds the process id.
set logging redirect on
set logging file /dev/null
set logging enabled on
continue
quit
