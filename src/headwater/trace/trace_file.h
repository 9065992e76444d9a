#pragma once

#include "headwater/trace/trace_codec.h"

#include <filesystem>

namespace headwater {

/// Writes a trace file. Under its name there is always a whole one: it is written beside under
/// another name and renamed when it is on the disk, so that who is killed meanwhile leaves the old
/// file, if any, untouched. Throws InvalidArgument when no file can be put there or the archive
/// cannot be encoded, and Error when it cannot be written; nothing is left behind then.
void save_traces(const std::filesystem::path& path, const TraceArchive& archive);

/// Reads a trace file. Throws InvalidArgument when it cannot be read or decoded.
TraceArchive load_traces(const std::filesystem::path& path);

}  // namespace headwater
