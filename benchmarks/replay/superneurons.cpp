#include "superneurons_figures.h"
#include "superneurons_report.h"

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kHelp =
    "Usage: superneurons [--out FILE]\n\n"
    "Replays training steps of the networks of SuperNeurons' evaluation on the simulated device,\n"
    "unmanaged, with liveness, with offloading and with each recompute rule, and the traffic of\n"
    "AlexNet with and without a tensor cache. Tables go to the terminal.\n\n"
    "  --out FILE   everything as JSON\n"
    "  --help       this text\n";

int write_figures(const std::string& file) {
  using namespace headwater::replay;  // NOLINT(google-build-using-namespace)
  const SuperNeuronsFigures figures = find_figures(Machine{});
  std::cout << table_of(figures);
  if (!file.empty()) {
    std::ofstream out(file);
    out << json_of(figures) << std::flush;
    if (!out) {
      std::cerr << "Cannot write the figures. Choose another file: " << file << "\n";
      return EXIT_FAILURE;
    }
  }
  return EXIT_SUCCESS;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return write_figures("");
  }
  if (arguments.size() == 2 && arguments[0] == "--out") {
    return write_figures(arguments[1]);
  }
  const bool asked = arguments[0] == "--help";
  (asked ? std::cout : std::cerr) << kHelp;
  return asked ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
