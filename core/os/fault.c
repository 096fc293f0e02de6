/* See fault.h. */
#include "os/fault.h"

bool (*fault_hook)(enum os_call call);
