#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace headwater {

/// A point in a stream's work. Copyable handle to a backend's state; empty means "long past".
/// A failure of the work before the point is thrown by whoever waits for it.
class Event {
 public:
  /// What a backend keeps for an event.
  class State {
   public:
    virtual ~State() = default;
    virtual bool done() const = 0;
    /// Nanoseconds since an earlier event, when both are done and were recorded to be timed.
    virtual std::optional<std::uint64_t> ns_since(const State& /*earlier*/) const {
      return std::nullopt;
    }
  };

  Event() = default;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}

  explicit operator bool() const { return state_ != nullptr; }
  bool done() const { return !state_ || state_->done(); }
  /// Nothing for the empty event, either way.
  std::optional<std::uint64_t> ns_since(const Event& earlier) const {
    return state_ && earlier.state_ ? state_->ns_since(*earlier.state_) : std::nullopt;
  }
  State* state() const { return state_.get(); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace headwater
