// --memory bounds what a command takes, data and references included, or the command is refused.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/gguf_zeros.hpp"

namespace memory_option_test {

using namespace numemu::test;

namespace {

struct Run {
  int code = -1;
  double peak = 0;  ///< MiB
  std::string err;
};

/// The program alone, whose memory at its peak the system counts.
Run measured(const Scratch& s, const std::string& arguments) {
  const std::string command = "cd '" + s.path + "' && exec env NUMEMU_CACHE='" + s.path + "' '" +
                              NUMEMU_PROGRAM + "' " + arguments + " >out 2>err";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage usage = {};
  REQUIRE(::wait4(child, &status, 0, &usage) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, static_cast<double>(usage.ru_maxrss) / 1024,
          read_file(s.path + "/err")};
}

/// The N of "; needs at least NM"; 0 without.
int least_of(const std::string& err) {
  constexpr std::string_view kBefore = "needs at least ";
  const std::size_t at = err.rfind(kBefore);
  return at == err.npos ? 0 : std::stoi(err.substr(at + kBefore.size()));
}

}  // namespace

TEST_CASE("a refused command names a limit that does, before it writes anything", "[slow]") {
  const Scratch s;
  s.file("s.json", R"({"numemu_sweep": 1, "eval_images": 64, "net": "lenet",
      "grid": {"roles.weight.format": ["int8"]}})");
  REQUIRE(s.run("eval --net lenet --data glyphs --images 32 --quiet").code == 0);  // draws the set
  for (const char* command :
       {"eval --net lenet --data glyphs --recipe mxfp4 --images 640 --fresh",
        "export --net lenet --data glyphs --recipe int8-static --out x.onnx",
        "export --net lenet --data glyphs --recipe int8-static --out x.safetensors --samples 512",
        "tune --net lenet --data glyphs --recipe int8-static --out t --fresh",
        "sweep s.json --out w --fresh"}) {
    const auto at = [&](int limit) {
      return measured(
          s, std::string(command) + " --quiet --threads 4 --memory " + std::to_string(limit) + "M");
    };
    Run run = at(60);  // the data set takes 53
    INFO(command << ": " << run.err);
    REQUIRE(run.code == 2);
    const int least = least_of(run.err);
    CHECK(least > 60);
    for (const char* written : {"x.onnx", "x.safetensors", "t", "w/rows.jsonl"})
      CHECK_FALSE(std::filesystem::exists(s.path + "/" + written));
    // The estimate leaves out what a run allocates in small pieces.
    run = at(least + least / 5 + 20);
    INFO("at " << least + least / 5 + 20 << " MiB " << run.peak << ", " << run.err);
    CHECK(run.code == 0);
    for (const char* written : {"x.onnx", "x.safetensors", "t", "w"})
      std::filesystem::remove_all(s.path + "/" + written);
  }
}

TEST_CASE("the memory limit counts what a command holds", "[slow]") {
  const Scratch s;
  s.file("s.json", R"({"numemu_sweep": 1, "eval_images": 64, "net": "lenet",
      "grid": {"roles.weight.format": ["int8", "int4"]}})");
  REQUIRE(s.run("eval --net lenet --data glyphs --images 32 --quiet").code == 0);  // draws the set
  constexpr double kMost = 0.1, kBeside = 20;  // of the limit; MiB
  for (const char* command :
       {"eval --net lenet --data glyphs --recipe mxfp4 --images 64 --fresh",
        "export --net lenet --data glyphs --recipe int8-static --out x.onnx",
        "train --net mlp --data glyphs --epochs 1 --batch 512 --out t --fresh",
        "sweep s.json --out w --fresh"}) {
    std::array<int, 2> codes = {};  // done, refused
    for (const int limit : {30, 60, 80, 100, 120, 160, 250}) {
      const Run run = measured(
          s, std::string(command) + " --quiet --threads 2 --memory " + std::to_string(limit) + "M");
      INFO(command << " at " << limit << " MiB took " << run.peak << ", " << run.err);
      CHECK(run.peak < (1 + kMost) * limit + kBeside);
      REQUIRE((run.code == 0 || run.code == 2));
      if (run.code == 2) CHECK_THAT(run.err, Catch::Contains("(--memory)"));
      ++codes[run.code == 0 ? 0 : 1];
    }
    INFO(command);
    CHECK(codes[0] > 0);
    CHECK(codes[1] > 0);
  }
}

TEST_CASE("dequantize takes a checkpoint beyond its memory", "[slow]") {
  const Scratch s;
  // A matrix of 128 MiB in float32.
  constexpr std::int64_t kRows = 8192, kColumns = 4096;
  numemu::test::write_gguf_zeros(s.path + "/m.gguf", kRows, kColumns);
  const Run run = measured(s, "dequantize --in m.gguf --out y.npy --threads 2 --memory 48M");
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.peak < 48);
  CHECK(std::filesystem::file_size(s.path + "/y.npy") == 128 + kRows * kColumns * 4);
  const Run little = measured(s, "dequantize --in m.gguf --out z.npy --memory 64K");
  CHECK(little.code == 2);
  CHECK(little.err.find("--memory: expected at least 131072 bytes for a row") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(s.path + "/z.npy"));
}

}  // namespace memory_option_test
