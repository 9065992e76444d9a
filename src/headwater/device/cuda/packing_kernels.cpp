#include "headwater/device/cuda/packing_kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headwater::cuda {
namespace {

constexpr std::uint64_t kThreads = 256;    // a block
constexpr std::uint64_t kMostBlocks = 64;  // a piece takes microseconds, few beside its copy
constexpr std::uint64_t kNumbersATurn = 4;

// Every thread takes four numbers a turn; the first few take what is left over, one each. Addresses
// are generic: those of pinned host memory are valid on the GPU.
constexpr std::string_view kHead = R"(
.version 6.3
.target sm_75
.address_size 64
)";
constexpr std::string_view kBegin = R"((.param .u64 to, .param .u64 from, .param .u64 count)
{
  .reg .pred %p;
  .reg .b16 %h<4>;
  .reg .b32 %r<4>;
  .reg .b64 %d<16>;
  ld.param.u64 %d0, [to];
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [count];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mul.wide.u32 %d3, %r0, %r1;
  cvt.u64.u32 %d4, %r2;
  add.u64 %d3, %d3, %d4;
  mul.wide.u32 %d4, %r3, %r1;
  shr.u64 %d5, %d2, 2;
  mov.u64 %d6, %d3;
turn:
  setp.ge.u64 %p, %d6, %d5;
  @%p bra left_over;
  shl.b64 %d7, %d6, 5;
  shl.b64 %d12, %d6, 3;
)";
// The turn is %d6: %d7 bytes into the numbers of 64 bits, %d12 into those of 16.
constexpr std::string_view kPackFour = R"(
  add.u64 %d7, %d1, %d7;
  add.u64 %d12, %d0, %d12;
  ld.v2.u64 {%d8, %d9}, [%d7];
  ld.v2.u64 {%d10, %d11}, [%d7+16];
  cvt.u16.u64 %h0, %d8;
  cvt.u16.u64 %h1, %d9;
  cvt.u16.u64 %h2, %d10;
  cvt.u16.u64 %h3, %d11;
  st.v4.u16 [%d12], {%h0, %h1, %h2, %h3};
)";
constexpr std::string_view kUnpackFour = R"(
  add.u64 %d7, %d0, %d7;
  add.u64 %d12, %d1, %d12;
  ld.v4.u16 {%h0, %h1, %h2, %h3}, [%d12];
  cvt.u64.u16 %d8, %h0;
  cvt.u64.u16 %d9, %h1;
  cvt.u64.u16 %d10, %h2;
  cvt.u64.u16 %d11, %h3;
  st.v2.u64 [%d7], {%d8, %d9};
  st.v2.u64 [%d7+16], {%d10, %d11};
)";
constexpr std::string_view kBetween = R"(
  add.u64 %d6, %d6, %d4;
  bra turn;
left_over:
  shl.b64 %d5, %d5, 2;
  add.u64 %d5, %d5, %d3;
  setp.ge.u64 %p, %d5, %d2;
  @%p bra end;
  shl.b64 %d7, %d5, 3;
  shl.b64 %d12, %d5, 1;
)";
constexpr std::string_view kPackOne = R"(
  add.u64 %d7, %d1, %d7;
  add.u64 %d12, %d0, %d12;
  ld.u64 %d8, [%d7];
  cvt.u16.u64 %h0, %d8;
  st.u16 [%d12], %h0;
)";
constexpr std::string_view kUnpackOne = R"(
  add.u64 %d7, %d0, %d7;
  add.u64 %d12, %d1, %d12;
  ld.u16 %h0, [%d12];
  cvt.u64.u16 %d8, %h0;
  st.u64 [%d7], %d8;
)";
constexpr std::string_view kEnd = R"(
end:
  ret;
}
)";

std::string assembly() {
  std::string text(kHead);
  text.append(".visible .entry pack").append(kBegin).append(kPackFour).append(kBetween);
  text.append(kPackOne).append(kEnd);
  text.append(".visible .entry unpack").append(kBegin).append(kUnpackFour).append(kBetween);
  text.append(kUnpackOne).append(kEnd);
  return text;
}

bool reaches_host_addresses(const PrimaryContext& context) {
  int same = 0;
  const Driver& driver = context.driver();
  return driver.device_get_attribute(&same, kAttributeHostPointerWorks, context.device()) ==
             kSuccess &&
         same != 0;
}

bool has_kernels(const Driver& driver) {
  return driver.module_load_data != nullptr && driver.module_get_function != nullptr &&
         driver.module_unload != nullptr && driver.launch_kernel != nullptr;
}

}  // namespace

PackingKernels::PackingKernels(const PrimaryContext& context) : context_(context) {
  const Driver& driver = context_.driver();
  if (!has_kernels(driver) || !reaches_host_addresses(context_)) {
    return;
  }
  const CurrentContext current(context_);
  FunctionHandle pack = nullptr;
  FunctionHandle unpack = nullptr;
  if (driver.module_load_data(&module_, assembly().c_str()) == kSuccess &&
      driver.module_get_function(&pack, module_, "pack") == kSuccess &&
      driver.module_get_function(&unpack, module_, "unpack") == kSuccess) {
    pack_ = pack;
    unpack_ = unpack;
  }
}

PackingKernels::~PackingKernels() {
  const CurrentContext current(context_);
  for (const auto& [stream, stopover] : stopovers_) {
    context_.driver().mem_free(stopover);
  }
  if (module_ != nullptr) {
    context_.driver().module_unload(module_);
  }
}

void PackingKernels::enqueue(const Copy& copy, StreamHandle stream) {
  const bool down = copy.direction == Direction::kToHost;
  const std::size_t factor = packing_factor(copy.packing);
  const MutexLock lock(mutex_);
  const DevicePointer stopover = stopover_of(stream);
  const std::size_t most = stopover == 0 ? copy.bytes : kStopoverBytes * factor;
  for (std::size_t done = 0; done < copy.bytes; done += most) {
    Copy piece = copy;
    piece.bytes = std::min(most, copy.bytes - done);
    piece.target = static_cast<std::byte*>(copy.target) + (down ? done / factor : done);
    piece.source = static_cast<const std::byte*>(copy.source) + (down ? done : done / factor);
    enqueue_piece(piece, stopover, stream);
  }
}

DevicePointer PackingKernels::stopover_of(StreamHandle stream) {
  const auto [found, added] = stopovers_.try_emplace(stream, 0);
  if (added && context_.driver().mem_alloc(&found->second, kStopoverBytes) != kSuccess) {
    found->second = 0;
  }
  return found->second;
}

void PackingKernels::enqueue_piece(const Copy& piece,
                                   DevicePointer stopover,
                                   StreamHandle stream) const {
  const Driver& driver = context_.driver();
  const auto target = reinterpret_cast<std::uintptr_t>(piece.target);
  const auto source = reinterpret_cast<std::uintptr_t>(piece.source);
  const std::uint64_t count = piece.bytes / sizeof(std::int64_t);
  const std::size_t packed = piece.bytes / packing_factor(piece.packing);
  if (piece.direction == Direction::kToHost) {
    launch(pack_, stopover == 0 ? target : stopover, source, count, stream);
    if (stopover != 0) {
      check(driver,
            driver.memcpy_to_host(piece.target, stopover, packed, stream),
            "cuMemcpyDtoHAsync");
    }
    return;
  }
  if (stopover != 0) {
    check(driver,
          driver.memcpy_to_device(stopover, piece.source, packed, stream),
          "cuMemcpyHtoDAsync");
  }
  launch(unpack_, target, stopover == 0 ? source : stopover, count, stream);
}

void PackingKernels::launch(FunctionHandle kernel,
                            std::uint64_t target,
                            std::uint64_t source,
                            std::uint64_t count,
                            StreamHandle stream) const {
  std::array<void*, 3> arguments{&target, &source, &count};
  const std::uint64_t wanted = count / kNumbersATurn / kThreads + 1;
  check(context_.driver(),
        context_.driver().launch_kernel(kernel,
                                        static_cast<unsigned>(std::min(wanted, kMostBlocks)),
                                        1,
                                        1,
                                        static_cast<unsigned>(kThreads),
                                        1,
                                        1,
                                        0,
                                        stream,
                                        arguments.data(),
                                        nullptr),
        "cuLaunchKernel");
}

}  // namespace headwater::cuda
