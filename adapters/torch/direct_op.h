#pragma once

#include "dispatch_key.h"
#include "exactness.h"
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

/// What never changes about an operator that takes its arguments unboxed.
struct DirectOp {
  DirectOp(const char* name, const char* overload);

  /// Whether it works in its arguments and needs nothing beside.
  bool allocates_nothing() const {
    return growth == Growth::kNone && workspace == Workspace::kNone;
  }

  c10::OperatorHandle handle;
  DirectNumber number;
  Growth growth;
  Workspace workspace;
  OpTraits traits;
};

/// An operator of PyTorch that takes its arguments as they come while nothing has to move, and
/// boxes them otherwise.
template <class Op, class Signature>
struct Direct;

template <class Op, class Result, class... Args>
struct Direct<Op, Result(Args...)> {
  /// Short, and what standing by does not need is kept out of it: in a training whose host can
  /// hardly keep ahead of its GPU no cache holds the code of all operators.
  static Result run(c10::DispatchKeySet all_keys, Args... args) {
    static const DirectOp kOp(Op::name, Op::overload_name);
    const c10::DispatchKeySet keys = all_keys & kBelowIntercept;
    bool began = false;
    try {
      RunningOp running;
      SessionState* session = keys.has(c10::DispatchKey::Python) ? nullptr : running.session();
      if (session != nullptr && session->standby().on()) [[likely]] {
        if (kOp.allocates_nothing() || admitted(*session, kOp, args...)) [[likely]] {
          running.count_let_through();
          began = true;
          return let_through(session->standby(), keys, args...);
        }
      } else if (session != nullptr) {
        return run_managed(kOp, running, all_keys, args...);
      }
    } catch (const c10::OutOfMemoryError&) {
      if (!began || !can_begin_again(kOp, args...)) {
        throw;
      }
    }
    return run_boxed(kOp, all_keys, args...);
  }

 private:
  static bool admitted(SessionState& session, const DirectOp& op, const Args&... args) {
    ResultBound results(op.growth);
    TensorVisitor add([&results](const at::Tensor& tensor) { results.add(tensor); });
    (add(args), ...);
    const bool alone = op.workspace == Workspace::kNone;
    const std::size_t workspace =
        alone ? 0 : session.working_sets().most_workspace(op.workspace, results.given());
    if (const std::optional<std::size_t> most = results.bytes()) [[likely]] {
      return session.standby().admits(workspace + *most);
    }
    return session.standby().admits(workspace + bytes_by_shape(session.standby(), op, args...));
  }

  [[gnu::noinline]] static std::size_t bytes_by_shape(Standby& standby,
                                                      const DirectOp& op,
                                                      const Args&... args) {
    return standby.result_bytes(op.handle, op_key(op.handle, args...), [&] {
      return c10::impl::boxArgs<Args...>(args...);
    });
  }

  [[gnu::noinline]] static bool can_begin_again(const DirectOp& op, const Args&... args) {
    return op.traits.repeatable || may_begin_again(op.traits, c10::impl::boxArgs<Args...>(args...));
  }

  /// See Note [Standing by].
  static Result let_through(Standby& standby, c10::DispatchKeySet keys, Args&... args) {
    const c10::impl::ExcludeDispatchKeyGuard exclude(kIntercept);
    if constexpr (std::is_void_v<Result> || std::is_reference_v<Result>) {
      return Op::redispatch(keys, args...);  // what it makes inside its arguments is not noted
    } else {
      Result result = Op::redispatch(keys, args...);
      TensorVisitor note([&standby](const at::Tensor& tensor) { standby.note(tensor); });
      note(result);
      return result;
    }
  }

  [[gnu::noinline]] static Result run_boxed(const DirectOp& op,
                                            c10::DispatchKeySet all_keys,
                                            Args&... args) {
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        c10::BoxedKernel::makeFromFunction<&intercept>(), op.handle, all_keys, args...);
  }

  [[gnu::noinline]] static Result run_managed(const DirectOp& op,
                                              RunningOp& running,
                                              c10::DispatchKeySet all_keys,
                                              Args&... args) {
    SessionState& session = *running.session();
    {
      const OpTraits& traits = session.ops().traits(op.handle, op.number);
      const auto box = [&] { return c10::impl::boxArgs<Args...>(args...); };
      const auto key = [&] { return op_key(op.handle, args...); };
      OpScope scope(session, op.handle, traits);
      if (scope.acquire_resident(uses_of(traits, args...), key, box)) {
        session.count_op();
        return run_pinned(scope, all_keys & kBelowIntercept, args...);
      }
    }
    running.end();  // boxed it runs anew
    return run_boxed(op, all_keys, args...);
  }

  /// With further tries where the device has no room although the budget has.
  static Result run_pinned(OpScope& scope, c10::DispatchKeySet keys, Args&... args) {
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

  static Result redispatch(OpScope& scope, c10::DispatchKeySet keys, Args&... args) {
    const c10::impl::ExcludeDispatchKeyGuard exclude(kIntercept);
    if constexpr (std::is_void_v<Result>) {
      Op::redispatch(keys, args...);
      scope.finish_resident({});
    } else {
      Result result = Op::redispatch(keys, args...);
      c10::SmallVector<const at::Tensor*, 4> results;
      TensorVisitor add([&results](const at::Tensor& tensor) { results.push_back(&tensor); });
      add(result);
      scope.finish_resident(results);
      if (!results.empty()) {
        scope.ask_policy(*results.front());
      }
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
