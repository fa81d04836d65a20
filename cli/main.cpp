// The program numemu: finds the command, runs it, turns mistakes into one line and exit code 2.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"
#include "formats/version.hpp"

namespace {

using namespace numemu::cli;

/// Commands that are documented but not written yet.
const std::vector<std::string> kPlanned = {"gemm",     "vectors", "verify",
                                           "identify", "infer",   "experiment"};

/// One line, whatever the text.
int complain(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  fmt::print(stderr, "numemu: {}\n", text);
  return kBadUsage;
}

/// CLI11 lists every unmatched word; one line with the nearest known word says more.
int complain_about(const CLI::App& app, const CLI::ParseError& error) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> rest = command->remaining();
    if (rest.empty()) continue;
    if (!rest.front().starts_with('-')) {
      return complain(
          fmt::format("{}: unexpected argument '{}'", command->get_name(), rest.front()));
    }
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    return complain(fmt::format("{}: {}", command->get_name(),
                                numemu::unknown_name("option", rest.front(), known)));
  }
  const std::string text = error.what();
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return complain(chosen.empty() ? text : chosen.front()->get_name() + ": " + text);
}

}  // namespace

int main(int argc, char** argv) {
  // Batches come and go by the megabyte: memory that is given back each time is faulted in each
  // time, a tenth of a training step.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  CLI::App app(
      "numemu: what happens to my numbers, and to my network, if the machine computes like this?",
      "numemu");
  app.set_version_flag("--version", fmt::format("numemu {} (numerics {})", NUMEMU_VERSION,
                                                numemu::kNumericsVersion));
  app.require_subcommand(1);
  Action action;
  add_formats(app, action);
  add_analyze(app, action);
  add_encode(app, action);
  add_decode(app, action);
  add_quantize(app, action);
  add_dequantize(app, action);
  add_units(app, action);
  add_train(app, action);
  add_eval(app, action);
  add_sweep(app, action);
  add_report(app, action);
  add_config(app, action);
  std::vector<std::string> names;
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->allow_extras(false);
    names.push_back(command->get_name());
  }

  if (argc > 1 && argv[1][0] != '-' &&
      std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    if (std::find(kPlanned.begin(), kPlanned.end(), argv[1]) != kPlanned.end())
      return complain(fmt::format("command '{}' is not there yet", argv[1]));
    return complain(numemu::unknown_name("command", argv[1], names));
  }
  if (argc == 1) {
    fmt::print(stderr, "{}", app.help());
    return kBadUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return complain_about(app, error);
  }
  try {
    return action();
  } catch (const numemu::Error& error) {
    return complain(error.what());
  } catch (const std::bad_alloc&) {
    return complain("out of memory");
  } catch (const std::exception& error) {
    return complain(fmt::format("internal error: {}", error.what()));
  }
}
