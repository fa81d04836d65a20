// Runs the program by the shell, or its commands within this process.
#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/command.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/glyphs_cache.hpp"

namespace numemu::test {
namespace {

void add_commands(cli::Program& program) {
#define NUMEMU_COMMAND(group, name, help) \
  if constexpr (cli::Group::group != cli::Group::experiments) cli::add_##name(program);
#include "cli/commands.def"
#undef NUMEMU_COMMAND
}

/// Words between blanks; quotes of either kind keep blanks.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (const char c : line) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
      if (!inside) words.emplace_back();
      inside = true;
    } else if (quote == 0 && c == ' ') {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back() += c;
    }
  }
  return words;
}

/// A standard stream that goes to a file while this lives.
class Redirected {
 public:
  Redirected(std::FILE* stream, const std::string& path) : stream_(stream), file_(fileno(stream)) {
    std::fflush(stream_);
    kept_ = dup(file_);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, file_);
    close(file);
  }
  ~Redirected() {
    std::fflush(stream_);
    dup2(kept_, file_);
    close(kept_);
  }

 private:
  std::FILE* stream_;
  int file_, kept_;
};

}  // namespace

Scratch::Scratch() {
  char name[] = "/tmp/numemu-cli-XXXXXX";
  path = ::mkdtemp(name);
  share_glyphs(path + "/cache");
}

Scratch::~Scratch() { std::filesystem::remove_all(path); }

std::string Scratch::file(const std::string& name, const std::string& text) const {
  write_file(path + "/" + name, text);
  return path + "/" + name;
}

Result Scratch::run(const std::string& arguments, const std::string& before,
                    const std::string& err) const {
  const std::string command = "cd " + path + " && export NUMEMU_CACHE=" + path + "/cache; " +
                              before + " '" NUMEMU_PROGRAM "' " + arguments + " >out.txt 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(path + "/out.txt"),
          read_file(path + "/err.txt")};
}

Result Scratch::call(const std::string& arguments) const {
  std::vector<std::string> words = words_of("numemu " + arguments);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string home = std::filesystem::current_path();
  const int threads = omp_get_max_threads();
  Result result;
  std::filesystem::current_path(path);
  ::setenv("NUMEMU_CACHE", (path + "/cache").c_str(), 1);
  {
    const Redirected out(stdout, "out.txt"), err(stderr, "err.txt");
    result.code = cli::run_commands(static_cast<int>(words.size()), argv.data(), add_commands);
  }
  std::filesystem::current_path(home);
  omp_set_num_threads(threads);
  result.out = read_file(path + "/out.txt");
  result.err = read_file(path + "/err.txt");
  return result;
}

void check_refusals(const Scratch& folder, const std::vector<Refusal>& rows) {
  for (const auto& [arguments, text] : rows) {
    INFO(arguments);
    check_refused(folder.call(arguments), text);
  }
}

void check_refused(const Result& result, const std::string& text) {
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, Catch::Contains(text));
}

}  // namespace numemu::test
