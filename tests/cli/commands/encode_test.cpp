// numemu encode from outside: what it writes, and every input that it must refuse in one line.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "formats/convert.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace encode_test {

namespace {

using namespace numemu;
using Catch::Contains;
using namespace numemu::test;

const std::vector<float> kNumbers = {0.0f,   -0.0f, 1.0f,  -1.5f,
                                     500.0f, -1e9f, 1e-9f, std::numeric_limits<float>::infinity(),
                                     0.3f,   6.1f,  -0.5f, std::numeric_limits<float>::quiet_NaN()};

/// A scratch folder with x.npy, the numbers above in shape (3, 4).
struct Folder : test::Scratch {
  Folder() { write_npy(path + "/x.npy", ArrayType::float32, {3, 4}, kNumbers.data()); }
  Array npy(const std::string& name) const { return read_npy(path + "/" + name); }
  StoredTensor tensor(const std::string& name) const {
    InputFile file(path + "/c.safetensors");
    return read_safetensors_tensor(file, name);
  }
  std::string text(const std::string& name) const { return test::read_file(path + "/" + name); }
};

std::vector<std::uint8_t> octets(const Array& array) {
  const auto* begin = array.as<std::uint8_t>();
  return {begin, begin + array.data.size()};
}

/// What convert_codes gives for the numbers.
std::vector<std::uint8_t> expected(const Conversion& conversion,
                                   std::vector<std::uint8_t>* flags = nullptr) {
  std::vector<std::uint8_t> out(kNumbers.size() *
                                static_cast<std::size_t>(container_bytes(*conversion.format)));
  if (flags != nullptr) flags->resize(kNumbers.size());
  convert_codes_reference(conversion, find_format("float32"), kNumbers.data(),
                          static_cast<std::int64_t>(kNumbers.size()), out.data(),
                          flags != nullptr ? flags->data() : nullptr);
  return out;
}

Conversion to(const std::string& format) {
  Conversion conversion;
  conversion.format = &find_format(format);
  conversion.symmetric = false;
  return conversion;
}

}  // namespace

TEST_CASE("codes, flags and sidecar", "[fast]") {
  const Folder s;
  const Result result = s.call("encode --format e4m3fn --in x.npy --out c.npy --flags f.npy");
  REQUIRE(result.code == 0);
  CHECK(result.err.empty());
  std::vector<std::uint8_t> flags;
  const std::vector<std::uint8_t> codes = expected(to("float8_e4m3fn"), &flags);
  const Array written = s.npy("c.npy"), written_flags = s.npy("f.npy");
  CHECK(written.type == ArrayType::uint8);
  CHECK(written.shape == ArrayShape{3, 4});
  CHECK(octets(written) == codes);
  CHECK(written_flags.shape == ArrayShape{3, 4});
  CHECK(octets(written_flags) == flags);
  CHECK(result.out ==
        "c.npy: float8_e4m3fn rne saturate of float32 [3, 4], 12 elements: 6 inexact, 1 underflow, "
        "3 overflow, 0 invalid\n");
  const Sidecar sidecar = read_sidecar(s.path + "/c.npy").value();
  CHECK(sidecar.format == "float8_e4m3fn");
  CHECK(sidecar.logical_shape == ArrayShape{3, 4});
  CHECK(sidecar.packed == false);
  CHECK(sidecar.rounding == "rne");
  CHECK(sidecar.overflow == "saturate");
  CHECK(sidecar.seed == 0);
}

TEST_CASE("the summary as JSON", "[fast]") {
  const Folder s;
  const Json json = Json::parse(s.call("encode --format e2m1 --rounding 'sr(4,a)' --overflow "
                                       "ieee --in x.npy --out c.npy --json")
                                    .out);
  CHECK(json["format"] == "float4_e2m1fn");
  CHECK(json["rounding"] == "sr(4,a)");
  CHECK(json["overflow"] == "ieee");
  CHECK(json["from"] == "float32");
  CHECK(json["shape"] == Json({3, 4}));
  CHECK(json["n"] == 12);
  CHECK(json["flags"]["invalid"] == 1);
}

TEST_CASE("a dry run says how elements are converted, and writes nothing", "[fast]") {
  const Folder s;
  const std::vector<float> many(4096, 1.5F);
  write_npy(s.path + "/many.npy", ArrayType::float32, {4096}, many.data());
  const auto plan = [&](const std::string& options) {
    const Result result = s.call("encode --in many.npy --out c.npy --dry-run " + options);
    CHECK(result.code == 0);
    CHECK_FALSE(std::filesystem::exists(s.path + "/c.npy"));
    return result.out;
  };
  CHECK(plan("--format e4m3fn") ==
        "4096 elements of float32 to float8_e4m3fn rne saturate: by vectors\n");
  CHECK_THAT(plan("--format float64"), Contains("one by one, by the integer reference, about"));
  CHECK_THAT(plan("--format e4m3fn --rounding 'sr(25)'"), Contains("integer reference"));
}

TEST_CASE("containers of wider formats", "[fast]") {
  const Folder s;
  for (const auto& [format, type] : {std::pair("bfloat16", ArrayType::uint16),
                                     {"float16", ArrayType::uint16},
                                     {"tfloat32", ArrayType::float32},
                                     {"float64", ArrayType::float64},
                                     {"int4", ArrayType::uint8}}) {
    REQUIRE(s.call(std::string("encode --in x.npy --out c.npy --format ") + format).code == 0);
    CHECK(s.npy("c.npy").type == type);
    CHECK(octets(s.npy("c.npy")) == expected(to(format)));
  }
}

TEST_CASE("integers use their most negative code", "[fast]") {
  const Folder s;
  REQUIRE(s.call("encode --in x.npy --out c.npy --format int4").code == 0);
  CHECK(octets(s.npy("c.npy"))[5] == 0x8);
}

TEST_CASE("packed rows start on a byte, in both orders", "[fast]") {
  const Folder s;
  write_npy(s.path + "/v.npy", ArrayType::float32, {2, 3}, kNumbers.data());
  REQUIRE(s.call("encode --in v.npy --out c.npy --format e2m1").code == 0);
  const std::vector<std::uint8_t> codes = octets(s.npy("c.npy"));
  REQUIRE(s.call("encode --in v.npy --out p.npy --format e2m1 --packed").code == 0);
  CHECK(s.npy("p.npy").shape == ArrayShape{2, 2});
  CHECK(octets(s.npy("p.npy")) ==
        std::vector<std::uint8_t>{static_cast<std::uint8_t>(codes[0] | codes[1] << 4), codes[2],
                                  static_cast<std::uint8_t>(codes[3] | codes[4] << 4), codes[5]});
  REQUIRE(s.call("encode --in v.npy --out h.npy --format e2m1 --packed --order high-first").code ==
          0);
  CHECK(octets(s.npy("h.npy"))[0] == (codes[0] << 4 | codes[1]));
  CHECK(octets(s.npy("h.npy"))[1] == codes[2] << 4);
  CHECK(read_sidecar(s.path + "/h.npy")->order == BitOrder::high_first);
  check_refusals(s, {{"encode --in x.npy --out p.npy --format e3m2 --packed --order high-first",
                      "order high-first needs codes of 1, 2 or 4 bits, found 6 bits"},
                     {"encode --in x.npy --out p.npy --format e2m1 --packed --order highfirst",
                      "unknown bit order 'highfirst'; did you mean 'high-first'?"},
                     {"encode --in x.npy --out p.npy --format e2m1 --order high-first",
                      "--order: expected together with --packed"},
                     {"encode --in x.npy --out p.npy --format float16 --packed",
                      "codes of 16 bits cannot be packed: expected 1 to 8 bits"}});
}

TEST_CASE("random bits from a seed or from the caller", "[fast]") {
  const Folder s;
  const std::string encode = "encode --in x.npy --out c.npy --format e4m3fn --rounding 'sr(8)' ";
  Conversion conversion = to("float8_e4m3fn");
  conversion.rounding = parse_rounding("sr(8)");
  REQUIRE(s.call(encode).code == 0);
  CHECK(octets(s.npy("c.npy")) == expected(conversion));
  conversion.random.seed = 77;
  REQUIRE(s.call(encode + "--seed 77").code == 0);
  CHECK(octets(s.npy("c.npy")) == expected(conversion));
  CHECK(read_sidecar(s.path + "/c.npy")->seed == 77);
  std::vector<std::uint32_t> words;
  for (std::uint32_t i = 0; i < 12; ++i) words.push_back(i * 23 & 255);
  write_npy(s.path + "/r.npy", ArrayType::uint32, {3, 4}, words.data());
  conversion.random_words = words.data();
  REQUIRE(s.call(encode + "--random-bits r.npy").code == 0);
  CHECK(octets(s.npy("c.npy")) == expected(conversion));
  CHECK_FALSE(read_sidecar(s.path + "/c.npy")->seed.has_value());

  check_refusals(s, {{encode + "--random-bits r.npy --seed 1", "--seed"},
                     {"encode --in x.npy --out c.npy --format e4m3fn --random-bits r.npy",
                      "--random-bits: expected --rounding sr(N), found rne"}});
  write_npy(s.path + "/r.npy", ArrayType::uint32, {12}, words.data());
  check_refused(s.call(encode + "--random-bits r.npy"),
                "r.npy: shape: expected [3, 4], one word per element, found [12]");
  write_npy(s.path + "/r.npy", ArrayType::int32, {3, 4}, words.data());
  check_refusals(s, {{encode + "--random-bits r.npy",
                      "r.npy: dtype: expected uint32 random bits, found int32"},
                     {encode + "--seed -1", "--seed: expected a whole number from 0 to"}});
}

TEST_CASE("sources: float16, float64, bfloat16 codes, another format's codes", "[fast]") {
  const Folder s;
  const std::uint16_t halves[2] = {0x3c01, 0xfbff};
  write_npy(s.path + "/h.npy", ArrayType::float16, {2}, halves);
  CHECK_THAT(s.call("encode --in h.npy --out c.npy --format e5m2 --overflow ieee").out,
             Contains("of float16 [2]"));
  CHECK(octets(s.npy("c.npy")) == std::vector<std::uint8_t>{0x3c, 0xfc});
  // 1 + 2^-3 + 2^-40 lies above the midpoint of 1 and 1.25: a float32 in between would lose that.
  const double above = 1.125 + 0x1p-40;
  write_npy(s.path + "/d.npy", ArrayType::float64, {1}, &above);
  REQUIRE(s.call("encode --in d.npy --out c.npy --format e5m2").code == 0);
  CHECK(octets(s.npy("c.npy")) == std::vector<std::uint8_t>{0x3d});
  const std::uint16_t brains[2] = {0x3f80, 0xc000};
  write_npy(s.path + "/b.npy", ArrayType::uint16, {2}, brains);
  REQUIRE(s.call("encode --in b.npy --from bfloat16 --out c.npy --format e4m3fn").code == 0);
  CHECK(octets(s.npy("c.npy")) == std::vector<std::uint8_t>{0x38, 0xc0});
  // The sidecar of c.npy gives the format of its codes.
  CHECK_THAT(s.call("encode --in c.npy --out d.npy --format e5m2").out,
             Contains("of float8_e4m3fn [2]"));
  CHECK(octets(s.npy("d.npy")) == std::vector<std::uint8_t>{0x3c, 0xc0});
  check_refusals(
      s, {{"encode --in c.npy --from e5m2 --out d.npy --format e5m2",
           "c.npy.json: format: 'float8_e4m3fn' contradicts --from 'float8_e5m2'"},
          {"encode --in b.npy --out c.npy --format e4m3fn",
           "b.npy: dtype: expected float16 or float32 or float64 numbers (for codes: --from "
           "FORMAT), found uint16"},
          {"encode --in x.npy --from bfloat16 --out c.npy --format e4m3fn",
           "x.npy: dtype: expected uint16 codes of bfloat16, found float32"}});
}

TEST_CASE("signalling NaNs raise NV, whatever array they come in", "[fast]") {
  const Folder s;
  const auto flags = [&](const std::string& more) {
    INFO(more);
    REQUIRE(s.call("encode --in n.npy --out c.npy --flags f.npy --format e4m3fn " + more).code ==
            0);
    CHECK(octets(s.npy("c.npy")) == std::vector<std::uint8_t>{0x7f, 0x7f, 0xff});
    return octets(s.npy("f.npy"));
  };
  const std::vector<std::uint8_t> first_and_last = {16, 0, 16};
  const std::uint32_t singles[] = {0x7f800001, 0x7fc00001, 0xffbfffff};
  write_npy(s.path + "/n.npy", ArrayType::float32, {3}, singles);
  CHECK(flags("") == first_and_last);
  const std::uint64_t doubles[] = {0x7ff0000000000001, 0x7ff8000000000000, 0xfff7000000000000};
  write_npy(s.path + "/n.npy", ArrayType::float64, {3}, doubles);
  CHECK(flags("") == first_and_last);
  const std::uint16_t halves[] = {0x7c01, 0x7e00, 0xfdff};
  write_npy(s.path + "/n.npy", ArrayType::float16, {3}, halves);
  CHECK(flags("") == first_and_last);
  const std::uint16_t brains[] = {0x7f81, 0x7fc0, 0xffbf};
  write_npy(s.path + "/n.npy", ArrayType::uint16, {3}, brains);
  CHECK(flags("--from bfloat16") == first_and_last);
  CHECK(flags("--from bfloat16 --rounding 'sr(8)'") == first_and_last);
  const std::uint8_t ones[] = {0x7f, 0x7f, 0xff};  // a single NaN per sign is quiet
  write_npy(s.path + "/n.npy", ArrayType::uint8, {3}, ones);
  CHECK(flags("--from e4m3fn") == std::vector<std::uint8_t>{0, 0, 0});
}

TEST_CASE("text", "[fast]") {
  const Folder s;
  s.file("x.txt", "0x1.8p0\n-0.1\nnan\r\n1e300");
  const Result result =
      s.call("encode --text --in x.txt --out c.npy --format bfloat16 --overflow ieee");
  REQUIRE(result.code == 0);
  CHECK(result.out ==
        "c.npy: bfloat16 rne ieee of text [4], 4 elements: 2 inexact, 0 underflow, "
        "1 overflow, 0 invalid\n");
  const Array codes = s.npy("c.npy");
  const std::vector<std::uint16_t> want = {0x3fc0, 0xbdcd, 0x7fc0, 0x7f80};
  CHECK(std::memcmp(codes.as<std::uint16_t>(), want.data(), 8) == 0);
  REQUIRE(s.run("encode --text --in - --out c.npy --format e4m3fn <x.txt").code == 0);
  CHECK(s.npy("c.npy").shape == ArrayShape{4});
  s.file("bad.txt", "1\n2,5\n");
  check_refusals(s, {{"encode --text --in bad.txt --out c.npy --format e4m3fn",
                      "bad.txt: line 2: expected a number, found '2,5'"},
                     {"encode --text --in bad.txt --from e5m2 --out c.npy --format e4m3fn",
                      "--from: not allowed with --text"}});
  s.file("long.txt", "0x1.00000000000000000001p0\n");
  check_refused(
      s.call("encode --text --in long.txt --out c.npy --format float64 --rounding 'sr(10)'"),
      "long.txt: line 1: expected at most 64 significant bits for float64 with sr(10)");
  CHECK(s.call("encode --text --in long.txt --out c.npy --format float64 --rounding rup").code ==
        0);
}

TEST_CASE("safetensors", "[fast]") {
  const Folder s;
  REQUIRE(s.call("encode --in x.npy --out c.safetensors --format e2m1").code == 0);
  const StoredTensor tensor = s.tensor("codes");
  CHECK(tensor.type->name == "F4");
  CHECK(tensor.shape == ArrayShape{3, 4});
  CHECK(tensor.data.size() == 6);
  for (const auto& [format, name] :
       {std::pair("e4m3fn", "F8_E4M3"), {"e5m2", "F8_E5M2"}, {"e8m0", "F8_E8M0"}}) {
    REQUIRE(
        s.call(std::string("encode --in x.npy --out c.safetensors --tensor w --format ") + format)
            .code == 0);
    CHECK(s.tensor("w").type->name == name);
  }
  check_refused(s.call("encode --in x.npy --out c.safetensors --format int4"),
                "c.safetensors: safetensors has no dtype for int4; it has F4, ");
  write_npy(s.path + "/v.npy", ArrayType::float32, {3}, kNumbers.data());
  check_refused(
      s.call("encode --in v.npy --out c.safetensors --format e2m1"),
      "c.safetensors: shape: expected a whole number of bytes, found 3 elements of 4 bits");
}

TEST_CASE("unknown names offer the nearest", "[fast]") {
  const Folder s;
  check_refusals(s, {{"encode --in x.npy --out c.npy --format float8_e4m3fm",
                      "unknown format 'float8_e4m3fm'; did you mean 'float8_e4m3fn'?"},
                     {"encode --in x.npy --out c.npy --format e4m3 --from flaot32",
                      "unknown format 'flaot32'; did you mean 'float32'?"},
                     {"encode --in x.npy --out c.npy --format e4m3 --rounding rnee",
                      "unknown rounding 'rnee'; did you mean 'rne'?"},
                     {"encode --in x.npy --out c.npy --format e4m3 --overflow saturated",
                      "unknown overflow mode 'saturated'; did you mean 'saturate'?"},
                     {"encode --in x.npy --out c.npy --format e16m2", "e16m2"},
                     {"encode --in x.npy --out c.npy --format e4m3 --roundin rne",
                      "did you mean '--rounding'?"},
                     {"encode --in x.npy --out c.npy", "--format"}});
  CHECK_FALSE(std::filesystem::exists(s.path + "/c.npy"));
}

TEST_CASE("foreign and broken files", "[fast]") {
  const Folder s;
  const std::string encode = "encode --format e4m3fn --out c.npy --in ";
  const std::string little = s.text("x.npy");
  // Big-endian and Fortran order are converted: the same codes, the latter transposed.
  REQUIRE(s.call(encode + "x.npy").code == 0);
  const std::vector<std::uint8_t> codes = octets(s.npy("c.npy"));
  std::string big = little;
  big[big.find("'<f4'") + 1] = '>';
  for (std::size_t i = big.size() - 48; i < big.size(); i += 4)
    std::reverse(big.begin() + static_cast<std::ptrdiff_t>(i),
                 big.begin() + static_cast<std::ptrdiff_t>(i) + 4);
  s.file("big.npy", big);
  REQUIRE(s.call(encode + "big.npy").code == 0);
  CHECK(octets(s.npy("c.npy")) == codes);
  std::string fortran = little;
  fortran.replace(fortran.find("False"), 5, "True ");
  s.file("fortran.npy", fortran);
  REQUIRE(s.call(encode + "fortran.npy").code == 0);
  CHECK(s.npy("c.npy").shape == ArrayShape{3, 4});
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column)
      CHECK(octets(s.npy("c.npy"))[4 * row + column] == codes[row + 3 * column]);
  }

  s.file("short.npy", little.substr(0, little.size() - 1));
  check_refused(s.call(encode + "short.npy"),
                "short.npy: byte 128: expected 48 bytes for float32 of shape [3, 4], found 47");
  s.file("long.npy", little + "x");
  check_refused(s.call(encode + "long.npy"), "found 49");
  s.file("header.npy", little.substr(0, 40));
  check_refused(s.call(encode + "header.npy"), "header.npy: byte 10: expected a header of at most");
  s.file("text.npy", "1 2 3\n");
  check_refused(s.call(encode + "text.npy"), "text.npy: byte 0: expected a .npy file");
  std::string complex = little;
  complex.replace(complex.find("'<f4'"), 5, "'<c8'");
  s.file("complex.npy", complex);
  check_refused(s.call(encode + "complex.npy"), "found '<c8' (complex)");
  const std::int32_t whole[2] = {1, 2};
  write_npy(s.path + "/i.npy", ArrayType::int32, {2}, whole);
  check_refusals(s, {{encode + "i.npy", "i.npy: dtype: expected float16 or float32 or float64"},
                     {encode + "none.npy", "none.npy: cannot open: No such file or directory"},
                     {"encode --format e4m3fn --in x.npy --out /dev/null",
                      "/dev/null: expected a regular file or a new name"},
                     {"encode --format e4m3fn --in x.npy --out no/c.npy", "no: no such folder"},
                     {"encode --format e4m3fn --in x.npy --out c.npy --flags .",
                      ".: expected a regular file or a new name"}});
}

TEST_CASE("an empty array and a scalar", "[fast]") {
  const Folder s;
  write_npy(s.path + "/none.npy", ArrayType::float32, {0, 3}, nullptr);
  REQUIRE(s.call("encode --in none.npy --out c.npy --format e2m1 --packed").code == 0);
  CHECK(s.npy("c.npy").shape == ArrayShape{0, 2});
  write_npy(s.path + "/one.npy", ArrayType::float32, {}, &kNumbers[2]);
  REQUIRE(s.call("encode --in one.npy --out c.npy --format e4m3fn").code == 0);
  CHECK(s.npy("c.npy").shape.empty());
  CHECK(octets(s.npy("c.npy")) == std::vector<std::uint8_t>{0x38});
}

TEST_CASE("two options, one file", "[fast]") {
  const Folder s;
  const std::string before = s.text("x.npy");
  const std::string encode = "encode --format e4m3fn --in x.npy ";
  check_refusals(s,
                 {{encode + "--out a.npy --flags ./a.npy",
                   "--out and --flags: expected two files, found ./a.npy twice"},
                  {encode + "--out a.npy --flags x.npy",
                   "--flags and --in: expected two files, found x.npy twice"},
                  {encode + "--out a.npy --flags a.npy.json",
                   "--flags and --out: expected two files, found a.npy.json, the sidecar of a.npy"},
                  {encode + "--rounding 'sr(4)' --random-bits r.npy --out r.npy",
                   "--out and --random-bits: expected two files, found r.npy twice"}});
  const double entries[2] = {0, 1};
  write_npy(s.path + "/book.npy", ArrayType::float64, {2}, entries);
  check_refused(s.call("encode --format 'codebook(book.npy)' --in x.npy --out book.npy"),
                "--out and --format: expected two files, found book.npy twice");
  CHECK(s.text("x.npy") == before);
  CHECK_FALSE(std::filesystem::exists(s.path + "/a.npy"));
  CHECK(s.call(encode + "--out x.npy").code == 0);
}

TEST_CASE("arrays need files", "[fast]") {
  const Folder s;
  check_refusals(
      s, {{"encode --format e4m3fn --in - --out c.npy", "--in: expected a file, found -"},
          {"encode --format e4m3fn --in x.npy --out -", "--out: expected a file, found -"},
          {"encode --format e4m3fn --text --in x.txt --out -", "--out: expected a file, found -"},
          {"encode --format e4m3fn --in x.npy --out c.npy --flags -",
           "--flags: expected a file, found -"}});
}

TEST_CASE("a standard output that cannot be written is a failure", "[fast]") {
  const Folder s;
  const auto full = [&](const std::string& arguments) {
    CAPTURE(arguments);
    const std::string command = "cd " + s.path + " && '" NUMEMU_PROGRAM "' " + arguments;
    const int status = std::system(command.c_str());
    CHECK(WEXITSTATUS(status) == 2);
    const std::string err = s.text("err.txt");
    CHECK(err.starts_with("numemu: cannot write to standard output: "));
    CHECK(std::count(err.begin(), err.end(), '\n') == 1);
    return err;
  };
  const std::string encode = "encode --format e4m3fn --in x.npy --out c.npy ";
  for (const std::string& arguments :
       {encode, encode + "--json ", std::string("formats "), std::string("--help "),
        std::string("decode --in c.npy --text --out - ")}) {
    CHECK_THAT(full(arguments + ">/dev/full 2>err.txt"), Contains("No space left on device"));
    full(arguments + "2>err.txt >&-");
  }
  // Nothing to print, nothing lost; a file that is opened does not become the standard output.
  const std::string quiet =
      "cd " + s.path + " && '" NUMEMU_PROGRAM "' " + encode + "--quiet >&- 2>err.txt";
  CHECK(std::system(quiet.c_str()) == 0);
  CHECK(s.npy("c.npy").shape == ArrayShape{3, 4});
}

TEST_CASE("all 64 bits of a seed", "[fast]") {
  const Folder s;
  const std::string encode = "encode --in x.npy --out c.npy --format e4m3fn --rounding 'sr(8)' ";
  Conversion conversion = to("float8_e4m3fn");
  conversion.rounding = parse_rounding("sr(8)");
  for (const std::uint64_t seed : {~std::uint64_t{0}, (std::uint64_t{1} << 53) + 1}) {
    conversion.random.seed = seed;
    REQUIRE(s.call(encode + "--seed " + std::to_string(seed)).code == 0);
    CHECK(octets(s.npy("c.npy")) == expected(conversion));
    CHECK(read_sidecar(s.path + "/c.npy")->seed == seed);
    CHECK(s.call("decode --in c.npy --out y.npy").code == 0);
  }
  for (const std::string wrong : {"18446744073709551616", "-1", "1.0", "+1", "''"}) {
    check_refused(s.call(encode + "--seed " + wrong),
                  "--seed: expected a whole number from 0 to 2^64-1, not");
  }
}

TEST_CASE("one element, spaces, a blank end, infinity; quiet", "[fast]") {
  const Folder s;
  s.file("x.txt", " \t1 \r\n\n  \n");
  const std::string encode = "encode --text --format e4m3fn --out c.npy --in ";
  CHECK_THAT(s.call(encode + "x.txt").out, Contains(" [1], 1 element: 0 inexact"));
  CHECK(s.call(encode + "x.txt --quiet").out.empty());
  CHECK_THAT(s.call(encode + "x.txt --quiet --json").out, Contains("\"n\": 1"));
  s.file("x.txt", "1\n\n2\n");
  check_refused(s.call(encode + "x.txt"), "x.txt: line 2: expected a number, found ''");
  s.file("x.txt", "1 2\n");
  check_refused(s.call(encode + "x.txt"), "x.txt: line 1: expected a number, found '1 2'");
  s.file("x.txt", "-infinity");
  CHECK_THAT(s.call(encode + "x.txt").out, Contains("1 overflow"));
}

TEST_CASE("an output that is a link", "[fast]") {
  const Folder s;
  std::filesystem::create_directory(s.path + "/store");
  s.file("store/c.npy", "old");
  std::filesystem::create_symlink("store/c.npy", s.path + "/l.npy");
  REQUIRE(s.call("encode --format e4m3fn --in x.npy --out l.npy").code == 0);
  CHECK(std::filesystem::is_symlink(s.path + "/l.npy"));
  CHECK(octets(s.npy("store/c.npy")) == expected(to("float8_e4m3fn")));
  CHECK(s.call("decode --in l.npy --out y.npy").code == 0);
  CHECK(s.call("decode --in store/c.npy --out y.npy").code == 0);
  std::filesystem::create_symlink("/dev/null", s.path + "/n.npy");
  check_refused(s.call("encode --format e4m3fn --in x.npy --out n.npy"),
                "n.npy: expected a regular file or a new name");
}

}  // namespace encode_test
