// The program numemu: finds the command, runs it, turns mistakes into one line and exit code 2.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"
#include "formats/version.hpp"

namespace {

using namespace numemu::cli;

/// Commands that are documented but not written yet.
const std::vector<std::string> kPlanned = {"vectors", "verify", "identify"};

int complain(const std::string& text) {
  say("numemu: {}", text);
  return kBadUsage;
}

int complain_about_output(int error) {
  if (error == EPIPE) {  // whoever read has heard enough: end as if nothing had been ignored
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return complain(fmt::format("cannot write to standard output: {}", std::strerror(error)));
}

/// What was printed may still wait in a buffer, and be lost at the end without a word.
int finish(int code) {
  errno = 0;
  const bool lost = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !lost) return code;
  return complain_about_output(errno != 0 ? errno : EIO);
}

bool finished = false;

/// A library that calls exit() (libgomp, where a thread cannot be started) must not end with the
/// code of a missed verdict.
void refuse_to_vanish() {
  if (!finished) std::_Exit(kBadUsage);
}

/// A closed standard stream would lend its number to the next file that is opened, and what is
/// printed would end there. In its place stands one that refuses to be used.
void hold_standard_streams() {
  for (int file = 0; file <= 2; ++file) {
    // The lowest free number is `file`, as all below are taken.
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
  }
}

/// A file that may not grow and a pipe that nobody reads become errors of the write, which leaves
/// no half-written file behind and, on stderr, harms nothing.
void survive_full_streams() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
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

int run(int argc, char** argv) {
  hold_standard_streams();
  survive_full_streams();
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
  add_gemm(app, action);
  add_train(app, action);
  add_eval(app, action);
  add_infer(app, action);
  add_experiment(app, action);
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
    write_talk(app.help());
    return kBadUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return finish(app.exit(success));
  } catch (const CLI::ParseError& error) {
    return complain_about(app, error);
  }
  try {
    const CLI::App* command = app.get_subcommands().front();
    if (command->get_option_no_throw("--threads") != nullptr) require_threads();
    return finish(action());
  } catch (const numemu::Error& error) {
    return complain(error.what());
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return complain_about_output(error.code().value());
    return complain(fmt::format("internal error: {}", error.what()));
  } catch (const std::bad_alloc&) {
    return complain("out of memory");
  } catch (const std::exception& error) {
    return complain(fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::atexit(refuse_to_vanish);
  const int code = run(argc, argv);
  finished = true;
  return code;
}
