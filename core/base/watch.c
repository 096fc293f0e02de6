/* The variables that trace/ and the allocator share, with the folder or without: see trace/trace.h.
 */
#include "trace/trace.h"

const struct trace *trace;
uint8_t trace_round;
struct site **site_chains;
struct attach attachment;
