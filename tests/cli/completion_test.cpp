// What shells offer, from the options themselves, and the scripts in the shells.
#include <cstdlib>

#include "cli/groups.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace completion_test {

namespace {

using Catch::Contains;
using Catch::StartsWith;
using namespace numemu::test;

bool has_shell(const std::string& shell) {
  if (std::system((shell + " -c true >/dev/null 2>&1").c_str()) == 0) return true;
  WARN("skipped: no " + shell);
  return false;
}

}  // namespace

TEST_CASE("completion: commands, options, values of their kinds", "[fast]") {
  const Scratch s;
  const auto offered = [&](const std::string& words) {
    const Result run = s.call("--complete " + words);
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    return run.out;
  };
  CHECK(offered("ver") ==
        "words\nverify\tCheck results made elsewhere, and name the rule that they follow\n");
  CHECK_THAT(offered("''"), Contains("\ngemm\tD = A x B + C"));
  CHECK_THAT(offered("--"), Contains("\n--version\t"));
  CHECK(offered("gemm --compa") ==
        "words\n--compare\tCompare with OTHER.npy, or with another unit: where they part, which is "
        "nearer\n");
  CHECK(offered("gemm --b-layout ''") == "words\nkn\t\nnk\t\n");
  CHECK_THAT(offered("gemm --unit h100.wgmma.e4m3.f32"),
             StartsWith("files\nh100.wgmma.e4m3.f32\t"));
  CHECK_THAT(offered("gemm --unit nvidia.t4"), Contains("\nnvidia.t4.mma.f16.f32\t"));
  CHECK_THAT(offered("encode --format float8_e4"), Contains("\nfloat8_e4m3fn\t\n"));
  CHECK(offered("formats e4m3fnu") == "words\ne4m3fnuz\t\n");
  CHECK(offered("gemm --a x") == "files\n");
  CHECK(offered("train --out ''") == "folders\n");
  CHECK(offered("gemm --k 5").starts_with("words\n"));
  CHECK(offered("completion ''") == "words\nbash\t\nzsh\t\n");
  check_refused(s.call("--complete nothing ''"), "unknown command 'nothing'");
}

TEST_CASE("completion: every option of every command is offered", "[fast]") {
  const Scratch s;
  for (const numemu::cli::CommandRow& row : numemu::cli::kCommands) {
    if (row.group == numemu::cli::Group::experiments) continue;  // not in this process
    INFO(row.name);
    const std::string help = s.call(std::string(row.name) + " --help").out;
    const std::string offered = s.call("--complete " + std::string(row.name) + " --").out;
    int found = 0;
    for (std::size_t at = help.find("\n  --"); at != std::string::npos;
         at = help.find("\n  --", at + 1)) {
      const std::size_t begin = at + 3;
      const std::string name = help.substr(begin, help.find_first_of(" ,=\n", begin) - begin);
      INFO(name);
      CHECK_THAT(offered, Contains("\n" + name + "\t"));
      ++found;
    }
    CHECK(found + (std::string(row.name) == "completion") > 0);
  }
}

TEST_CASE("completion: bash completes with the script", "[fast]") {
  if (!has_shell("bash")) return;
  const Scratch s;
  s.file("weights.npy", "");
  s.file("test.sh", R"(
source <("$NUMEMU" completion bash)
complete -p numemu
offer() {
  COMP_WORDS=("$NUMEMU" "$@") COMP_CWORD=$#
  _numemu 2>/dev/null  # compopt works only below readline
  printf '%s\n' "$*:" "${COMPREPLY[@]}"
}
offer dequ
offer verify --ul
offer gemm --a we
offer gemm --b-layout ''
)");
  const std::string run =
      "cd " + s.path + " && NUMEMU='" NUMEMU_PROGRAM "' bash test.sh >out.txt 2>&1";
  CHECK(std::system(run.c_str()) == 0);
  CHECK(read_file(s.path + "/out.txt") ==
        "complete -F _numemu numemu\ndequ:\ndequantize\nverify --ul:\n--ulp\ngemm --a we:\n"
        "weights.npy\ngemm --b-layout :\nkn\nnk\n");
}

TEST_CASE("completion: zsh completes with the script", "[fast]") {
  if (!has_shell("zsh")) return;
  const Scratch s;
  s.file("test.zsh", R"(
compdef() { print -r -- "compdef $*" }
_describe() { print -r -- "$1: ${(@P)2}" }
_files() { print -r -- "files $*" }
source <("$NUMEMU" completion zsh)
offer() { words=("$NUMEMU" "$@") CURRENT=$(( $# + 1 )); _numemu }
offer dequ
offer gemm --b-layout ''
offer gemm --a we
offer train --out ''
)");
  const std::string run =
      "cd " + s.path + " && NUMEMU='" NUMEMU_PROGRAM "' zsh -f test.zsh >out.txt 2>&1";
  CHECK(std::system(run.c_str()) == 0);
  CHECK(read_file(s.path + "/out.txt") ==
        "compdef _numemu numemu\n"
        "numemu: dequantize:Convert codes and their scales to numbers\n"
        "numemu: kn: nk:\nfiles \nfiles -/\n");
}

}  // namespace completion_test
