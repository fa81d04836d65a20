// numemu decode from outside: exact numbers, and every file of codes that it must refuse.
#include <cmath>
#include <filesystem>

#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace decode_test {

namespace {

using namespace numemu;
using Catch::Contains;
using namespace numemu::test;

struct Folder : test::Scratch {
  void put(const std::string& name, ArrayType type, const ArrayShape& shape,
           const void* data) const {
    write_npy(path + "/" + name, type, shape, data);
  }
  void codes(const std::string& name, const std::vector<std::uint8_t>& c) const {
    put(name, ArrayType::uint8, {static_cast<std::int64_t>(c.size())}, c.data());
  }
  Array npy(const std::string& name) const { return read_npy(path + "/" + name); }
};

std::vector<float> floats(const Array& array) {
  return {array.as<float>(), array.as<float>() + array.elements()};
}

}  // namespace

TEST_CASE("values are float32 where that is exact", "[fast]") {
  const Folder s;
  s.codes("c.npy", {0x00, 0x80, 0x38, 0xbc, 0x7e, 0x01});
  const Result result = s.call("decode --format e4m3fn --in c.npy --out y.npy");
  CHECK(result.code == 0);
  CHECK(result.out == "y.npy: float32 of float8_e4m3fn [6], 6 elements\n");
  CHECK(result.err.empty());
  const Array y = s.npy("y.npy");
  CHECK(y.type == ArrayType::float32);
  CHECK(floats(y) == std::vector<float>{0.0f, -0.0f, 1.0f, -1.5f, 448.0f, 0x1p-9f});
  CHECK(std::signbit(floats(y)[1]));
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy.json"));
}

TEST_CASE("infinities and NaN stay", "[fast]") {
  const Folder s;
  s.codes("c.npy", {0x7c, 0xfc, 0x7e});
  REQUIRE(s.call("decode --format e5m2 --in c.npy --out y.npy").code == 0);
  const std::vector<float> y = floats(s.npy("y.npy"));
  CHECK(std::isinf(y[0]));
  CHECK(std::isinf(y[1]));
  CHECK(std::signbit(y[1]));
  CHECK(std::isnan(y[2]));
}

TEST_CASE("types: float64 when asked or needed, text beyond", "[fast]") {
  const Folder s;
  s.codes("c.npy", {0x38});
  CHECK_THAT(s.call("decode --format e4m3fn --dtype float64 --in c.npy --out y.npy --json").out,
             Contains("\"dtype\": \"float64\""));
  CHECK(*s.npy("y.npy").as<double>() == 1.0);
  const double x = 1 + 0x1p-52;
  s.put("d.npy", ArrayType::float64, {1}, &x);
  REQUIRE(s.call("decode --format float64 --in d.npy --out y.npy").code == 0);
  CHECK(*s.npy("y.npy").as<double>() == x);
  check_refusals(
      s, {{"decode --format float64 --dtype float32 --in d.npy --out y.npy",
           "d.npy: values of float64 are not exact in float32: use --text or --dtype float64"},
          {"decode --format float64 --dtype float16 --in d.npy --out y.npy", "--dtype"}});
  const std::uint32_t wide = 0x7ffd << 10;  // 2^16382
  s.put("e.npy", ArrayType::uint32, {1}, &wide);
  check_refused(s.call("decode --format e15m10 --in e.npy --out y.npy"),
                "e.npy: values of e15m10 are not exact in float64: use --text");
  CHECK(s.call("decode --format e15m10 --in e.npy --text --out -").out == "0x1p+16382\n");
  REQUIRE(s.call("decode --format e15m10 --in e.npy --text --out y.txt").code == 0);
  CHECK(test::read_file(s.path + "/y.txt") == "0x1p+16382\n");
  REQUIRE(s.call("encode --format e15m10 --in y.txt --text --out again.npy").code == 0);
  CHECK(*s.npy("again.npy").as<std::uint32_t>() == wide);
  check_refused(s.call("decode --format e15m10 --in e.npy --text --dtype float64 --out -"),
                "--dtype: not allowed with --text");
}

TEST_CASE("codes as text", "[fast]") {
  const Folder s;
  s.file("c.txt", "0x38\n0xbc\n");
  const std::string decode = "decode --codes hex --in c.txt ";
  CHECK(s.call(decode + "--format e4m3fn --text --out -").out == "0x1p+0\n-0x1.8p+0\n");
  CHECK(s.run("decode --codes hex --in - --format e4m3fn --text --out - <c.txt").out ==
        "0x1p+0\n-0x1.8p+0\n");
  REQUIRE(s.call(decode + "--format tf32 --out y.npy").code == 0);
  CHECK(s.npy("y.npy").shape == ArrayShape{2});
  check_refusals(s,
                 {{decode + "--out y.npy", "--codes hex: expected --format"},
                  {decode + "--format int4 --packed --out y.npy",
                   "--codes hex: not allowed with --packed, --order or --tensor"},
                  {decode + "--format int4 --out y.npy",
                   "c.txt: line 1: expected a code of int4 within 0..0xf, found 0x38"},
                  {"decode --codes hex --in x.npy --format int4 --out y.npy --codes dec", "hex"}});
}

TEST_CASE("the sidecar says format, packing and order", "[fast]") {
  const Folder s;
  const float x[6] = {1, -2, 3, 4, -6, 0.5f};
  s.put("x.npy", ArrayType::float32, {2, 3}, x);
  for (const std::string order : {"low-first", "high-first"}) {
    REQUIRE(s.call("encode --format e2m1 --in x.npy --out c.npy --packed --order " + order).code ==
            0);
    REQUIRE(s.call("decode --in c.npy --out y.npy").code == 0);
    CHECK(s.npy("y.npy").shape == ArrayShape{2, 3});
    CHECK(floats(s.npy("y.npy")) == std::vector<float>(x, x + 6));
    CHECK(
        s.call("decode --format e2m1 --packed --order " + order + " --in c.npy --out y.npy").code ==
        0);
  }
  // Without the sidecar a row is as many whole codes as fit.
  std::filesystem::remove(s.path + "/c.npy.json");
  check_refused(s.call("decode --in c.npy --out y.npy"),
                "c.npy: expected --format, or a sidecar c.npy.json that names the format");
  REQUIRE(s.call("decode --format e2m1 --packed --order high-first --in c.npy --out y.npy").code ==
          0);
  CHECK(s.npy("y.npy").shape == ArrayShape{2, 4});
  CHECK(floats(s.npy("y.npy")) == std::vector<float>{1, -2, 3, 0, 4, -6, 0.5f, 0});
}

TEST_CASE("sidecars that contradict", "[fast]") {
  const Folder s;
  const float x[6] = {1, -2, 3, 4, -6, 0.5f};
  s.put("x.npy", ArrayType::float32, {2, 3}, x);
  REQUIRE(s.call("encode --format e2m1 --in x.npy --out c.npy").code == 0);
  check_refusals(s,
                 {{"decode --format int4 --in c.npy --out y.npy",
                   "c.npy.json: format: 'float4_e2m1fn' contradicts --format 'int4'"},
                  {"decode --packed --in c.npy --out y.npy",
                   "c.npy.json: packed: false contradicts --packed true"},
                  {"decode --order high-first --in c.npy --out y.npy",
                   "c.npy: expected packed codes for --order, found codes that are not packed"}});
  REQUIRE(s.call("encode --format e2m1 --in x.npy --out c.npy --packed").code == 0);
  check_refused(s.call("decode --order high-first --in c.npy --out y.npy"),
                "c.npy.json: order: low-first contradicts --order high-first");
  const std::string sidecar = test::read_file(s.path + "/c.npy.json");
  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = sidecar;
    changed.replace(changed.find(old), old.size(), text);
    s.file("c.npy.json", changed);
    return s.call("decode --in c.npy --out y.npy");
  };
  check_refused(with("[2,3]", "[2,5]"),
                "c.npy: shape: expected packed rows of 4 bits of the logical_shape [2, 5] in "
                "c.npy.json, found [2, 2]");
  check_refused(with("[2,3]", "[9007199254740992,9007199254740992]"), "c.npy: shape: expected");
  check_refused(with("\"packed\":true,\"order\":\"low-first\"", "\"packed\":false"),
                "c.npy: shape: expected the logical_shape [2, 3] in c.npy.json, found [2, 2]");
  check_refused(
      with("float4_e2m1fn", "float4_e2m1fm"),
      "c.npy.json: format: unknown format 'float4_e2m1fm'; did you mean 'float4_e2m1fn'?");
  check_refused(with("float4_e2m1fn", "bfloat16"),
                "codes of 16 bits cannot be packed: expected 1 to 8 bits");
  check_refused(with("\"axis\"", "\"axes\""),
                "c.npy.json: unknown key 'axes'; did you mean 'axis'?");
  check_refused(with("\"axis\":null", "\"axis\":\"x\""), "c.npy.json: axis: expected an integer");
  check_refused(with("{", "{,"), "c.npy.json: line 1 column 2: not valid JSON");
}

TEST_CASE("codes outside the format, wrong dtypes and padding", "[fast]") {
  const Folder s;
  s.codes("c.npy", {0x0f, 0x07, 0x10});
  check_refused(s.call("decode --format e2m1 --in c.npy --out y.npy"),
                "c.npy: element 2: expected a code of float4_e2m1fn within 0..0xf, found 0x10");
  CHECK(s.call("decode --format e5m2 --in c.npy --out y.npy").code == 0);
  check_refusals(s, {{"decode --format float16 --in c.npy --out y.npy",
                      "c.npy: dtype: expected uint16 or float16 codes of float16, found uint8"},
                     {"decode --format float33 --in c.npy --out y.npy",
                      "unknown format 'float33'; did you mean 'float32'?"}});
  const std::int8_t integers[3] = {-8, 7, -1};
  s.put("i.npy", ArrayType::int8, {3}, integers);
  REQUIRE(s.call("decode --format int4 --in i.npy --out y.npy").code == 0);
  CHECK(floats(s.npy("y.npy")) == std::vector<float>{-8, 7, -1});
  check_refusals(s, {{"decode --format int3 --in i.npy --out y.npy",
                      "i.npy: element 0: expected a code of int3 within -4..3, found -8"},
                     {"decode --format uint4 --in i.npy --out y.npy",
                      "i.npy: dtype: expected uint8 codes of uint4, found int8"}});
  const float full = 1.1f;
  s.put("t.npy", ArrayType::float32, {1}, &full);
  check_refused(s.call("decode --format tf32 --in t.npy --out y.npy"),
                "t.npy: element 0: expected a code of tfloat32 within 0..0xffffe000 in steps of "
                "0x2000, found 0x3f8ccccd");
  const std::uint8_t packed[4] = {0x21, 0x03, 0x21, 0x43};
  s.put("p.npy", ArrayType::uint8, {2, 2}, packed);
  s.file("p.npy.json", R"({"numemu": "1", "logical_shape": [2, 3], "packed": true})");
  check_refused(s.call("decode --format e2m1 --in p.npy --out y.npy"),
                "p.npy: row 1: expected zeros after its 3 codes of 4 bits");
  s.put("p.npy", ArrayType::int8, {2, 2}, packed);
  check_refused(s.call("decode --format e2m1 --in p.npy --out y.npy"),
                "p.npy: dtype: expected uint8 packed codes of float4_e2m1fn (from p.npy.json), "
                "found int8");
}

TEST_CASE("safetensors: the only tensor or one by name", "[fast]") {
  const Folder s;
  const float x[4] = {1, -2, 3, 0.5f};
  s.put("x.npy", ArrayType::float32, {2, 2}, x);
  REQUIRE(s.call("encode --format e2m1 --in x.npy --out c.safetensors --tensor w").code == 0);
  REQUIRE(s.call("decode --in c.safetensors --out y.npy").code == 0);
  CHECK(floats(s.npy("y.npy")) == std::vector<float>(x, x + 4));
  REQUIRE(s.call("decode --in c.safetensors --out y.safetensors").code == 0);
  InputFile file(s.path + "/y.safetensors");
  CHECK(read_safetensors_tensor(file, "").type->name == "F32");
  check_refusals(s, {{"decode --in c.safetensors --tensor v --out y.npy",
                      "c.safetensors: no tensor 'v'; did you mean 'w'?"},
                     {"decode --in c.safetensors --format e4m3fn --out y.npy",
                      "format: 'float4_e2m1fn' contradicts --format 'float8_e4m3fn'"}});
  std::filesystem::remove(s.path + "/c.safetensors.json");
  check_refused(
      s.call("decode --in c.safetensors --format e4m3fn --out y.npy"),
      "c.safetensors: tensor 'w': dtype: expected codes of float8_e4m3fn, found F4, codes "
      "of float4_e2m1fn");
  const auto two = [&](const std::string& type, const std::string& data) {
    const std::string text =
        R"({"a":{"dtype":")" + type + R"(","shape":[1,2],"data_offsets":[0,)" +
        std::to_string(data.size() - 1) + R"(]},"b":{"dtype":"U8","shape":[1],"data_offsets":[)" +
        std::to_string(data.size() - 1) + "," + std::to_string(data.size()) + "]}}";
    s.file("two.safetensors",
           std::string(1, static_cast<char>(text.size())) + std::string(7, '\0') + text + data);
  };
  two("F8_E4M3", "\x38\xb8\x07");
  CHECK(s.call("decode --in two.safetensors --tensor a --text --out -").out == "0x1p+0\n-0x1p+0\n");
  CHECK(s.call("decode --in two.safetensors --tensor b --text --out -").out == "0x1.cp+2\n");
  check_refused(s.call("decode --in two.safetensors --out y.npy"),
                "two.safetensors: expected one tensor or --tensor NAME, found 2 tensors");
  two("F4", "\x38\x07");
  CHECK(s.call("decode --in two.safetensors --tensor a --text --out -").out ==
        "-0x0p+0\n0x1.8p+0\n");
  two("F4", "\x38\x38\x07");
  check_refused(
      s.call("decode --in two.safetensors --tensor a --out y.npy"),
      "two.safetensors: tensor 'a': data_offsets: expected 1 byte for F4 of shape [1, 2], found 2");
  two("I16", "\x01\x02\x03\x04\x05");
  check_refused(s.call("decode --in two.safetensors --tensor a --out y.npy"),
                "two.safetensors: tensor 'a': dtype: expected F4, ");
}

TEST_CASE("numbers under the name of earlier codes lose their sidecar", "[fast]") {
  const Folder s;
  const float x[2] = {1, 2};
  s.put("x.npy", ArrayType::float32, {2}, x);
  REQUIRE(s.call("encode --format e4m3fn --in x.npy --out c.npy").code == 0);
  REQUIRE(s.call("decode --in c.npy --out c.npy").code == 0);
  CHECK_FALSE(std::filesystem::exists(s.path + "/c.npy.json"));
  CHECK(floats(s.npy("c.npy")) == std::vector<float>{1, 2});
}

TEST_CASE("the codes, their sidecar and their codebook are not written over", "[fast]") {
  const Folder s;
  const double entries[2] = {0, 1};
  s.put("book.npy", ArrayType::float64, {2}, entries);
  s.put("x.npy", ArrayType::float64, {2}, entries);
  REQUIRE(s.call("encode --format 'codebook(book.npy)' --in x.npy --out c.npy").code == 0);
  check_refusals(s, {{"decode --in c.npy --out c.npy.json",
                      "--out and --in: expected two files, found c.npy.json, the sidecar of c.npy"},
                     {"decode --in c.npy --text --out c.npy.json", "the sidecar of c.npy"},
                     {"decode --in c.npy --out book.npy",
                      "--out and --format: expected two files, found book.npy twice"},
                     {"decode --in - --out y.npy", "--in: expected a file, found -"},
                     {"decode --in c.npy --out -", "--out: expected a file, found -"}});
  // Text under the name of the codes has no sidecar.
  CHECK(s.call("decode --in c.npy --text --out c.npy").code == 0);
  CHECK(test::read_file(s.path + "/c.npy") == "0x0p+0\n0x1p+0\n");
  CHECK_FALSE(std::filesystem::exists(s.path + "/c.npy.json"));
}

TEST_CASE("a codebook that moved, and one that changed", "[fast]") {
  const Folder s;
  const double entries[3] = {0, 1, 2}, others[3] = {0, 1, 3};
  s.put("a.npy", ArrayType::float64, {3}, entries);
  s.put("b.npy", ArrayType::float64, {3}, others);
  s.put("x.npy", ArrayType::float64, {3}, entries);
  REQUIRE(s.call("encode --format 'codebook(a.npy)' --in x.npy --out c.npy").code == 0);
  check_refused(s.call("decode --format 'codebook(b.npy)' --in c.npy --out y.npy"),
                "contradicts --format 'codebook(b.npy)' of codebook_sha256 ");
  std::filesystem::rename(s.path + "/a.npy", s.path + "/moved.npy");
  check_refused(s.call("decode --in c.npy --out y.npy"), "c.npy.json: format: a.npy: cannot open");
  REQUIRE(s.call("decode --format 'codebook(moved.npy)' --in c.npy --out y.npy").code == 0);
  CHECK(floats(s.npy("y.npy")) == std::vector<float>{0, 1, 2});
  std::filesystem::rename(s.path + "/b.npy", s.path + "/a.npy");
  check_refused(s.call("decode --in c.npy --out y.npy"), "c.npy.json: codebook_sha256: expected ");
}

TEST_CASE("what a sidecar says is checked whether decode needs it or not", "[fast]") {
  const Folder s;
  s.codes("c.npy", {0x38});
  const auto with = [&](const std::string& keys) {
    s.file("c.npy.json", R"({"numemu":"1","format":"float8_e4m3fn",)" + keys + "}");
    return s.call("decode --in c.npy --out y.npy");
  };
  check_refused(with(R"("block":"nonsense")"), "c.npy.json: block: ");
  check_refused(with(R"("block":"mxfp4")"),
                "c.npy.json: block: expected a block format of 'float8_e4m3fn'");
  check_refused(with(R"("axis":1,"logical_shape":[1])"), "c.npy.json: axis: expected an axis");
  check_refused(with(R"("rounding":"up")"), "c.npy.json: rounding: ");
  check_refused(with(R"("overflow":"wrap")"), "c.npy.json: overflow: ");
  check_refused(with(R"("order":"low-first")"), "c.npy.json: order: expected null");
  check_refused(with(R"("logical_shape":[1.0])"), "c.npy.json: logical_shape[0]: ");
  check_refused(with(R"("scale_rule":"any text")"), "c.npy.json: scale_rule: unknown scale rule ");
  CHECK(with(R"("scale_rule":"floor")").out == "y.npy: float32 of float8_e4m3fn [1], 1 element\n");
  CHECK(s.call("decode --in c.npy --out y.npy --quiet").out.empty());
  CHECK_THAT(s.call("decode --in c.npy --out y.npy --quiet --json").out, Contains("\"n\": 1"));
  const float number = 1;
  s.put("c.npy", ArrayType::float32, {1}, &number);
  check_refused(with(R"("packed":false)"),
                "c.npy: dtype: expected uint8 codes of float8_e4m3fn (from c.npy.json), found "
                "float32");
}

}  // namespace decode_test
