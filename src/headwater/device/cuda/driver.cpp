#include "headwater/device/cuda/driver.h"

#include "headwater/base/error.h"

#include <dlfcn.h>
#include <string>

namespace headwater::cuda {
namespace {

template <class Function>
bool look_up(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

bool look_up_devices(void* library, Driver& driver) {
  return look_up(library, "cuInit", driver.init) &&
         look_up(library, "cuGetErrorString", driver.get_error_string) &&
         look_up(library, "cuDeviceGet", driver.device_get) &&
         look_up(library, "cuDeviceGetCount", driver.device_get_count) &&
         look_up(library, "cuDeviceGetName", driver.device_get_name) &&
         look_up(library, "cuDeviceGetAttribute", driver.device_get_attribute) &&
         look_up(library, "cuDeviceTotalMem_v2", driver.device_total_mem) &&
         look_up(library, "cuDevicePrimaryCtxRetain", driver.primary_context_retain) &&
         look_up(library, "cuDevicePrimaryCtxRelease_v2", driver.primary_context_release) &&
         look_up(library, "cuCtxGetCurrent", driver.context_get_current) &&
         look_up(library, "cuCtxSetCurrent", driver.context_set_current);
}

bool look_up_memory(void* library, Driver& driver) {
  look_up(library, "cuMemAllocAsync", driver.mem_alloc_async);
  look_up(library, "cuMemFreeAsync", driver.mem_free_async);
  return look_up(library, "cuMemGetInfo_v2", driver.mem_get_info) &&
         look_up(library, "cuMemAlloc_v2", driver.mem_alloc) &&
         look_up(library, "cuMemFree_v2", driver.mem_free) &&
         look_up(library, "cuMemcpyHtoDAsync_v2", driver.memcpy_to_device) &&
         look_up(library, "cuMemcpyDtoHAsync_v2", driver.memcpy_to_host) &&
         look_up(library, "cuMemHostRegister_v2", driver.mem_host_register) &&
         look_up(library, "cuMemHostUnregister", driver.mem_host_unregister) &&
         look_up(library, "cuCtxSynchronize", driver.context_synchronize);
}

void look_up_kernels(void* library, Driver& driver) {
  look_up(library, "cuModuleLoadData", driver.module_load_data);
  look_up(library, "cuModuleUnload", driver.module_unload);
  look_up(library, "cuModuleGetFunction", driver.module_get_function);
  look_up(library, "cuLaunchKernel", driver.launch_kernel);
}

bool look_up_streams(void* library, Driver& driver) {
  if (!look_up(library, "cuEventElapsedTime_v2", driver.event_elapsed_time)) {
    look_up(library, "cuEventElapsedTime", driver.event_elapsed_time);
  }
  look_up(library, "cuStreamCreateWithPriority", driver.stream_create_with_priority);
  look_up(library, "cuCtxGetStreamPriorityRange", driver.stream_priority_range);
  return look_up(library, "cuStreamCreate", driver.stream_create) &&
         look_up(library, "cuStreamDestroy_v2", driver.stream_destroy) &&
         look_up(library, "cuStreamSynchronize", driver.stream_synchronize) &&
         look_up(library, "cuStreamWaitEvent", driver.stream_wait_event) &&
         look_up(library, "cuEventCreate", driver.event_create) &&
         look_up(library, "cuEventDestroy_v2", driver.event_destroy) &&
         look_up(library, "cuEventRecord", driver.event_record) &&
         look_up(library, "cuEventQuery", driver.event_query) &&
         look_up(library, "cuEventSynchronize", driver.event_synchronize);
}

}  // namespace

std::optional<Driver> try_load_driver() {
  // Never closed: the driver does not survive being unloaded, and a framework may share it.
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return std::nullopt;
  }
  Driver driver{};
  look_up_kernels(library, driver);
  const bool complete = look_up_devices(library, driver) && look_up_memory(library, driver) &&
                        look_up_streams(library, driver);
  return complete ? std::optional(driver) : std::nullopt;
}

int num_devices(const Driver& driver) {
  int count = 0;
  const bool answered = driver.init(0) == kSuccess && driver.device_get_count(&count) == kSuccess;
  return answered ? count : 0;
}

void check(const Driver& driver, Result result, const char* call) {
  if (result == kSuccess) {
    return;
  }
  const char* text = nullptr;
  driver.get_error_string(result, &text);
  throw DeviceError("CUDA call failed: " + std::string(call) + ": " +
                    (text == nullptr ? "unknown error" : text) + " (code " +
                    std::to_string(result) + ")");
}

}  // namespace headwater::cuda
