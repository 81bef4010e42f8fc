// Proves the protections of this machine by trying to break each of them.
#pragma once

// Prints one JSON object a line on standard output: {"name","holds","detail","remedy"} for a protection, and
// {"name","fact":true,"detail"} for a fact. Returns 0 where all hold, 1 otherwise.
int probe_main(void);
