// Test controls of the stand-ins for the CUDA driver and NCCL on machines without a GPU: memory
// that only the stand-ins can access, and injected failures. Tests find these functions with dlsym
// in the libraries that the collective has loaded.
#pragma once

#include <cstddef>

extern "C" {

// In libcuda.so.1. Allocates zeroed device memory; the address is invalid on the host. Freed by
// hearth_stand_in_free.
void* hearth_stand_in_allocate(size_t bytes);
void hearth_stand_in_free(void* memory);
// Returns the host address of device memory.
void* hearth_stand_in_host(const void* memory);
// Runs function(data) in stream order, as a kernel would run.
void hearth_stand_in_launch(void* stream, void (*function)(void*), void* data);
int hearth_stand_in_streams();  // live streams

// In libnccl.so.2. Each setting stays in effect until the next call for that rank or
// hearth_stand_in_heal.
void hearth_stand_in_refuse(int rank, int result);  // result of later calls
void hearth_stand_in_hang(int rank);                // later kernels never complete
void hearth_stand_in_break(int rank, int result);   // asynchronous error of NCCL's threads
void hearth_stand_in_heal();
int hearth_stand_in_communicators();  // live communicators

}  // extern "C"
