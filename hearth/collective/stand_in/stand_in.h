// What tests ask of the libraries that stand in for CUDA's driver and NCCL on machines without a
// GPU: memory that only they can reach, and failures on demand. Found by dlsym in the libraries
// that the collective has loaded.
#pragma once

#include <cstddef>

extern "C" {

// In libcuda.so.1.
// Memory of the device, zeroed; its address is none for the host. Freed by free_memory.
void* hearth_stand_in_allocate(size_t bytes);
void hearth_stand_in_free(void* memory);
// Where the host sees it.
void* hearth_stand_in_host(const void* memory);
// Runs function(data) in the order of the stream's work, as a kernel would run.
void hearth_stand_in_launch(void* stream, void (*function)(void*), void* data);
int hearth_stand_in_streams();  // that live

// In libnccl.so.2. Each holds until the next call for that rank, or until hearth_stand_in_heal.
void hearth_stand_in_refuse(int rank, int result);  // what calls return
void hearth_stand_in_hang(int rank);                // kernels that begin never come to the others
void hearth_stand_in_break(int rank, int result);   // what NCCL's threads come to, meanwhile
void hearth_stand_in_heal();
int hearth_stand_in_communicators();  // that live

}  // extern "C"
