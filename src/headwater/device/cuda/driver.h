#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace headwater::cuda {

// The driver's own types and numbers, which are part of its stable binary interface.
using Result = int;
using DeviceHandle = int;
using Context = struct ContextTag*;
using StreamHandle = struct StreamHandleTag*;
using EventHandle = struct EventHandleTag*;
using ModuleHandle = struct ModuleHandleTag*;
using FunctionHandle = struct FunctionHandleTag*;
using DevicePointer = std::uint64_t;

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr unsigned kHostRegisterDeviceMap = 2;  // kernels may use it
inline constexpr unsigned kHostRegisterFlags = kHostRegisterPortable | kHostRegisterDeviceMap;
inline constexpr int kAttributeHostPointerWorks = 91;  // for registered memory
inline constexpr int kAttributeMemoryPoolsSupported = 115;

/// The driver functions Headwater calls. Plain table, valid until the process ends.
struct Driver {
  Result (*init)(unsigned flags);
  Result (*get_error_string)(Result result, const char** text);
  Result (*device_get)(DeviceHandle* device, int ordinal);
  Result (*device_get_count)(int* count);
  Result (*device_get_name)(char* name, int length, DeviceHandle device);
  Result (*device_get_attribute)(int* value, int attribute, DeviceHandle device);
  Result (*device_total_mem)(std::size_t* bytes, DeviceHandle device);
  Result (*primary_context_retain)(Context* context, DeviceHandle device);
  Result (*primary_context_release)(DeviceHandle device);
  Result (*context_get_current)(Context* context);
  Result (*context_set_current)(Context context);
  Result (*mem_get_info)(std::size_t* free_bytes, std::size_t* total_bytes);
  Result (*mem_alloc)(DevicePointer* data, std::size_t bytes);
  Result (*mem_free)(DevicePointer data);
  Result (*memcpy_to_device)(DevicePointer target,
                             const void* source,
                             std::size_t bytes,
                             StreamHandle stream);
  Result (*memcpy_to_host)(void* target,
                           DevicePointer source,
                           std::size_t bytes,
                           StreamHandle stream);
  Result (*mem_host_register)(void* data, std::size_t bytes, unsigned flags);
  Result (*mem_host_unregister)(void* data);
  Result (*context_synchronize)();
  Result (*stream_create)(StreamHandle* stream, unsigned flags);
  Result (*stream_destroy)(StreamHandle stream);
  Result (*stream_synchronize)(StreamHandle stream);
  Result (*stream_wait_event)(StreamHandle stream, EventHandle event, unsigned flags);
  Result (*event_create)(EventHandle* event, unsigned flags);
  Result (*event_destroy)(EventHandle event);
  Result (*event_record)(EventHandle event, StreamHandle stream);
  Result (*event_query)(EventHandle event);
  Result (*event_synchronize)(EventHandle event);
  // optional: null where the driver has none
  Result (*event_elapsed_time)(float* milliseconds, EventHandle begin, EventHandle end);
  // optional, as above
  Result (*stream_create_with_priority)(StreamHandle* stream, unsigned flags, int priority);
  Result (*stream_priority_range)(int* least, int* greatest);
  Result (*module_load_data)(ModuleHandle* module, const void* image);
  Result (*module_unload)(ModuleHandle module);
  Result (*module_get_function)(FunctionHandle* function, ModuleHandle module, const char* name);
  Result (*launch_kernel)(FunctionHandle function,
                          unsigned grid_x,
                          unsigned grid_y,
                          unsigned grid_z,
                          unsigned block_x,
                          unsigned block_y,
                          unsigned block_z,
                          unsigned shared_bytes,
                          StreamHandle stream,
                          void** arguments,
                          void** extra);
  // optional: null in drivers older than 11.2
  Result (*mem_alloc_async)(DevicePointer* data, std::size_t bytes, StreamHandle stream);
  Result (*mem_free_async)(DevicePointer data, StreamHandle stream);
};

/// Empty when this machine has no driver, or one that lacks a function above.
std::optional<Driver> try_load_driver();

/// Zero when there is a driver but no device, or when the driver does not start.
int num_devices(const Driver& driver);

/// Throws DeviceError with the driver's own text. `call` names the function.
void check(const Driver& driver, Result result, const char* call);

}  // namespace headwater::cuda
