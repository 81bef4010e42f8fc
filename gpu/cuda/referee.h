// The judge_ops of the GPU, and the loop that answers requests with them. Returns the exit status.
#pragma once

int cuda_referee(void);
