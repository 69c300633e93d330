// What nccl.h takes from CUDA's header, which the wheels bring without the files it includes.
#pragma once

#define CUDART_VERSION 0

typedef struct CUstream_st* cudaStream_t;
