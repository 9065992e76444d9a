#include "op_traits.h"

#include "exactness.h"
#include "headwater/base/check.h"
#include "serial.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/function_schema.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

namespace headwater::adapter {
namespace {

using c10::DispatchKey;

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// Whether values of this type can carry tensors or storages.
bool carries_tensors(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::StorageType:
    case c10::TypeKind::AnyType:
      return true;
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::ListType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::DictType:
      return std::any_of(
          type->containedTypes().begin(), type->containedTypes().end(), carries_tensors);
    default:
      return false;
  }
}

/// The argument of which an operator looks at the shape only. The gradient of a loss over classes
/// is as large as what the loss was given, and needs none of it.
std::optional<std::uint16_t> shape_only_argument(const std::string& name) {
  static const std::unordered_map<std::string, std::uint16_t> kArguments{
      {"aten::empty_like", 0},
      {"aten::zeros_like", 0},
      {"aten::ones_like", 0},
      {"aten::full_like", 0},
      {"aten::rand_like", 0},
      {"aten::randn_like", 0},
      {"aten::randint_like", 0},
      {"aten::new_empty", 0},
      {"aten::new_empty_strided", 0},
      {"aten::new_full", 0},
      {"aten::new_zeros", 0},
      {"aten::new_ones", 0},
      {"aten::nll_loss_backward", 1},
      {"aten::nll_loss2d_backward", 1},
  };
  const auto found = kArguments.find(name);
  return found == kArguments.end() ? std::nullopt : std::optional(found->second);
}

bool is_view(const c10::FunctionSchema& schema) {
  const auto reads_alias = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && !argument.alias_info()->isWrite();
  };
  return !schema.returns().empty() &&
         std::all_of(schema.returns().begin(), schema.returns().end(), reads_alias) &&
         std::any_of(schema.arguments().begin(), schema.arguments().end(), reads_alias);
}

bool has_list(const c10::FunctionSchema& schema) {
  return std::any_of(
      schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
        return argument.type()->kind() == c10::TypeKind::ListType &&
               carries_tensors(argument.type());
      });
}

OpPath path_of(const c10::OperatorHandle& op, c10::DeviceType device) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  const DispatchKey backend = c10::computeDispatchKey(std::nullopt, c10::kStrided, device);
  if (name == "aten::record_stream") {
    return OpPath::kRecordStream;
  }
  // Marks in a profile stand where steps begin and end, and would be all that tells one from
  // another.
  if (starts_with(name, "profiler::")) {
    return OpPath::kPassThrough;
  }
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
      !op.hasKernelForDispatchKey(backend)) {
    return OpPath::kPassThrough;
  }
  if (is_view(schema)) {
    return OpPath::kView;
  }
  if (starts_with(name, "c10d::") || starts_with(name, "_c10d_functional")) {
    return OpPath::kCollective;
  }
  constexpr std::array<std::string_view, 3> kListOps{
      "aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_"};
  const bool list_op = std::any_of(
      kListOps.begin(), kListOps.end(), [&name](auto prefix) { return starts_with(name, prefix); });
  return list_op && has_list(schema) ? OpPath::kList : OpPath::kManage;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

AccessKind access_of(const c10::FunctionSchema& schema, std::uint16_t index) {
  const c10::Argument& argument = schema.arguments()[index];
  const bool marked = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  // Authors of operators outside PyTorch often leave the marks out.
  const bool foreign = !starts_with(schema.name(), "aten::");
  const auto entry = unmarked_writes().find(schema.name());
  const bool listed =
      entry != unmarked_writes().end() &&
      std::find(entry->second.begin(), entry->second.end(), index) != entry->second.end();
  return marked || foreign || listed ? AccessKind::kWrite : AccessKind::kRead;
}

std::optional<std::size_t> find_argument(const c10::FunctionSchema& schema, const char* name) {
  const std::optional<int> index = schema.argumentIndexWithName(name);
  return index ? std::optional(static_cast<std::size_t>(*index)) : std::nullopt;
}

/// Known of kernels that draw nothing where it is zero. Those of cuDNN are not among them.
std::optional<std::size_t> dropout_of(const c10::FunctionSchema& schema) {
  const bool known =
      contains(schema.name(), "flash_attention") || contains(schema.name(), "efficient_attention");
  return known ? find_argument(schema, "dropout_p") : std::nullopt;
}

/// A library of operators can be unloaded and another take its addresses.
bool describes(const OpTraits& traits, const c10::FunctionSchema& schema) {
  return traits.num_arguments == schema.arguments().size() &&
         traits.num_returns == schema.returns().size() && traits.name == schema.name() &&
         traits.overload == schema.overload_name();
}

/// One entry of a thread's direct-mapped memory of the table.
struct Remembered {
  const void* schema = nullptr;
  std::uint64_t serial = 0;
  const OpTraits* traits = nullptr;
};

}  // namespace

const std::map<std::string, std::vector<std::uint16_t>>& unmarked_writes() {
  static const std::map<std::string, std::vector<std::uint16_t>> kWrites{
      {"aten::native_batch_norm", {3, 4}},  // running mean and variance
      {"aten::cudnn_batch_norm", {3, 4}},
      {"aten::miopen_batch_norm", {3, 4}},
      {"aten::batch_norm_update_stats", {1, 2}},
      {"aten::batch_norm_gather_stats", {3, 4}},
      {"aten::batch_norm_gather_stats_with_counts", {3, 4}},
      {"aten::_cudnn_rnn", {15}},  // the state that dropout draws from
      {"aten::miopen_rnn", {13}},
      {"aten::_cudnn_rnn_backward", {20}},  // what forward has reserved for it
      {"aten::miopen_rnn_backward", {19}},
  };
  return kWrites;
}

bool needs_no_management(const c10::OperatorHandle& op) {
  const auto skips = [&op](c10::DeviceType device) {
    const OpPath path = path_of(op, device);
    return path == OpPath::kPassThrough || path == OpPath::kView;
  };
  return skips(c10::kCPU) && skips(c10::kCUDA);
}

Workspace workspace_of(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  const bool cell = contains(name, "_thnn_fused");  // one kernel, works in its results
  if (!cell &&
      (contains(name, "convolution") || contains(name, "_rnn") || contains(name, "lstm"))) {
    return Workspace::kUnknown;
  }
  constexpr std::array<std::string_view, 7> kProducts{"aten::mm",
                                                      "aten::addmm",
                                                      "aten::bmm",
                                                      "aten::baddbmm",
                                                      "aten::addbmm",
                                                      "aten::mv",
                                                      "aten::dot"};
  if (std::find(kProducts.begin(), kProducts.end(), name) != kProducts.end()) {
    return Workspace::kFirstTime;
  }
  return op.hasTag(at::Tag::pointwise) ? Workspace::kNone : Workspace::kLikeTensors;
}

const TensorArgument* OpTraits::find(std::uint16_t index) const {
  const auto is_this = [index](const TensorArgument& argument) { return argument.index == index; };
  const auto found = std::find_if(tensors.begin(), tensors.end(), is_this);
  return found == tensors.end() ? nullptr : &*found;
}

OpTraits make_traits(const c10::OperatorHandle& op, c10::DeviceType device) {
  const c10::FunctionSchema& schema = op.schema();
  OpTraits traits;
  traits.path = path_of(op, device);
  traits.workspace = workspace_of(op);
  traits.growth = growth_of(op);
  traits.name = schema.name();
  traits.overload = schema.overload_name();
  traits.num_arguments = schema.arguments().size();
  traits.num_returns = schema.returns().size();
  const std::optional<std::uint16_t> shape_only = shape_only_argument(traits.name);
  for (std::uint16_t i = 0; i < traits.num_arguments; ++i) {
    if (i != shape_only && carries_tensors(schema.arguments()[i].type())) {
      traits.tensors.push_back({i, access_of(schema, i)});
    }
  }
  const auto reads = [](const TensorArgument& argument) {
    return argument.access == AccessKind::kRead;
  };
  // Nobody knows what else operators of others do.
  traits.only_reads = traits.name.starts_with("aten::") &&
                      std::all_of(traits.tensors.begin(), traits.tensors.end(), reads);
  traits.seeded = op.hasTag(at::Tag::nondeterministic_seeded);
  traits.repeatable = traits.only_reads && !traits.seeded;
  traits.dropout = dropout_of(schema);
  traits.transposed = find_argument(schema, "transposed");
  traits.keeps_statistics = unmarked_writes().contains(traits.name);
  traits.replay = replay_of(op, traits);
  traits.inherits =
      traits.name.ends_with("_softmax") || traits.name.ends_with("_softmax_backward_data");
  traits.inherits =
      traits.inherits && traits.name.starts_with("aten::_") && traits.overload.empty();
  traits.finds_places = traits.name == "aten::max_pool2d_with_indices" && traits.overload.empty();
  return traits;
}

DirectNumber DirectNumber::next() {
  static std::atomic<std::size_t> taken{0};
  const std::size_t value = taken.fetch_add(1);
  HEADWATER_CHECK_LE(value + 1, kMost);
  return DirectNumber(value);
}

OpTable::OpTable(c10::DeviceType device) : device_(device), serial_(next_serial()) {}

const OpTraits& OpTable::traits(const c10::OperatorHandle& op) {
  constexpr std::size_t kRemembered = 1024;
  thread_local std::array<Remembered, kRemembered> remembered{};
  const c10::FunctionSchema& schema = op.schema();
  Remembered& entry = remembered[(reinterpret_cast<std::uintptr_t>(&schema) >> 6) % kRemembered];
  if (entry.schema != &schema || entry.serial != serial_ || !describes(*entry.traits, schema)) {
    entry = {&schema, serial_, &look_up(op)};
  }
  return *entry.traits;
}

const OpTraits& OpTable::remember(const c10::OperatorHandle& op, DirectNumber number) {
  const OpTraits& traits = look_up(op);
  direct_[number.value()].store(&traits, std::memory_order_release);
  return traits;
}

const OpTraits& OpTable::look_up(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const MutexLock lock(mutex_);
  std::vector<std::unique_ptr<OpTraits>>& known = traits_[&schema];
  for (const std::unique_ptr<OpTraits>& traits : known) {
    if (describes(*traits, schema)) {
      return *traits;
    }
  }
  known.push_back(std::make_unique<OpTraits>(make_traits(op, device_)));
  return *known.back();
}

}  // namespace headwater::adapter
