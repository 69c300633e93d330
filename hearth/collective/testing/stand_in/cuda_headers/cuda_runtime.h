// Definitions that nccl.h needs from the CUDA headers, because the wheels contain only some of the
// headers.
#pragma once

#define CUDART_VERSION 0

typedef struct CUstream_st* cudaStream_t;
