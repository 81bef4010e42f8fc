// What one core can do at most: the best of several ways to copy memory and of several vector widths of fused
// multiply-add.
#pragma once

// Runs on the given core (-1: anywhere); takes about 0.3 s. Bytes (read plus written) and operations a
// second.
void ceiling_measure(int cpu, double *copy_bytes_s, double *fma_flops_s);
