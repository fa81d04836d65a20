// The program as a user runs it: in a scratch folder, with its exit code and both streams.
#pragma once
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::test {

struct Result {
  int code = -1;
  std::string out, err;
};

/// A scratch folder that is also the program's cache.
struct Scratch {
  std::string path;
  Scratch();
  ~Scratch();
  std::string file(const std::string& name, const std::string& text) const;
  /// `before` stands in front of the program ("ulimit -f 8;"), `err` is where its stderr goes.
  Result run(const std::string& arguments, const std::string& before = "",
             const std::string& err = "err.txt") const;
  /// The same without a process, of all commands but `experiment`; no shell reads the arguments,
  /// but quotes count.
  Result call(const std::string& arguments) const;
};

/// Exit code 2, nothing on stdout, one line on stderr that holds the text.
void check_refused(const Result& result, const std::string& text);

/// Arguments of a command, as a shell reads them, and what the line on stderr holds.
struct Refusal {
  std::string arguments, text;
};
/// check_refused() of each row, in the folder. They run within this process: it starts none.
void check_refusals(const Scratch&, const std::vector<Refusal>&);

}  // namespace numemu::test
