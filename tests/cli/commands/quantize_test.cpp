// numemu quantize from outside: arrays, sidecars, summaries, and inputs refused in one line.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "formats/scaling/quantize_blocks.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/sidecar.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace quantize_test {

namespace {

using namespace numemu;
using Catch::Contains;
using namespace numemu::test;

constexpr std::int64_t kRows = 5, kColumns = 70;

std::vector<float> numbers() {
  std::vector<float> x;
  for (int i = 0; i < kRows * kColumns; ++i)
    x.push_back(std::ldexp(static_cast<float>((i * 7919) % 509 - 254), i % 13 - 10));
  return x;
}

/// A scratch folder with x.npy, the numbers above in shape (5, 70).
struct Folder : test::Scratch {
  std::vector<float> x = numbers();
  Folder() { write_npy(path + "/x.npy", ArrayType::float32, {kRows, kColumns}, x.data()); }
  Array npy(const std::string& name) const { return read_npy(path + "/" + name); }
  void floats(const std::string& name, const ArrayShape& shape, const std::vector<float>& v) const {
    write_npy(path + "/" + name, ArrayType::float32, shape, v.data());
  }
};

bool same_bytes(const Array& array, const void* expected, std::size_t bytes) {
  return array.data.size() == static_cast<std::int64_t>(bytes) &&
         std::memcmp(array.data.data(), expected, bytes) == 0;
}

}  // namespace

TEST_CASE("quantize writes what the library computes", "[fast]") {
  const Folder s;
  const Result result = s.call(
      "quantize --block mxfp4 --in x.npy --out y.npy --codes c.npy --scales s.npy --axis 0 "
      "--scale-rule ceil --rounding 'sr(8)' --seed 5");
  REQUIRE(result.code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(result.out, Contains("y.npy: mxfp4 sr(8) saturate scale rule ceil, [5, 70]") &&
                             Contains("70 scales") && Contains("inexact") && Contains(" dB"));
  BlockQuantization how;
  how.format = &find_block_format("mxfp4");
  how.rule = &find_scale_rule("ceil", *how.format);
  how.element.rounding = parse_rounding("sr(8)");
  how.element.random.seed = 5;
  std::vector<float> y(s.x.size());
  std::vector<std::uint8_t> codes(s.x.size()), scales(kColumns);
  quantize_blocks(how, block_layout(*how.format, {kRows, kColumns}, 0), s.x.data(),
                  {codes.data(), scales.data(), nullptr, nullptr}, y.data());
  CHECK(s.npy("y.npy").shape == ArrayShape{kRows, kColumns});
  CHECK(s.npy("s.npy").shape == ArrayShape{1, kColumns});
  CHECK(same_bytes(s.npy("y.npy"), y.data(), 4 * y.size()));
  CHECK(same_bytes(s.npy("c.npy"), codes.data(), codes.size()));
  CHECK(same_bytes(s.npy("s.npy"), scales.data(), scales.size()));
  const Sidecar about = read_sidecar(s.path + "/c.npy").value();
  CHECK(about.format == "float4_e2m1fn");
  CHECK(about.block == "mxfp4");
  CHECK(about.axis == 0);
  CHECK(about.logical_shape == ArrayShape{kRows, kColumns});
  CHECK(about.rounding == "sr(8)");
  CHECK(about.overflow == "saturate");
  CHECK(about.scale_rule == "ceil");
  CHECK(about.seed == 5);
  CHECK(read_sidecar(s.path + "/s.npy").value().format == "float8_e8m0fnu");
}

TEST_CASE("arrays have the shapes and types of the contract", "[fast]") {
  const Folder s;
  struct Case {
    const char* options;
    ArrayType codes, scales;
    ArrayShape shape;
  };
  const Case cases[] = {
      {"--block mxint8", ArrayType::uint8, ArrayType::uint8, {5, 3}},
      {"--block nvfp4", ArrayType::uint8, ArrayType::uint8, {5, 5}},
      {"--block 'group(int4,128,float16)' --axis 0", ArrayType::uint8, ArrayType::uint16, {1, 70}},
      {"--block 'group(int4,128,bf16)'", ArrayType::uint8, ArrayType::uint16, {5, 1}},
      {"--block 'mx(float16,32)'", ArrayType::uint16, ArrayType::uint8, {5, 3}},
      {"--format int8 --granularity tensor", ArrayType::uint8, ArrayType::float32, {}},
      {"--format int8 --granularity channel", ArrayType::uint8, ArrayType::float32, {70}},
      {"--format e4m3fn --granularity channel --axis 0", ArrayType::uint8, ArrayType::float32, {5}},
      {"--format int8 --granularity row", ArrayType::uint8, ArrayType::float32, {5}},
      {"--format int8 --granularity block", ArrayType::uint8, ArrayType::float32, {5, 3}},
      {"--format int8 --granularity block --block-size 7",
       ArrayType::uint8,
       ArrayType::float32,
       {5, 10}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.options);
    const Result result = s.call(std::string("quantize ") + one.options +
                                 " --in x.npy --out y.npy --codes c.npy --scales s.npy");
    REQUIRE(result.code == 0);
    CHECK(s.npy("y.npy").type == ArrayType::float32);
    CHECK(s.npy("c.npy").type == one.codes);
    CHECK(s.npy("c.npy").shape == ArrayShape{kRows, kColumns});
    CHECK(s.npy("s.npy").type == one.scales);
    CHECK(s.npy("s.npy").shape == one.shape);
  }
  REQUIRE(s.call("quantize --block nvfp4 --in x.npy --out y.npy --tensor-scale t.npy").code == 0);
  CHECK(s.npy("t.npy").shape.empty());
  CHECK(s.npy("t.npy").type == ArrayType::float32);
  REQUIRE(s.call("quantize --block 'group(uint4,32,float16,zp)' --in x.npy --out y.npy "
                 "--zero-points z.npy")
              .code == 0);
  CHECK(s.npy("z.npy").type == ArrayType::uint8);
  CHECK(s.npy("z.npy").shape == ArrayShape{5, 3});
  REQUIRE(s.call("quantize --block 'group(uint4,32,float16,min)' --in x.npy --out y.npy "
                 "--zero-points z.npy")
              .code == 0);
  CHECK(s.npy("z.npy").type == ArrayType::float32);
}

TEST_CASE("the summary says what was done", "[fast]") {
  const Folder s;
  s.floats("odd.npy", {4, 2}, {7, 1, 0, 0, NAN, 1, 1, HUGE_VALF});
  const Result text = s.call("quantize --block 'mx(e2m1,2)' --in odd.npy --out y.npy");
  CHECK_THAT(text.out, Contains("4 scales, 1 zero blocks, 2 NaN blocks, 8 bits: 1 inexact, 0 "
                                "underflow, 1 overflow, 0 invalid"));
  const Json json =
      Json::parse(s.call("quantize --block nvfp4 --in x.npy --out y.npy --json --quiet").out);
  CHECK(json["block"] == "nvfp4");
  CHECK(json["format"] == "float4_e2m1fn");
  CHECK(json["axis"] == 1);
  CHECK(json["rounding"] == "rne");
  CHECK(json["overflow"] == "saturate");
  CHECK(json["scale_rule"] == "absmax");
  CHECK(json["scale_rounding"] == "rne");
  CHECK(json["n"] == 350);
  CHECK(json["blocks"] == 25);
  CHECK(json["bits_per_element"] == Approx(4 + (25 * 8 + 32) / 350.0));
  CHECK(json["tensor_scale"].get<double>() > 0);
  const double sqnr = json["sqnr_db"];
  const Array y = s.npy("y.npy");
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    signal += std::pow(s.x[i], 2);
    noise += std::pow(double{y.as<float>()[i]} - s.x[i], 2);
  }
  CHECK(sqnr == Approx(10 * std::log10(signal / noise)));
  CHECK_THAT(s.call("quantize --block mxfp4 --in odd.npy --out y.npy --nonfinite ignore").out,
             Contains("1 invalid"));
  s.floats("exact.npy", {2}, {6, 1});
  CHECK_THAT(s.call("quantize --block mxfp4 --in exact.npy --out y.npy").out,
             Contains("SQNR infinite"));
  CHECK(
      Json::parse(s.call("quantize --block mxfp4 --in exact.npy --out y.npy --json").out)["sqnr_db"]
          .is_null());
}

TEST_CASE("switches reach the library", "[fast]") {
  const Folder s;
  s.floats("v.npy", {4}, {-1.999f, 1.999f, 0.25f, 0.5f});
  const auto first = [&](const std::string& options) {
    REQUIRE(s.call("quantize --in v.npy --out y.npy " + options).code == 0);
    return s.npy("y.npy").as<float>()[0];
  };
  CHECK(first("--block mxint8") == -127 / 64.0f);
  CHECK(first("--block mxint8 --full-range") == -2);
  CHECK(first("--block nvfp4 --no-tensor-scale") != first("--block nvfp4"));
  s.floats("v.npy", {2}, {-5.2f, 1});
  CHECK(first("--block mxfp4 --rounding rdn") == -6);
  CHECK(first("--block mxfp4 --rounding rup") == -4);
  s.floats("v.npy", {2}, {127.3f, 1});  // 127.3 / 127 lies between float8_e4m3fn's 1 and 1.125
  CHECK(first("--block 'group(int8,2,e4m3fn)' --scale-round rne") == 127);
  CHECK(first("--block 'group(int8,2,e4m3fn)'") == 113 * 1.125f);
  CHECK(first("--block 'group(bf16,2,float32)' --scale-rule none") == 127.5f);
  s.floats("v.npy", {2}, {0x1.fp15f, 1});  // 63488 rounds beyond 57344, the largest of float8_e5m2
  CHECK(first("--block 'mx(e5m2,2)'") == 57344);
  CHECK(std::isinf(first("--block 'mx(e5m2,2)' --overflow ieee")));
  const std::vector<std::uint32_t> words(2, 255);
  write_npy(s.path + "/r.npy", ArrayType::uint32, {2}, words.data());
  s.floats("v.npy", {2}, {4.1f, 1});
  CHECK(first("--block mxfp4 --rounding 'sr(8)' --random-bits r.npy") == 6);
}

TEST_CASE("float16 is widened, codes need --from", "[fast]") {
  const Folder s;
  const std::uint16_t halves[2] = {0x3c00, 0xc100};
  write_npy(s.path + "/h.npy", ArrayType::float16, {2}, halves);
  REQUIRE(s.call("quantize --block mxfp4 --in h.npy --out y.npy").code == 0);
  CHECK(s.npy("y.npy").as<float>()[1] == -2);
  write_npy(s.path + "/u.npy", ArrayType::uint16, {2}, halves);
  check_refused(s.call("quantize --block mxfp4 --in u.npy --out y.npy"),
                "float64 numbers (for codes: --from FORMAT), found uint16");
  REQUIRE(s.call("quantize --block mxfp4 --in u.npy --from float16 --out y.npy").code == 0);
  CHECK(s.npy("y.npy").as<float>()[1] == -2);
  const std::uint16_t brains[2] = {0x3f80, 0xc000};  // 1, -2
  write_npy(s.path + "/u.npy", ArrayType::uint16, {2}, brains);
  REQUIRE(s.call("quantize --block mxfp4 --in u.npy --from bfloat16 --out y.npy").code == 0);
  CHECK(s.npy("y.npy").as<float>()[1] == -2);
  check_refused(s.call("quantize --block mxfp4 --in u.npy --from bfloat --out y.npy"),
                "unknown format 'bfloat'");
}

TEST_CASE("float64 and signed integers that are float32 numbers are taken", "[fast]") {
  const Folder s;
  const std::string command = "quantize --block mxfp4 --in d.npy --out y.npy";
  const auto taken = [&](ArrayType type, const void* data) {
    write_npy(s.path + "/d.npy", type, {3}, data);
    const Result result = s.call(command);
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    CHECK(s.npy("y.npy").as<float>()[1] == -2);
  };
  const auto refused = [&](ArrayType type, const void* data, const std::string& text) {
    write_npy(s.path + "/d.npy", type, {3}, data);
    check_refused(s.call(command), text);
  };
  const double doubles[3] = {1, -2, 0x1p-149}, nan[3] = {1, -2, NAN}, tenth[3] = {1, 0.1, 0.2},
               huge[3] = {1, -2, 1e39};
  taken(ArrayType::float64, doubles);
  write_npy(s.path + "/d.npy", ArrayType::float64, {3}, nan);
  CHECK_THAT(s.call(command).out, Contains("1 NaN blocks"));
  refused(ArrayType::float64, tenth, "d.npy: element 1 is 0.1, which float32 cannot represent");
  refused(ArrayType::float64, huge, "d.npy: element 2 is 1e+39, which float32 cannot represent");
  const std::int8_t bytes[3] = {1, -2, 0};
  const std::int16_t shorts[3] = {1, -2, 3};
  const std::int32_t words[3] = {1, -2, 4}, wide[3] = {1, -2, INT32_MAX};
  const std::int64_t longs[3] = {1, -2, 4}, longest[3] = {INT64_MIN, INT64_MAX, 0};
  taken(ArrayType::int8, bytes);
  taken(ArrayType::int16, shorts);
  taken(ArrayType::int32, words);
  taken(ArrayType::int64, longs);
  refused(ArrayType::int32, wide, "d.npy: element 2 is 2147483647, which float32 cannot represent");
  refused(ArrayType::int64, longest,
          "d.npy: element 1 is 9223372036854775807, which float32 cannot");
}

TEST_CASE("bad usage of quantize is one line", "[fast]") {
  const Folder s;
  const std::string io = " --in x.npy --out y.npy";
  const auto refused = [&](const std::string& options, const std::string& text) {
    CAPTURE(options);
    check_refused(s.call("quantize " + options + io), text);
  };
  refused("", "expected --block B, or --format F with --granularity G");
  refused("--block mxfp5", "did you mean 'mxfp4'");
  refused("--block 'mx(e2m1,0)'", "size = 0 is outside");
  refused("--block mxfp4 --format int8", "--format");
  refused("--format int8",
          "--format: expected together with --granularity tensor, channel, row, block or tile");
  refused("--format int8 --granularity tenser", "did you mean 'tensor'");
  refused("--format int8 --granularity row --block-size 8",
          "--block-size: expected together with --granularity block");
  refused("--format int8 --granularity block --block-size 0", "--block-size");
  refused("--format float64 --granularity row", "group(float64,row,float32)");
  refused("--block mxfp4 --axis 2", "x.npy: axis 2 is outside -2..1");
  refused("--block mxfp4 --axis x", "--axis");
  refused("--block mxfp4 --rounding rnd", "unknown rounding");
  refused("--block mxfp4 --overflow wrap", "unknown overflow");
  refused("--block mxfp4 --scale-rule flor", "did you mean 'floor'");
  refused("--block mxfp4 --scale-rule absmax",
          "scale rule 'absmax' has no scales for mxfp4, expected ");
  refused("--block nvfp4 --scale-rule floor", "has no scales for nvfp4, expected ");
  refused("--block mxfp4 --tensor-scale t.npy", "--tensor-scale: mxfp4 has no tensor scale");
  refused("--block mxfp4 --no-tensor-scale", "--no-tensor-scale: mxfp4 has no tensor scale");
  refused("--block mxfp4 --zero-points z.npy", "--zero-points: mxfp4 has no zero points");
  refused("--block mxfp4 --full-range", "--full-range: mxfp4 has no symmetric integers");
  refused("--block mxfp4 --scale-round rne", "--scale-round: the scales of mxfp4");
  refused("--block mxfp4 --scale-round up", "--scale-round");
  for (const char* span : {"tensor", "row"}) {
    refused(std::string("--format int8 --axis 0 --granularity ") + span,
            "has no blocks or channels along an axis");
  }
  refused("--format int8 --granularity tile --tile 4", "--tile: expected ROWS,COLUMNS");
  refused("--format int8 --granularity row --tile 4,4", "--tile: expected together with");
  refused("--format int8 --granularity tile --axis 0", "has no blocks or channels along an axis");
  refused("--format 'posit(99)' --granularity row", "N is '99', expected 3 to 16");
  refused("--block mxfp4 --scales-in s.npy --scale-rule floor", "--scales-in: not allowed with");
  refused("--format int8 --granularity row --scales-in s.npy --scale-round rne",
          "--scale-round: not allowed with --scales-in, whose scales are not rounded");
  refused("--block mxfp4 --tensor-scale-in t.npy", "mxfp4 has no tensor scale");
  s.floats("given.npy", {1}, {1});
  refused("--format int8 --granularity row --scales-in given.npy", "given.npy: shape: expected");
  refused("--block mxfp4 --nonfinite drop", "--nonfinite");
  check_refused(s.call("quantize --block mxfp4 --in x.npy --out /dev/null"), "/dev/null");
  refused("--block mxfp4 --seed -1", "--seed");
  check_refused(s.call("quantize --block mxfp4 --in none.npy --out y.npy"),
                "none.npy: cannot open");
  s.floats("scalar.npy", {}, {1});
  check_refused(s.call("quantize --block mxfp4 --in scalar.npy --out y.npy"),
                "scalar.npy: a scalar");
  s.floats("nan.npy", {2}, {NAN, 1});
  check_refused(s.call("quantize --block 'group(int4,2,hfp8_e4m3)' --in nan.npy --out y.npy"),
                "has no NaN");
  s.floats("r.npy", {2}, {1, 1});
  refused("--block mxfp4 --rounding 'sr(8)' --random-bits r.npy", "r.npy: dtype");
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy"));
}

TEST_CASE("given scales are those of the result", "[fast]") {
  const Folder s;
  for (const std::string block :
       {"--block nvfp4", "--block mxfp6_e3m2", "--format nf4 --granularity tile --tile 2,8"}) {
    CAPTURE(block);
    REQUIRE(
        s.call("quantize " + block + " --in x.npy --out y.npy --scales s.npy --codes c.npy").code ==
        0);
    const Result again = s.call("quantize " + block + " --in x.npy --out y2.npy --scales-in s.npy");
    INFO(again.err);
    REQUIRE(again.code == 0);
    CHECK_THAT(again.out, Contains("scale rule given"));
    CHECK(test::read_file(s.path + "/y.npy") == test::read_file(s.path + "/y2.npy"));
  }
}

TEST_CASE("a given scale of 0 is refused but for blocks of zeros", "[fast]") {
  const Folder s;
  std::vector<float> x(48, 0.0f);
  x[21] = -1.5f;
  s.floats("v.npy", {3, 16}, x);
  const auto call = [&](const std::vector<std::uint8_t>& scales) {
    write_npy(s.path + "/s.npy", ArrayType::uint8, {3, 1}, scales.data());
    return s.call("quantize --block nvfp4 --in v.npy --out z.npy --scales-in s.npy --quiet");
  };
  check_refused(call({0, 0, 0}),
                "s.npy: element 1 is 0, expected a scale above 0 for a block whose element 21 of x "
                "is -1.5");
  CHECK_FALSE(std::filesystem::exists(s.path + "/z.npy"));
  CHECK(call({0, 0x38, 0}).code == 0);
  // Without a tensor scale no block has a scale of 0, as in dequantize.
  const std::vector<float> zeros(3);
  s.floats("f.npy", {3, 1}, zeros);
  check_refused(s.call("quantize --block 'group(int4,16,float32)' --in v.npy --out z.npy "
                       "--scales-in f.npy"),
                "f.npy: element 0 is 0 (code 0x0), expected a scale of float32 above 0");
}

TEST_CASE("a SQNR that is none says so", "[fast]") {
  const Folder s;
  const auto summary = [&](const std::vector<float>& v, const std::string& more) {
    s.floats("v.npy", {static_cast<std::int64_t>(v.size())}, v);
    return s.call("quantize --block mxfp4 --in v.npy --out y.npy " + more).out;
  };
  CHECK_THAT(summary({NAN, 1}, ""), Contains("SQNR undefined (no finite element)"));
  CHECK_THAT(summary({}, ""), Contains("SQNR undefined (no finite element)"));
  CHECK_THAT(summary({0, 0}, ""), Contains("SQNR undefined (only zeros)"));
  CHECK_THAT(summary({1.1f, NAN, 2}, "--nonfinite ignore"),
             Contains(" dB over ") && Contains(" of 3 elements, the finite ones"));
  const Json none = Json::parse(summary({NAN, 1}, "--json"));
  CHECK(none["sqnr_db"].is_null());
  CHECK(none["sqnr"] == "undefined");
  CHECK(none["sqnr_elements"] == 0);
  CHECK(Json::parse(summary({6, 1}, "--json"))["sqnr"] == "infinite");
  CHECK(Json::parse(summary({5.1f, 1}, "--json"))["sqnr"] == "measured");
}

TEST_CASE("an element times its scale beyond float32 is counted", "[fast]") {
  const Folder s;
  s.floats("v.npy", {2}, {3.4e38f, 1});
  const std::string run = "quantize --block mxfp4 --in v.npy --out y.npy --scale-rule ";
  // 4 x 2^126: a number of the format under a scale that it has, and infinite in float32.
  CHECK_THAT(s.call(run + "ceil").out,
             Contains("0 overflow") && Contains("; 1 finite number became infinite"));
  CHECK(Json::parse(s.call(run + "ceil --json").out)["became_infinite"] == 1);
  CHECK_THAT(s.call(run + "floor").out, !Contains("infinite"));
  CHECK(Json::parse(s.call(run + "floor --json").out)["became_infinite"] == 0);
}

TEST_CASE("arrays are not written to names of other kinds of files", "[fast]") {
  const Folder s;
  s.floats("v.npy", {2}, {1, 2});
  test::check_refusals(
      s, {{"quantize --block mxfp4 --in v.npy --out y.txt", "--out: y.txt: expected a .npy"},
          {"quantize --block mxfp4 --in v.npy --out y.npy --codes c.csv", "--codes: c.csv"},
          {"encode --format e4m3fn --in v.npy --out c.json", "--out: c.json"},
          {"mask --rule 'greedy(1:2)' --in v.npy --out y.npz", "--out: y.npz"}});
}

TEST_CASE("codes that cannot be decoded later are warned of", "[fast]") {
  const Folder s;
  const auto warning = [&](const std::string& options) {
    const Result result = s.call("quantize --in x.npy --out y.npy --codes c.npy " + options);
    CHECK(result.code == 0);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == (result.err.empty() ? 0 : 1));
    return result.err;
  };
  CHECK_THAT(warning("--block mxfp4"),
             Contains("warning: c.npy:") && Contains("the output of --scales\n"));
  CHECK(warning("--block mxfp4 --quiet").empty());
  CHECK(warning("--block mxfp4 --scales s.npy").empty());
  CHECK_THAT(warning("--block nvfp4"), Contains("the output of --scales and --tensor-scale\n"));
  CHECK_THAT(warning("--block nvfp4 --scales s.npy"), Contains("the output of --tensor-scale\n"));
  CHECK(warning("--block nvfp4 --scales s.npy --tensor-scale t.npy").empty());
  CHECK(warning("--block nvfp4 --scales s.npy --no-tensor-scale").empty());
  // Those that were given are there.
  CHECK_THAT(warning("--block nvfp4 --scales-in s.npy"),
             Contains("the output of --tensor-scale\n"));
  CHECK(warning("--block nvfp4 --scales-in s.npy --tensor-scale-in t.npy").empty());
  for (const std::string affine : {"zp", "min"}) {
    const std::string block = "--block 'group(uint4,32,float16," + affine + ")' --scales s.npy";
    CHECK_THAT(warning(block), Contains("the output of --zero-points\n"));
    CHECK(warning(block + " --zero-points z.npy").empty());
  }
  CHECK(s.call("quantize --block mxfp4 --in x.npy --out y.npy").err.empty());
}

TEST_CASE("quantize writes every array to a file of its own", "[fast]") {
  const Folder s;
  const auto refused = [&](const std::string& options) {
    CAPTURE(options);
    check_refused(s.call("quantize --block mxfp4 --in x.npy " + options),
                  "expected two files, found");
  };
  refused("--out y.npy --codes y.npy");
  refused("--out y.npy --codes c.npy --scales ./c.npy");
  refused("--out c.npy.json --codes c.npy");
  refused("--out y.npy --codes x.npy");
  refused("--out r.npy --rounding 'sr(8)' --random-bits r.npy");
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy"));
  CHECK(s.call("quantize --block mxfp4 --in x.npy --out x.npy").code == 0);
}

TEST_CASE("quiet: --quiet leaves out the summary of quantize", "[fast]") {
  const Folder s;
  const std::string command = "quantize --block mxfp4 --in x.npy --out y.npy --quiet";
  CHECK(s.call(command).out.empty());
  CHECK(s.npy("y.npy").shape == ArrayShape{kRows, kColumns});
  CHECK(Json::parse(s.call(command + " --json").out)["block"] == "mxfp4");
}

}  // namespace quantize_test
