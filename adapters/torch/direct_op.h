#pragma once

#include "dispatch_key.h"
#include "interceptor.h"
#include "op_key.h"
#include "op_scope.h"
#include "session_state.h"
#include "session_switch.h"

#include <ATen/core/IListRef_inl.h>
#include <ATen/core/List_inl.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <vector>

namespace headwater::adapter {

/// Finds the tensors among an operator's arguments or results, as they come.
class TensorCollector {
 public:
  void add(const at::Tensor& tensor) { found_.push_back(&tensor); }
  void add(const std::optional<at::Tensor>& tensor) {
    if (tensor) {
      add(*tensor);
    }
  }
  void add(at::TensorList tensors) { add_each(tensors); }
  void add(const at::ITensorListRef& tensors) { add_each(tensors); }
  void add(const std::vector<at::Tensor>& tensors) { add_each(tensors); }
  template <class... Values>
  void add(const std::tuple<Values...>& values) {
    std::apply([this](const auto&... value) { (this->add(value), ...); }, values);
  }
  /// Gives its elements out as copies only: operators with such lists are not made direct.
  template <class Element>
  void add(const c10::List<Element>& list) = delete;
  template <class Value>
  void add(const Value& /*not a tensor*/) {}

  c10::ArrayRef<const at::Tensor*> all() const { return found_; }

 private:
  template <class List>
  void add_each(const List& tensors) {
    for (const at::Tensor& tensor : tensors) {
      add(tensor);
    }
  }

  c10::SmallVector<const at::Tensor*, 8> found_;
};

/// The tensors of one call, with what the operator does to each.
template <class... Args>
c10::SmallVector<TensorUse, 8> uses_of(const OpTraits& traits, const Args&... args) {
  c10::SmallVector<TensorUse, 8> uses;
  auto known = traits.tensors.begin();
  std::uint16_t index = 0;
  const auto add = [&](const auto& argument) {
    if (known != traits.tensors.end() && known->index == index) {
      TensorCollector tensors;
      tensors.add(argument);
      for (const at::Tensor* tensor : tensors.all()) {
        uses.push_back({tensor, known->access});
      }
      ++known;
    }
    ++index;
  };
  (add(args), ...);
  return uses;
}

/// An operator of PyTorch that takes its arguments as they come while nothing has to move, and
/// boxes them otherwise.
template <class Op, class Signature>
struct Direct;

template <class Op, class Result, class... Args>
struct Direct<Op, Result(Args...)> {
  static Result run(c10::DispatchKeySet all_keys, Args... args) {
    static const c10::OperatorHandle kOp =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    const c10::DispatchKeySet keys = all_keys & kBelowIntercept;
    {
      const RunningOp running;
      SessionState* session = running.session();
      if (session != nullptr && !keys.has(c10::DispatchKey::Python)) {
        const OpTraits& traits = session->ops().traits(kOp);
        const auto box = [&] { return c10::impl::boxArgs<Args...>(args...); };
        const auto key = [&] { return op_key(kOp, args...); };
        OpScope scope(*session, kOp, traits);
        if (scope.acquire_resident(uses_of(traits, args...), key, box)) {
          session->count_op();
          return redispatch(scope, keys, args...);
        }
      }
    }
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        c10::BoxedKernel::makeFromFunction<&intercept>(), kOp, all_keys, args...);
  }

 private:
  static Result redispatch(OpScope& scope, c10::DispatchKeySet keys, Args... args) {
    const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
    if constexpr (std::is_void_v<Result>) {
      Op::redispatch(keys, args...);
      scope.finish_resident({});
    } else {
      Result result = Op::redispatch(keys, args...);
      TensorCollector results;
      results.add(result);
      scope.finish_resident(results.all());
      return result;
    }
  }
};

template <class Op>
void register_direct(torch::Library& library) {
  const std::string overload(Op::overload_name);
  const std::string name = overload.empty() ? Op::name : Op::name + ("." + overload);
  library.impl(name.c_str(), &Direct<Op, typename Op::schema>::run);
}

template <class... Ops>
void register_all(torch::Library& library) {
  (register_direct<Ops>(library), ...);
}

}  // namespace headwater::adapter
