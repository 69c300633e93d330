#pragma once

#include <cstddef>
#include <string>

#include "hearth/collective/operation/loaded_library.h"

namespace hearth::collective::cuda {

struct Context;
struct Stream;
struct Event;

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kNotReady = 600;

inline constexpr unsigned kNonBlockingStream = 1;  // does not wait for the default stream
inline constexpr unsigned kNoTiming = 2;           // flag of an event: records no time

// The functions of the CUDA driver that the collective uses, loaded at run time like UCX
// (ucx_api.h), so that one binary runs with and without GPUs. The driver library has the same name
// in every version of CUDA, and the CUDA runtime uses the driver's streams.
struct Api {
  Result (*init)(unsigned flags);
  Result (*device_get)(int* device, int ordinal);
  Result (*bus_id)(char* text, int size, int device);
  Result (*retain)(Context** context, int device);  // the primary context, which the runtime uses
  Result (*release)(int device);
  Result (*get_current)(Context** context);
  Result (*set_current)(Context* context);
  Result (*stream_create)(Stream** stream, unsigned flags);
  Result (*stream_destroy)(Stream* stream);
  Result (*stream_query)(Stream* stream);
  Result (*stream_wait)(Stream* stream, Event* event, unsigned flags);
  Result (*event_create)(Event** event, unsigned flags);
  Result (*event_destroy)(Event* event);
  Result (*event_record)(Event* event, Stream* stream);
  Result (*launch_host)(Stream* stream, void (*function)(void*), void* data);
  Result (*error_string)(Result result, const char** text);
};

// Loads libcuda.so.1 once per process; any thread.
const Loaded<Api>& Library();

// Throws kUnavailable if `result` is an error. The message is "CUDA cannot `what`: ...".
void Check(const Api& api, Result result, const char* what);

}  // namespace hearth::collective::cuda
