// numemu vectors: what it prints, files of every form, the same bytes for any threads, refusals.
#include <algorithm>

#include "tests/cli/program.hpp"

namespace numemu::test::vectors_test {
namespace {

TEST_CASE("vectors: a header line, then records with their class", "[fast]") {
  const Scratch s;
  const Result r = s.call("vectors --op mul --format float16 --style exhaustive --n 2");
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(
      r.out ==
      "# numemu-vectors 1 op=mul from=float16 to=float16 rounding=rne overflow=ieee seed=0 level=1 "
      "style=exhaustive\n0000 0000 0000 00 # exhaustive\n0000 0001 0000 00 # exhaustive\n");
}

TEST_CASE("vectors: the same bytes for any number of threads, in files and streams", "[fast]") {
  const Scratch s;
  for (const std::string subject :
       {"--op convert --from float32 --to float8_e4m3fn --rounding 'sr(8)' --n 40000",
        "--unit h100.wgmma.e4m3.f32 --k 32 --seed 3 --n 900"}) {
    INFO(subject);
    for (const std::string form : {"text", "csv", "jsonl"}) {
      const std::string run = "vectors --quiet " + subject + " --file-format " + form;
      const Result one = s.call(run + " --threads 1"), two = s.call(run + " --threads 2");
      REQUIRE(one.code == 0);
      CHECK(one.out == two.out);
      CHECK(s.call(run + " --out v.txt").out.empty());
      CHECK(read_file(s.path + "/v.txt") == one.out);
    }
    REQUIRE(s.call("vectors --quiet --threads 1 --file-format npz --out 1.npz " + subject).code ==
            0);
    REQUIRE(s.call("vectors --quiet --threads 2 --file-format npz --out 2.npz " + subject).code ==
            0);
    CHECK(read_file(s.path + "/1.npz") == read_file(s.path + "/2.npz"));
  }
}

TEST_CASE("vectors: a file for each port", "[fast]") {
  const Scratch s;
  REQUIRE(s.call("vectors --unit h100.wgmma.e4m3.f32 --k 4 --n 3 --file-format readmemh --out tb")
              .code == 0);
  for (const std::string port : {"a", "b", "c", "d", "flags"}) {
    INFO(port);
    const std::string text = read_file(s.path + "/tb." + port + ".hex");
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);
    CHECK(text.rfind("// numemu-vectors 1 unit=nvidia.h100.wgmma.e4m3.f32 ", 0) == 0);
  }
}

TEST_CASE("vectors: a SystemVerilog package beside the files of its ports", "[fast]") {
  const Scratch s;
  const std::string run = "vectors --quiet --unit h100.wgmma.e4m3.f32 --k 4 --n 9000";
  REQUIRE(s.call(run + " --file-format readmemh --out plain").code == 0);
  for (const std::string threads : {"1", "2"}) {
    REQUIRE(s.call(run + " --threads " + threads + " --file-format sv --out tb").code == 0);
    for (const std::string port : {"a", "b", "c", "d", "flags"})
      CHECK(read_file(s.path + "/tb." + port + ".hex") ==
            read_file(s.path + "/plain." + port + ".hex"));
    const std::string classes = read_file(s.path + "/tb.class.hex");
    CHECK(std::count(classes.begin(), classes.end(), '\n') == 9001);
    CHECK_THAT(read_file(s.path + "/tb_pkg.sv"), Catch::Matchers::Contains("int N = 9000;"));
  }
  CHECK(s.call("verify --in tb").code == 0);
}

TEST_CASE("vectors: wrong options are refused before any output", "[fast]") {
  const Scratch s;
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    INFO(arguments);
    check_refused(s.call("vectors " + arguments), text);
  };
  refused("", "expected --unit or --op, one of them");
  refused("--op mul", "expected --format F, the format of the operands");
  refused("--op convert --from float16", "expected --to F");
  refused("--op mul --unit exact --format float16", "--unit, --op: expected one of them");
  refused("--unit h100.wgmma.e4m3.f32 --to float32",
          "--to: expected with --op: a unit has its own");
  refused("--unit h100.wgmma.e4m3.f32 --rounding rne",
          "--rounding: expected with --op: a unit has its own");
  s.file("u.json", R"({"numemu_unit": 1, "name": "my.chain", "core": "chain",
                      "accumulator": {"format": "float32"}})");
  refused("--unit u.json --format-a float16 --n 3 --out u.json",
          "--out and --unit: expected two files, found u.json twice");
  refused("--unit exact", "unit neutral.exact: expected a format: it takes any");
  refused("--op mull --format float16", "did you mean 'mul'?");
  refused("--op remainder --format float16",
          "'remainder'; known: convert, mul, add, fma, dot, sub, div, sqrt");
  refused("--op lt --format float16 --to float16", "lt to float16: expected uint1, 0 or 1");
  refused("--op to_integer --format float16", "expected --to F");
  refused("--op sqrt --format int64", "sqrt to int64: expected a result of at most 61 bits");
  refused("--op mul --format float16 --k 4", "--k: expected with --op dot or --unit");
  refused("--op mul --format float32 --style exhaustive",
          "style exhaustive: expected at most 2^32 inputs, mul of float32 to float32 has more");
  refused("--op mul --format float4_e2m1fn --style exhaustive --n 257",
          "--n: expected at most 256, the inputs there are, found 257");
  refused("--op mul --format float16 --file-format npz",
          "--out: expected a file with --file-format npz");
  refused("--op mul --format float16 --file-format sv",
          "--out: expected a prefix of files with --file-format sv");
  refused(
      "--op mul --format float16 --file-format sv --out my-vectors",
      "--out: expected a prefix whose name has letters, digits and _, the package being NAME_pkg");
  refused("--op mul --format float16 --file-format npz --out x.npz --n 1000000000",
          "--n: expected at most ");
  const std::string codes = "--unit intel.emr.tdpbssd --requantize float ";
  refused(codes + "--factor f.npy", "--factor: expected one number for all records, found 'f.npy'");
  refused("--op fma --format float64 --rounding 'sr(20)'",
          "expected at most 9 random bits, found 20");
}

}  // namespace
}  // namespace numemu::test::vectors_test
