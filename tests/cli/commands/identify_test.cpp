// numemu identify from outside: example devices, hostile devices, records.
#include <algorithm>
#include <cstdlib>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace identify_test {

namespace {

using Catch::Contains;
using Catch::StartsWith;
using namespace numemu::test;
using numemu::Json;

const std::string kDevices = NUMEMU_SOURCE "/docs/devices/";
const std::string kPorts = " --format-a bfloat16 --format-d float32 --k 4 --nan any";

std::string device(const std::string& command) { return "identify --device '" + command + "'"; }

bool has(const std::string& program) {
  return std::system((program + " >/dev/null 2>&1").c_str()) == 0;
}

/// The example in C is there as "dot".
bool compiles_example(const Scratch& s) {
  if (!has("cc --version")) {
    WARN("skipped: no cc to compile the example");
    return false;
  }
  REQUIRE(std::system(("cc -O1 -o " + s.path + "/dot " + kDevices + "dot_device.c -lm").c_str()) ==
          0);
  return true;
}

}  // namespace

TEST_CASE("identify: the example in C is a chain of fused multiply-adds", "[fast]") {
  const Scratch s;
  if (!compiles_example(s)) return;
  const Result run =
      s.run(device("./dot 4") + kPorts + " --confirm 20 --order --out u.json --json");
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  const Json json = Json::parse(run.out);
  CHECK(json.at("fits").get<bool>());
  const auto presets = json.at("presets").get<std::vector<std::string>>();
  CHECK(std::ranges::find(presets, "neutral.f32.sequential") != presets.end());
  CHECK(json.at("description").at("core").get<std::string>() == "chain");
  CHECK_THAT(json.at("order").at("words").get<std::string>(), Contains("k ascending"));
  // What was found computes.
  CHECK(s.run("units f32.sequential").code == 0);
  CHECK_THAT(read_file(s.path + "/u.json"), Contains("\"identified\""));
}

TEST_CASE("identify: the example in Python rounds its products", "[fast]") {
  const Scratch s;
  if (!has("python3 --version")) {
    WARN("skipped: no python3 to run the example");
    return;
  }
  const Result run =
      s.run(device("python3 " + kDevices + "dot_device.py") + kPorts + " --confirm 20");
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Contains("chain of rounded products and sums in float32 rne from C"));
}

TEST_CASE("identify: a NumPy float32 product is told by the tree of its sums", "[slow]") {
  const Scratch s;
  if (!has("python3 -c \"import numpy\"")) {
    WARN("skipped: no NumPy");
    return;
  }
  const Result run = s.run(device("python3 " + kDevices + "numpy_matmul.py") +
                           " --format-a float32 --format-d float32 --k 64 --nan any --order");
  CHECK(run.code <= 1);
  CHECK_THAT(run.out, Contains("Order of the sum: "));
  WARN(run.out);
}

TEST_CASE("identify: hostile devices end in one line", "[fast]") {
  const Scratch s;
  check_refused(s.run(device("true") + kPorts), "device: ");
  check_refused(s.run(device("echo hello; cat >/dev/null") + kPorts), "device: line 1: ");
  check_refused(s.run(device("yes 123456789") + kPorts), "device: line 1: ");
  check_refused(s.run(device("while read q; do echo 0000000X; done") + kPorts), "found X or Z");
  check_refused(s.run(device("while read q; do echo 0 0; done") + kPorts), "expected 1 words");
  check_refused(s.run(device("head -c 9999999 /dev/zero; cat >/dev/null") + kPorts), "device: ");
  check_refused(s.run(device("yes \"#\"") + kPorts), "found over 2^20 bytes");
  check_refused(s.run(device("sleep 20") + kPorts + " --timeout 0.2"), "no answer in 0.2 seconds");
  check_refused(s.run(device("no-such-program 2>/dev/null") + kPorts), "device: ");
  check_refused(s.run("identify --device true --live" + kPorts), "expected one of --in");
  check_refused(s.run(device("true") + " --format-a bfloat16"), "--format-d");
  check_refused(s.run(device("true") + " --format-a bfloat16 --format-d int8x --k 4"), "int8");
}

TEST_CASE("identify: the time of an answer is that of all its digits", "[fast]") {
  const Scratch s;
  const std::string digits = "while :; do printf 0; sleep 0.1; done";
  check_refused(s.run(device(digits) + kPorts + " --timeout 0.5"), "no answer in 0.5 seconds");
  for (const char* bad : {"nan", "inf", "0", "-1"})
    check_refused(s.run(device("true") + kPorts + " --timeout " + bad),
                  "expected a number above 0");
  check_refused(s.run(device("true") + kPorts + " --time-limit nan"), "expected a number above 0");
}

TEST_CASE("identify: what the device started ends with numemu, also by SIGKILL", "[fast]") {
  const Scratch s;
  const std::string left = "sleep 1000 & echo $! >pid; sleep 1000";
  const auto gone = [&] {
    for (int tries = 0; tries < 100; ++tries) {
      if (!has("kill -0 $(cat " + s.path + "/pid)")) return true;
      has("sleep 0.05");
    }
    return false;
  };
  check_refused(s.run(device(left) + kPorts + " --timeout 0.2"), "no answer");
  CHECK(gone());
  const std::string killed = "(cd " + s.path + " && '" NUMEMU_PROGRAM "' " + device(left) + kPorts +
                             " & sleep 0.5; kill -KILL $!)";
  has("rm " + s.path + "/pid");
  has(killed);
  CHECK(gone());
}

TEST_CASE("identify: two's complement results, and a described unit of one's own", "[fast]") {
  const Scratch s;
  const std::string ports = " --format-a int8 --format-d int32 --k 1 --confirm 0";
  check_refused(s.run(device("true") + " --format-a int8 --k 4 --format-d int33"),
                "int33: expected int2 to int32 for two's complement");
  check_refused(s.run(device("true") + ports), "device: ");
  s.file("own.json", R"({"numemu_unit": 1, "name": "my.own", "a": "float8_e4m3fn", )"
                     R"("b": "float8_e4m3fn", "c": "float32", "d": "float32", "core": "fused", )"
                     R"("k": 32, "alignment": {"fraction_bits": 19}, )"
                     R"("accumulator": {"format": "e8m13", "rounding": "rtz"}})");
  CHECK(s.run("vectors --unit own.json --n 500 --out v").code == 0);
  const Result run = s.run("identify --in v --like own.json");
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Contains("answers as my.own"));
}

TEST_CASE("identify: a device that always gives the same fits nothing", "[fast]") {
  const Scratch s;
  const Result run = s.run(
      device("while read q; do case $q in \"#\"*) ;; *) echo 3f800000;; esac; done") + kPorts);
  CHECK(run.code == 1);
  CHECK_THAT(run.out, Contains("No rule fits."));
  CHECK_THAT(run.out, Contains("First contradiction"));
}

TEST_CASE("identify: live, over standard input and output", "[fast]") {
  const Scratch s;
  if (!compiles_example(s)) return;
  REQUIRE(std::system(("mkfifo " + s.path + "/answers").c_str()) == 0);
  const Result run = s.run("identify --live" + kPorts +
                           " --confirm 10 <answers 2>report | ./dot 4 >answers; cat report");
  CHECK_THAT(run.out, Contains("answers as neutral.f32.sequential"));
}

TEST_CASE("identify: records of a file", "[fast]") {
  const Scratch s;
  // 1 * 1 + 2^-12: kept; the file says what it is about.
  const std::string header =
      "# numemu-vectors 1 unit=intel.emr.vdpbf16ps.bf16.f32 from=bfloat16 to=float32 rounding=rne "
      "overflow=ieee seed=0 level=1 k=2 style=mixed\n";
  s.file("good.txt", header + "3F80 0000 3F80 0000 00000000 3F800000 # one\n");
  const Result good = s.run("identify --in good.txt");
  CHECK(good.code == 1);
  CHECK_THAT(good.out, StartsWith("Not decided: 0 of 1 records"));
  CHECK_THAT(good.out, Contains("answers as intel.emr.vdpbf16ps.bf16.f32"));
  CHECK_THAT(good.out, Contains("This question would decide whether: "));
  s.file("wrong.txt", header + "3F80 0000 3F80 0000 00000000 3F800001\n");
  check_refused(s.run("identify --in good.txt --out good.txt"),
                "--out and --in: expected two files, found good.txt twice");
  s.file("both.txt", read_file(s.path + "/good.txt") + "# comment\n" +
                         "3F80 0000 3F80 0000 00000000 3F800001\n");
  const Result both = s.run("identify --in both.txt");
  CHECK(both.code == 1);
  CHECK_THAT(both.out, StartsWith("The records are not reproducible: line 4 answers 0x3f800001 to "
                                  "the question of line 2, which has 0x3f800000 (1 such in all):"));
  const Result wrong = s.run("identify --in wrong.txt");
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.out, Contains("answered 0x3f800001 where the nearest gives 0x3f800000"));
  s.file("short.txt", header + "3F80 0000 3F80\n");
  check_refused(s.run("identify --in short.txt"), "short.txt: line 2: expected 7 words");
  s.file("none.txt", header);
  check_refused(s.run("identify --in none.txt"), "expected at least one record");
  check_refused(s.run("identify --in absent.txt"), "absent.txt");
}

TEST_CASE("identify: records as vectors makes them, in each form, gzip, from a pipe", "[fast]") {
  const Scratch s;
  const auto vectors = [&](const std::string& unit, const std::string& rest) {
    CHECK(s.run("vectors --unit " + unit + " --n 200 " + rest).code == 0);
  };
  for (const std::string form : {"text", "csv", "jsonl"}) {
    INFO(form);
    vectors("nvidia.h100.wgmma.e4m3.f32", "--out v --file-format " + form);
    const Result r = s.run("identify --in v");
    CHECK(r.code == 0);
    CHECK_THAT(r.out, Contains("answers as nvidia.h100.wgmma.e4m3.f32"));
  }
  REQUIRE(std::system(("gzip " + s.path + "/v").c_str()) == 0);
  CHECK(s.run("identify --in v.gz").code == 0);
  CHECK(s.run("identify --in - <v.gz").code == 0);
  vectors("neutral.mac.float16.sr8", "--format-a e4m3fn --k 4 --out sr");
  check_refused(s.run("identify --in sr"), "sr: line 1: expected a unit without random numbers");
}

}  // namespace identify_test
