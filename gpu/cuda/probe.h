// What this machine has for CUDA: one JSON object a line, as the CPU worker's probe prints them.
#pragma once

int cuda_probe(void);
