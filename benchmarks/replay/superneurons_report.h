#pragma once

#include "superneurons_figures.h"

#include <string>

namespace headwater::replay {

/// Two tables in Markdown, ours beside the published figures.
std::string table_of(const SuperNeuronsFigures& figures);
std::string json_of(const SuperNeuronsFigures& figures);

}  // namespace headwater::replay
