#pragma once

#include "headwater/trace/trace_codec.h"
#include "standby.h"

#include <c10/core/Device.h>

#include <filesystem>
#include <map>
#include <memory>

namespace headwater::adapter {

class SessionState;

/// Keeps the traces of all steps while alive. Operators are managed meanwhile, also while
/// everything fits.
class Tracing final {
 public:
  /// Throws Error when somebody keeps traces already.
  explicit Tracing(std::shared_ptr<SessionState> session);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  Tracing(Tracing&&) = delete;
  Tracing& operator=(Tracing&&) = delete;

  /// Ends it, and writes what was kept. Throws as save_traces() does.
  void save(const std::filesystem::path& path);

 private:
  void end();

  const std::shared_ptr<SessionState> session_;
  const NoStandby managed_;
  TraceArchive archive_;  // guarded by the cache's mutex until it ends
  bool ended_ = false;
};

}  // namespace headwater::adapter
