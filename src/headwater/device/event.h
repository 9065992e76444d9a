#pragma once

#include <memory>

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
  };

  Event() = default;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}

  explicit operator bool() const { return state_ != nullptr; }
  bool done() const { return !state_ || state_->done(); }
  State* state() const { return state_.get(); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace headwater
