#pragma once

#include "dispatch_key.h"
#include "interceptor.h"
#include "op_key.h"
#include "op_scope.h"
#include "session_state.h"
#include "session_switch.h"
#include "standby.h"
#include "tensor_walk.h"

#include <ATen/core/IListRef_inl.h>
#include <ATen/core/List_inl.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace headwater::adapter {

/// Visits the tensors in an operator's argument or result as it comes.
template <class Visit>
class TensorVisitor {
 public:
  explicit TensorVisitor(Visit visit) : visit_(std::move(visit)) {}

  void operator()(const at::Tensor& tensor) { visit_(tensor); }
  void operator()(const std::optional<at::Tensor>& tensor) {
    if (tensor) {
      visit_(*tensor);
    }
  }
  void operator()(at::TensorList tensors) { visit_each(tensors); }
  void operator()(const at::ITensorListRef& tensors) { visit_each(tensors); }
  void operator()(const std::vector<at::Tensor>& tensors) { visit_each(tensors); }
  template <class... Values>
  void operator()(const std::tuple<Values...>& values) {
    std::apply([this](const auto&... value) { ((*this)(value), ...); }, values);
  }
  /// Gives its elements out as copies only: operators with such lists are not made direct.
  template <class Element>
  void operator()(const c10::List<Element>& list) = delete;
  template <class Value>
  void operator()(const Value& /*not a tensor*/) {}

 private:
  template <class List>
  void visit_each(const List& tensors) {
    for (const at::Tensor& tensor : tensors) {
      visit_(tensor);
    }
  }

  Visit visit_;
};

/// The tensors of one call, with what the operator does to each.
template <class... Args>
c10::SmallVector<TensorUse, 8> uses_of(const OpTraits& traits, const Args&... args) {
  c10::SmallVector<TensorUse, 8> uses;
  auto known = traits.tensors.begin();
  std::uint16_t index = 0;
  TensorVisitor add([&](const at::Tensor& tensor) { uses.push_back({&tensor, known->access}); });
  const auto add_next = [&](const auto& argument) {
    if (known != traits.tensors.end() && known->index == index) {
      add(argument);
      ++known;
    }
    ++index;
  };
  (add_next(args), ...);
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
    bool may_repeat = false;
    try {
      const RunningOp running;
      SessionState* session = keys.has(c10::DispatchKey::Python) ? nullptr : running.session();
      if (session != nullptr && session->standby().on()) {
        if (admitted(*session, kOp, args...)) {
          session->count_op();
          may_repeat = session->ops().traits(kOp, number()).repeatable;
          return let_through(session->standby(), keys, args...);
        }
      } else if (session != nullptr) {
        const OpTraits& traits = session->ops().traits(kOp, number());
        const auto box = [&] { return c10::impl::boxArgs<Args...>(args...); };
        const auto key = [&] { return op_key(kOp, args...); };
        OpScope scope(*session, kOp, traits);
        if (scope.acquire_resident(uses_of(traits, args...), key, box)) {
          session->count_op();
          return run_pinned(scope, keys, args...);
        }
      }
    } catch (const c10::OutOfMemoryError&) {
      if (!may_repeat) {
        throw;
      }
    }
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        c10::BoxedKernel::makeFromFunction<&intercept>(), kOp, all_keys, args...);
  }

 private:
  static DirectNumber number() {
    static const DirectNumber kNumber = DirectNumber::next();
    return kNumber;
  }

  static bool admitted(SessionState& session, const c10::OperatorHandle& op, const Args&... args) {
    static const Workspace kWorkspace = workspace_of(op);
    static const Growth kGrowth = growth_of(op);
    ResultBound results(kGrowth);
    TensorVisitor add([&results](const at::Tensor& tensor) { results.add(tensor); });
    (add(args), ...);
    std::optional<std::size_t> most = results.bytes();
    if (!most) {
      most = session.standby().result_bytes(
          op, op_key(op, args...), [&] { return c10::impl::boxArgs<Args...>(args...); });
    }
    const std::size_t workspace =
        session.working_sets().most_workspace(kWorkspace, results.given());
    return session.standby().admits(workspace + *most);
  }

  /// See Note [Standing by].
  static Result let_through(Standby& standby, c10::DispatchKeySet keys, Args... args) {
    const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
    if constexpr (std::is_void_v<Result> || std::is_reference_v<Result>) {
      return Op::redispatch(keys, args...);  // what it makes inside its arguments is not noted
    } else {
      Result result = Op::redispatch(keys, args...);
      TensorVisitor note([&standby](const at::Tensor& tensor) {
        for_each_storage(tensor, [&standby](c10::StorageImpl& storage, Adoption adoption) {
          standby.note(storage, adoption);
        });
      });
      note(result);
      return result;
    }
  }

  /// With further tries where the device has no room although the budget has.
  static Result run_pinned(OpScope& scope, c10::DispatchKeySet keys, Args... args) {
    for (;;) {
      try {
        return redispatch(scope, keys, args...);
      } catch (const c10::OutOfMemoryError& error) {
        if (!scope.try_again(error)) {
          throw;
        }
      }
    }
  }

  static Result redispatch(OpScope& scope, c10::DispatchKeySet keys, Args... args) {
    const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
    if constexpr (std::is_void_v<Result>) {
      Op::redispatch(keys, args...);
      scope.finish_resident({});
    } else {
      Result result = Op::redispatch(keys, args...);
      c10::SmallVector<const at::Tensor*, 4> results;
      TensorVisitor add([&results](const at::Tensor& tensor) { results.push_back(&tensor); });
      add(result);
      scope.finish_resident(results);
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
