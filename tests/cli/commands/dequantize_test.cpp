// numemu dequantize from outside: the inverse of quantize, and arrays that contradict.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/gguf_zeros.hpp"

namespace dequantize_test {

namespace {

using namespace numemu;
using Catch::Contains;
using namespace numemu::test;

constexpr std::int64_t kRows = 6, kColumns = 40;

struct Folder : test::Scratch {
  Folder() {
    std::vector<float> x;
    for (int i = 0; i < kRows * kColumns; ++i)
      x.push_back(std::ldexp(static_cast<float>((i * 7919) % 509 - 254), i % 13 - 10));
    write_npy(path + "/x.npy", ArrayType::float32, {kRows, kColumns}, x.data());
    write_npy(path + "/square.npy", ArrayType::float32, {6, 6}, x.data());
  }
  /// Quantizes x.npy into c, s, t or z; the extra arrays are named in `more`.
  void quantize(const std::string& options, const std::string& more = "",
                const std::string& in = "x.npy") const {
    const Result result = call("quantize " + options + " --in " + in +
                               " --out y.npy --codes c.npy --scales s.npy " + more);
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
  }
  Result back(const std::string& options) const {
    return call("dequantize " + options + " --codes c.npy --scales s.npy --out y2.npy");
  }
  bool same() const {
    return test::read_file(path + "/y.npy") == test::read_file(path + "/y2.npy");
  }
  void remove(const std::string& name) const { std::filesystem::remove(path + "/" + name); }
};

}  // namespace

TEST_CASE("dequantize gives y of quantize back", "[fast]") {
  const Folder s;
  for (const std::string block :
       {"--block mxfp4", "--block mxint8", "--block 'mx(e3m2,7)'",
        "--block 'group(int4,16,float16)'", "--block 'group(e5m2,row,bf16)'",
        "--format int8 --granularity tensor", "--format int8 --granularity channel",
        "--format e4m3fn --granularity block --block-size 9",
        "--format nf4 --granularity tile --tile 4,16", "--block 'group(posit(6,1),3x7,bf16)'",
        "--block 'mx(lloyd(normal,16),32)'"}) {
    for (const std::string axis : {"", " --axis 0"}) {
      // Scales of rows and tensors have no axis.
      if (!axis.empty() && (block.ends_with("tensor") || block.find("row") != block.npos ||
                            block.find("tile") != block.npos || block.find("3x7") != block.npos))
        continue;
      CAPTURE(block, axis);
      s.quantize(block + axis);
      CHECK(s.back(block + axis).code == 0);
      CHECK(s.same());
      s.remove("y2.npy");
      // The sidecar has the axis.
      CHECK(s.back(block).code == 0);
      CHECK(s.same());
    }
  }
  s.quantize("--block nvfp4", "--tensor-scale t.npy");
  CHECK(s.back("--block nvfp4 --tensor-scale t.npy").code == 0);
  CHECK(s.same());
  check_refused(s.back("--block nvfp4"),
                "--tensor-scale: expected a file for nvfp4, or --no-tensor-scale where it is 1");
  CHECK(s.back("--block nvfp4 --no-tensor-scale").code == 0);
  CHECK_FALSE(s.same());
  check_refused(s.back("--block nvfp4 --tensor-scale t.npy --no-tensor-scale"),
                "--no-tensor-scale: not allowed with --tensor-scale");
  s.quantize("--block nvfp4 --no-tensor-scale");
  CHECK(s.back("--block nvfp4 --no-tensor-scale").code == 0);
  CHECK(s.same());
  for (const std::string affine : {"zp", "min"}) {
    const std::string block = "--block 'group(uint4,16,float16," + affine + ")'";
    s.quantize(block, "--zero-points z.npy");
    CHECK(s.back(block + " --zero-points z.npy").code == 0);
    CHECK(s.same());
  }
}

TEST_CASE("dequantize: --format finds its granularity in the sidecar or in the shapes", "[fast]") {
  const Folder s;
  for (const std::string granularity : {"tensor", "channel", "row"}) {
    CAPTURE(granularity);
    s.quantize("--format int8 --granularity " + granularity);
    CHECK(s.back("--format int8").code == 0);
    CHECK(s.same());
    s.remove("c.npy.json");
    CHECK(s.back("--format int8").code == 0);
    CHECK(s.same());
  }
  s.quantize("--format int8 --granularity row", "", "square.npy");
  CHECK(s.back("--format int8").code == 0);
  CHECK(s.same());
  s.remove("c.npy.json");
  check_refused(
      s.back("--format int8"),
      "s.npy: shape: [6] fits the channels and the rows of [6, 6]: expected --granularity");
  CHECK(s.back("--format int8 --granularity row").code == 0);
  CHECK(s.same());
  s.quantize("--format int8 --granularity block --block-size 9");
  s.remove("c.npy.json");
  check_refused(s.back("--format int8"), "s.npy: shape: [6, 5] fits neither");
  CHECK(s.back("--format int8 --granularity block --block-size 9").code == 0);
  CHECK(s.same());
}

TEST_CASE("codes of intN may be int8, scales float16", "[fast]") {
  const Folder s;
  const std::int8_t codes[4] = {-7, 7, 0, 3};
  const std::uint16_t half = 0x3800;
  write_npy(s.path + "/c.npy", ArrayType::int8, {4}, codes);
  write_npy(s.path + "/s.npy", ArrayType::float16, {1}, &half);
  REQUIRE(s.back("--block 'group(int4,4,float16)'").code == 0);
  const Array y = read_npy(s.path + "/y2.npy");
  CHECK(y.as<float>()[0] == -3.5f);
  CHECK(y.as<float>()[3] == 1.5f);
  const std::int8_t wide[4] = {-7, 8, 0, 3};
  write_npy(s.path + "/c.npy", ArrayType::int8, {4}, wide);
  check_refused(s.back("--block 'group(int4,4,float16)'"), "c.npy: element 1");
}

TEST_CASE("contradicting arrays and sidecars are refused", "[fast]") {
  const Folder s;
  s.quantize("--block mxfp4");
  check_refused(s.back("--block mxint8"),
                "c.npy.json: block: 'mxfp4' contradicts --block 'mxint8'");
  check_refused(s.back("--block 'mx(e2m1,16)'"), "c.npy.json: block");
  check_refused(s.back("--block mxfp4 --axis 0"), "c.npy.json: axis");
  check_refused(s.back("--format e2m1 --granularity row"), "c.npy.json: block");
  check_refused(s.back("--format int4"), "c.npy.json: block: mxfp4 contradicts --format int4");
  s.remove("c.npy.json");
  check_refused(s.back("--block 'mx(e2m1,16)'"), "s.npy.json: block");
  s.remove("s.npy.json");
  check_refused(s.back("--block 'mx(e2m1,16)'"),
                "s.npy: shape: expected [6, 3] for mx(float4_e2m1fn,16) of [6, 40], found [6, 2]");
  check_refused(s.back("--block mxfp4 --axis 5"), "c.npy: axis 5 is outside");
  check_refused(s.back("--block mxfp4 --zero-points x.npy"), "mxfp4 has no zero points");
  check_refused(s.back("--block mxfp4 --tensor-scale x.npy"), "mxfp4 has no tensor scale");
  check_refused(s.back("--block 'group(uint4,32,float8_e4m3fn,zp)'"), "--zero-points: expected");
  check_refused(s.back(""), "expected --block B");
  check_refused(s.call("dequantize --block mxfp4 --codes c.npy --out y.npy"), "--scales");
  const std::uint8_t wide[2] = {1, 16};
  write_npy(s.path + "/w.npy", ArrayType::uint8, {2}, wide);
  check_refused(s.call("dequantize --block mxfp4 --codes w.npy --scales s.npy --out y.npy"),
                "w.npy: element 1");
  const float two[2] = {1, 2};
  write_npy(s.path + "/t.npy", ArrayType::float32, {2}, two);
  const std::uint8_t one = 0x38;
  write_npy(s.path + "/s1.npy", ArrayType::uint8, {1}, &one);
  const std::uint8_t code = 3;
  write_npy(s.path + "/c1.npy", ArrayType::uint8, {1}, &code);
  check_refused(
      s.call("dequantize --block nvfp4 --codes c1.npy --scales s1.npy --tensor-scale t.npy "
             "--out y.npy"),
      "t.npy: shape: expected [] for a tensor scale, found [2]");
  check_refused(s.call("dequantize --block 'group(int4,32,float16)' --codes c1.npy --scales s1.npy "
                       "--out y.npy"),
                "s1.npy: dtype");
}

TEST_CASE("a contradiction between two sidecars names both, and no option", "[fast]") {
  const Folder s;
  s.quantize("--block mxfp4");
  std::string sidecar = test::read_file(s.path + "/s.npy.json");
  const std::string axis = R"("axis":1)";
  REQUIRE(sidecar.find(axis) != std::string::npos);
  s.file("s.npy.json", sidecar.replace(sidecar.find(axis), axis.size(), R"("axis":0)"));
  check_refused(s.back("--block mxfp4"), "s.npy.json: axis: 0 contradicts c.npy.json: axis: 1");
  check_refused(s.back("--block mxfp4 --axis 1"), "s.npy.json: axis: 0 contradicts --axis 1");
  s.file("s.npy.json", R"({"numemu": "0.1.0", "format": "float8_e4m3fn", "block": "nvfp4"})");
  check_refused(s.back(""), "s.npy.json: block: 'nvfp4' contradicts c.npy.json: block: 'mxfp4'");
  s.file("s.npy.json", R"({"numemu": "0.1.0", "format": "float8_e4m3fn"})");
  check_refused(s.back(""),
                "s.npy.json: format: 'float8_e4m3fn' contradicts mxfp4, whose scales "
                "are 'float8_e8m0fnu'");
}

TEST_CASE("codes, scales and tensor scale of two runs are refused", "[fast]") {
  const Folder s;
  const auto quantized = [&](const std::string& in, const std::string& to) {
    REQUIRE(s.call("quantize --block nvfp4 --in " + in + " --out y.npy --codes " + to +
                   "c.npy --scales " + to + "s.npy --tensor-scale " + to + "t.npy")
                .code == 0);
  };
  quantized("x.npy", "");
  quantized("square.npy", "o");
  const auto back = [&](const std::string& c, const std::string& sc, const std::string& t) {
    return s.call("dequantize --codes " + c + " --scales " + sc + " --tensor-scale " + t +
                  " --out y2.npy");
  };
  CHECK(back("c.npy", "s.npy", "t.npy").code == 0);
  check_refused(back("c.npy", "s.npy", "ot.npy"),
                "c.npy.json: written_with: ot.npy is from another run");
  check_refused(back("c.npy", "os.npy", "t.npy"), " is from another run");
  // float32 numbers have no sidecar of their own.
  const float half = 0.5f;
  write_npy(s.path + "/t.npy", ArrayType::float32, {}, &half);
  check_refused(back("c.npy", "s.npy", "t.npy"), "c.npy.json: written_with: t.npy");
  s.remove("c.npy.json");
  check_refused(back("c.npy", "s.npy", "t.npy"), "s.npy.json: written_with: t.npy");
  s.remove("s.npy.json");
  CHECK(s.call("dequantize --block nvfp4 --codes c.npy --scales s.npy --tensor-scale t.npy "
               "--out y2.npy")
            .code == 0);
}

TEST_CASE("dequantize summarizes", "[fast]") {
  const Folder s;
  s.quantize("--block mxfp4");
  CHECK(s.back("--block mxfp4").out ==
        "y2.npy: float32 of mxfp4 [6, 40], 240 elements, 12 scales\n");
  const auto json = Json::parse(s.back("--block mxfp4 --json").out);
  CHECK(json["block"] == "mxfp4");
  CHECK(json["n"] == 240);
}

TEST_CASE("the sidecar names the block format", "[fast]") {
  const Folder s;
  for (const std::string block : {"--block mxfp4 --axis 0", "--block 'group(int4,16,float16)'",
                                  "--format int8 --granularity row"}) {
    CAPTURE(block);
    s.quantize(block);
    CHECK(s.back("").code == 0);
    CHECK(s.same());
    s.remove("y2.npy");
  }
  s.quantize("--block mxfp4");
  s.remove("c.npy.json");
  CHECK(s.back("").code == 0);  // the sidecar of the scales
  CHECK(s.same());
  s.file("s.npy.json", R"({"numemu": "0.1.0", "block": "mxfp5"})");
  check_refused(s.back(""), "s.npy.json: block: unknown block format 'mxfp5'");
}

TEST_CASE("scales that no quantizer stores are refused by name and place", "[fast]") {
  const Folder s;
  const std::uint8_t codes[2] = {1, 2}, negative[1] = {0xb0}, nan[1] = {0x7f};
  const auto refused = [&](const std::string& block, const std::string& text) {
    CAPTURE(block);
    check_refused(s.back("--block " + block), text);
  };
  write_npy(s.path + "/c.npy", ArrayType::uint8, {2}, codes);
  write_npy(s.path + "/s.npy", ArrayType::uint8, {1}, negative);
  refused("nvfp4 --no-tensor-scale", "s.npy: element 0 is -0.5 (code 0xb0)");
  write_npy(s.path + "/s.npy", ArrayType::uint8, {1}, nan);
  CHECK(s.back("--block nvfp4 --no-tensor-scale").code == 0);
  const float zero = 0, inf = HUGE_VALF, one[2] = {1, -2};
  write_npy(s.path + "/t.npy", ArrayType::float32, {}, &zero);
  refused("nvfp4 --tensor-scale t.npy", "t.npy: element 0 is 0, expected a finite number above 0");
  write_npy(s.path + "/t.npy", ArrayType::float32, {}, &inf);
  refused("nvfp4 --tensor-scale t.npy", "t.npy: element 0 is Inf");
  write_npy(s.path + "/s.npy", ArrayType::float32, {2}, one);
  refused("'group(int4,1,float32)'", "s.npy: element 1 is -2 (code 0xc0000000)");
}

TEST_CASE("dequantize does not write over what it reads", "[fast]") {
  const Folder s;
  s.quantize("--block mxfp4");
  for (const std::string out : {"c.npy", "s.npy", "./c.npy", "c.npy.json", "s.npy.json"}) {
    CAPTURE(out);
    const std::string before = test::read_file(s.path + "/" + out);
    check_refused(s.call("dequantize --codes c.npy --scales s.npy --out " + out),
                  "expected two files, found");
    CHECK(test::read_file(s.path + "/" + out) == before);
  }
}

TEST_CASE("quiet: --quiet leaves out the summary of dequantize", "[fast]") {
  const Folder s;
  s.quantize("--block mxfp4");
  CHECK(s.back("--block mxfp4 --quiet").out.empty());
  CHECK_THAT(s.back("--block mxfp4 --quiet --json").out, Contains("\"block\": \"mxfp4\""));
}

TEST_CASE("dequantize --in reads a tensor of a checkpoint", "[fast]") {
  const Folder s;
  test::write_gguf_zeros(s.path + "/m.gguf", 3, 4);
  const Result result = s.call("dequantize --in m.gguf --out y.npy");
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(result.out == "y.npy: float32 of w (f32, F32) [3, 4], 12 elements\n");
  CHECK(read_npy(s.path + "/y.npy").shape == ArrayShape{3, 4});
  CHECK(s.call("dequantize --in m.gguf --list").out ==
        "f32              F32 [3, 4]                   w\n");
  CHECK_THAT(s.call("dequantize --in m.gguf --list --json").out,
             Contains(R"("tensor": "w")") && Contains(R"("packed": "f32")"));
  s.remove("y.npy");
  check_refused(s.call("dequantize --in m.gguf --tensor v --out y.npy"),
                "m.gguf: no tensor 'v'; it has 'w'");
  check_refused(s.call("dequantize --in m.gguf --packed q4_0 --out y.npy"),
                "m.gguf: tensor 'w': --packed q4_0: the file says F32 [3, 4]");
  check_refused(s.call("dequantize --in m.gguf --packed q4 --out y.npy"),
                "--packed: unknown layout 'q4'");
  check_refused(s.call("dequantize --in m.gguf"), "--out: expected a file");
  check_refused(s.call("dequantize --in m.gguf --codes c.npy --out y.npy"),
                "--in: expected no option of arrays of codes");
  check_refused(s.call("dequantize --in c.npy --scales s.npy --out y.npy"),
                "--in: expected a checkpoint, safetensors or GGUF, found c.npy; for codes: --codes "
                "c.npy");
  check_refused(s.call("dequantize --tensor w --codes c.npy --scales s.npy --out y.npy"),
                "expected together with --in FILE");
  check_refused(s.call("dequantize --codes c.npy --out y.npy"),
                "expected --codes and --scales, or --in FILE");
  std::filesystem::resize_file(s.path + "/m.gguf", 100);
  check_refused(s.call("dequantize --in m.gguf --out y.npy"),
                "tensor 'w': expected 48 bytes at offset 0 of the data, found 4 of data");
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy"));
}

TEST_CASE("dequantize: NVFP4 of another program", "[fast][shared]") {
  const Folder s;
  const std::string file = NUMEMU_SHARED "/cases/nvfp4_packed.safetensors";
  const Result result = s.call("dequantize --in '" + file + "' --out y.npy");
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK(result.out == "y.npy: float32 of l.weight (nvfp4, blocks of 16) [2, 16], 32 elements\n");
}

}  // namespace dequantize_test
