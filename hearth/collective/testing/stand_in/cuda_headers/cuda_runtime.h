// Definitions that nccl.h needs from the CUDA headers, which the wheels contain only in part.
#pragma once

#define CUDART_VERSION 0

typedef struct CUstream_st* cudaStream_t;
