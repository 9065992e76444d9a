#include "cache_lock.h"
#include "headwater/torch.h"
#include "interceptor.h"
#include "out_of_memory.h"
#include "session_state.h"
#include "session_switch.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/graph_task.h>

#include <utility>

namespace headwater {
namespace adapter {

std::atomic<ThrowOutOfMemory> throw_out_of_memory{[](const OutOfMemory& error) {
  throw OutOfBudget({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, error.what());
}};

namespace {

bool device_is_there(c10::Device device) {
  return c10::impl::hasDeviceGuardImpl(device.type()) &&
         device.index() < c10::impl::VirtualGuardImpl(device.type()).deviceCount();
}

c10::Device default_device() {
  return device_is_there(c10::Device(c10::kCUDA, 0)) ? c10::Device(c10::kCUDA)
                                                     : c10::Device(c10::kCPU);
}

c10::Device parse_device(const std::string& text) {
  try {
    return text.empty() ? default_device() : c10::Device(text);
  } catch (const c10::Error&) {
    throw InvalidArgument("Device is not one PyTorch knows; use \"cuda\", \"cuda:1\" or \"cpu\": " +
                          text);
  }
}

/// Tensors name their CUDA device by number and the CPU by none: do the same.
c10::Device resolve_device(const std::string& text) {
  c10::Device device = parse_device(text);
  if (device.is_cpu()) {
    return c10::Device(c10::kCPU);
  }
  if (!device.is_cuda()) {
    throw InvalidArgument("Device is not supported; use \"cuda\" or \"cpu\": " + text);
  }
  if (!device_is_there(c10::Device(c10::kCUDA, std::max<c10::DeviceIndex>(device.index(), 0)))) {
    throw InvalidArgument("Device does not exist on this machine: " + device.str());
  }
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
}

}  // namespace
}  // namespace adapter

Session::Session(const SessionOptions& options) {
  if (torch::autograd::get_current_graph_task_id() != -1) {
    throw Error("Headwater cannot be switched on inside a backward pass. Do it before.");
  }
  const c10::Device device = adapter::resolve_device(options.device);
  Options core;
  core.budget = options.budget;
  core.host_budget = options.host_budget;
  core.disk = options.disk;
  core.disk_budget = options.disk_budget;
  core.min_tensor_bytes = options.min_tensor_bytes;
  core.log_level = options.log_level;
  core.standby = options.standby;
  core.recompute = options.recompute;
  state_ = std::make_shared<adapter::SessionState>(core, device);
  adapter::start_intercepting(state_);
}

Session::~Session() {
  try {
    close();
  } catch (const std::exception& error) {
    state_->runtime().log().write(LogLevel::kError, error.what());
  }
}

void Session::close() {
  if (adapter::active_session() != state_) {
    return;
  }
  if (torch::autograd::get_current_graph_task_id() != -1) {
    throw Error("Headwater cannot be switched off inside a backward pass. Do it after.");
  }
  adapter::stop_intercepting();
}

void Session::set_budget(std::size_t bytes) {
  const adapter::NoStandby managed(*state_);
  if (!managed.ended()) {
    throw Error("The budget cannot be changed while an operator runs. Do it after.");
  }
  state_->set_budget(bytes);
}

SessionStats Session::stats() const {
  return state_->stats();
}

void Session::reset_peak_stats() {
  state_->runtime().reset_peak();
  state_->standby().reset_peak();
}

Hold Session::hold(const at::Tensor& tensor) {
  return Hold(state_, state_->pin(tensor));
}

void Session::end_step() {
  state_->end_step();
}

std::size_t Session::device_total_bytes(const std::string& device) {
  return adapter::machine_for(adapter::resolve_device(device)).device->info().total_bytes;
}

void Session::attach_thread() {
  adapter::attach_thread();
}

}  // namespace headwater
