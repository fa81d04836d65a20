// numemu serve: a line of operands in, a line of results out, for what has no library.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include "api/oracle.hpp"
#include "cli/command.hpp"
#include "cli/subject_options.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

struct ServeOptions {
  api::VectorOptions of;
  bool flags = false;
};

/// What is there: a reader that fills a buffer would wait for questions that wait for answers.
std::size_t from_standard_input(char* to, std::size_t most) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, to, most);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR)
      throw file_error(fmt::format("standard input: cannot read: {}", std::strerror(errno)));
  }
}

void to_client(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw std::system_error(errno, std::generic_category());
}

int run_serve(const ServeOptions& o) {
  note_subject_names(o.of);
  api::serve(o.of, o.flags, "standard input", from_standard_input, to_client);
  return kFine;
}

}  // namespace

void add_serve(Program& program) {
  auto [command, options] = program.command<ServeOptions>("serve", run_serve);
  add_subject(command, options.of);
  command.flag("--flags", options.flags,
               "Answer the exceptions, too, as the records of vectors have them");
  add_threads(command);
}

}  // namespace numemu::cli
