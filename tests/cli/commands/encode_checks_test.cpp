// numemu encode from outside: texts and names that could mean two things, and files that changed.
#include <cstring>
#include <filesystem>

#include "formats/digest.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/sidecar.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace encode_checks_test {

namespace {

using namespace numemu;
using Catch::Contains;
using namespace numemu::test;

struct Folder : test::Scratch {
  Folder() { write_npy(path + "/x.npy", ArrayType::float32, {2, 2}, kNumbers); }
  Array npy(const std::string& name) const { return read_npy(path + "/" + name); }
  std::string text(const std::string& name) const { return test::read_file(path + "/" + name); }
  static constexpr float kNumbers[4] = {0, 1, -1.5f, 0.3f};
};

}  // namespace

TEST_CASE("text of codes is no text of numbers", "[fast]") {
  const Folder s;
  s.file("codes.txt", "0x3c\n0xBC\n0x7f\n");
  check_refused(s.call("encode --text --in codes.txt --out c.npy --format float16"),
                "codes.txt: line 1: expected a number, found '0x3c': hexadecimal needs an exponent "
                "(0x3cp+0); codes need --codes hex");
  s.file("mixed.txt", "60\n0x3c\n");
  check_refused(s.call("encode --text --in mixed.txt --out c.npy --format float16"),
                "mixed.txt: line 2: expected a number, found '0x3c'");
  const std::string from = "encode --text --codes hex --from e4m3fn --out c.npy --format float16 ";
  const Result result = s.call(from + "--in codes.txt");
  REQUIRE(result.code == 0);
  CHECK(result.out.starts_with("c.npy: float16 rne saturate of float8_e4m3fn [3], 3 elements"));
  const std::vector<std::uint16_t> want = {0x3e00, 0xbe00, 0x7e00};
  CHECK(std::memcmp(s.npy("c.npy").as<std::uint16_t>(), want.data(), 6) == 0);
  s.file("bare.txt", "3c\nBC\n7f");
  REQUIRE(s.call(from + "--in bare.txt").code == 0);
  CHECK(std::memcmp(s.npy("c.npy").as<std::uint16_t>(), want.data(), 6) == 0);
  check_refused(s.call(from + "--in mixed.txt"),
                "mixed.txt: line 2: expected a code in hexadecimal without 0x, found '0x3c'");
  s.file("mixed.txt", "0x3c\n60\n");
  check_refused(s.call(from + "--in mixed.txt"),
                "mixed.txt: line 2: expected a code in hexadecimal with 0x, found '60'");
  s.file("wide.txt", "0x3c\n0x13c\n");
  check_refusals(
      s, {{from + "--in wide.txt",
           "wide.txt: line 2: expected a code of float8_e4m3fn within 0..0xff, found 0x13c"},
          {"encode --text --codes hex --in codes.txt --out c.npy --format float16",
           "--codes hex: expected --text and --from FORMAT, the format of the codes"},
          {"encode --codes hex --from e5m2 --in x.npy --out c.npy --format float16",
           "--codes hex: expected --text and --from FORMAT"}});
}

TEST_CASE("a short name that units use for another format is noted", "[fast]") {
  const Folder s;  // a name is noted once a process
  const std::string note =
      "numemu: note: --format: e4m3 is float8_e4m3; in names of units it is float8_e4m3fn. Write "
      "the full name of the one you mean\n";
  CHECK(s.run("encode --in x.npy --out c.npy --format e4m3").err == note);
  CHECK(s.run("encode --in x.npy --out c.npy --format e4m3 --quiet").err.empty());
  for (const std::string name : {"e4m3fn", "float8_e4m3", "e5m2", "e2m1", "f32"})
    CHECK(s.run("encode --in x.npy --out c.npy --format " + name).err.empty());
  CHECK(s.run("decode --in c.npy --out d.npy").err.empty());
  CHECK_THAT(s.run("quantize --block 'mx(e4m3,4)' --in x.npy --out y.npy").err,
             Contains("note: --block: e4m3 is float8_e4m3;"));
  s.file("r.json", R"({"numemu_recipe":1,"roles":{"weight":{"format":"e4m3"}}})");
  CHECK_THAT(s.run("config --print r.json").err, Contains("note: r.json: e4m3 is float8_e4m3;"));
  s.file("r.json", R"({"numemu_recipe":1,"roles":{"weight":{"format":"e4m3fn"}}})");
  CHECK(s.run("config --print r.json").err.empty());
}

TEST_CASE("codes and flags of one run", "[fast]") {
  const Folder s;
  REQUIRE(s.call("encode --in x.npy --out c.npy --format e4m3fn --flags f.npy").code == 0);
  const Sidecar about = read_sidecar(s.path + "/c.npy").value();
  CHECK(about.sha256 == sha256_hex(s.text("c.npy")));
  CHECK(about.written_with.at("flags") == sha256_hex(s.text("f.npy")));
  write_npy(s.path + "/c.npy", ArrayType::uint8, {2, 2}, "\1\1\1\1");
  check_refusals(s, {{"decode --in c.npy --out d.npy", "c.npy.json: sha256: stale"},
                     {"encode --in c.npy --out d.npy --format e5m2", "c.npy.json: sha256: stale"},
                     {"quantize --in c.npy --out d.npy --block mxfp4", "sha256: stale"}});
  std::filesystem::remove(s.path + "/c.npy.json");
  CHECK(s.call("decode --in c.npy --out d.npy --format e4m3fn").code == 0);
}

TEST_CASE("every value of a sidecar is checked, its scale rule too", "[fast]") {
  const Folder s;
  REQUIRE(s.call("encode --in x.npy --out c.npy --format e4m3fn").code == 0);
  for (const std::string keys :
       {R"("scale_rule":"bogus")", R"("block":"mxfp8_e4m3","scale_rule":"bogus")"}) {
    s.file("c.npy.json", R"({"numemu":"0.1.0","format":"e4m3fn",)" + keys + "}");
    check_refused(s.call("decode --in c.npy --out d.npy"),
                  "c.npy.json: scale_rule: unknown scale rule 'bogus'");
  }
  for (const std::string rule : {"floor", "absmax"}) {
    s.file("c.npy.json", R"({"numemu":"0.1.0","format":"e4m3fn","scale_rule":")" + rule + "\"}");
    CHECK(s.call("decode --in c.npy --out d.npy").code == 0);
  }
  s.file("c.npy.json", R"({"numemu":"","format":"e4m3fn"})");
  check_refused(s.call("decode --in c.npy --out d.npy"),
                "c.npy.json: numemu: expected the version");
}

TEST_CASE("names of files that are no UTF-8", "[fast]") {
  const Folder s;
  write_npy(s.path + "/x\xff.npy", ArrayType::float32, {2, 2}, Folder::kNumbers);
  const Result json = s.call("encode --in x\xff.npy --out c\xff.npy --format e4m3fn --json");
  REQUIRE(json.code == 0);
  CHECK(Json::parse(json.out)["out"] == "c\\xff.npy");
  CHECK(s.npy("c\xff.npy").shape == ArrayShape{2, 2});
  const Result back = s.call("decode --in c\xff.npy --out d\xff.npy --json");
  CHECK(Json::parse(back.out)["out"] == "d\\xff.npy");
  const double entries[2] = {0, 1};
  write_npy(s.path + "/b\xff.npy", ArrayType::float64, {2}, entries);
  check_refused(
      s.call("encode --format 'codebook(b\xff.npy)' --in x.npy --out b.npy"),
      "codebook(FILE): expected a name in UTF-8, as results store it, found 'b\\xff.npy'");
  CHECK_FALSE(std::filesystem::exists(s.path + "/b.npy"));
}

}  // namespace encode_checks_test
