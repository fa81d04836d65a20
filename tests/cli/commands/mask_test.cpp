// numemu mask from outside: pruned, checked, compressed and expanded arrays, and bad input.
#include <cmath>
#include <vector>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace mask_test {
namespace {

using namespace numemu;
using Catch::Contains;
using namespace numemu::test;

struct MaskScratch : test::Scratch {
  MaskScratch() {
    std::vector<float> x;
    for (int i = 0; i < 8 * 16; ++i) x.push_back(static_cast<float>((i * 7919) % 509 - 254) / 8);
    write_npy(path + "/w.npy", ArrayType::float32, {8, 16}, x.data());
    write_npy(path + "/row.npy", ArrayType::float32, {16}, x.data());
    write_npy(path + "/scalar.npy", ArrayType::float32, {}, x.data());
  }
  Array read(const std::string& name) const { return read_npy(path + "/" + name); }
};

}  // namespace

TEST_CASE("mask prunes both ways, and its check finds nothing", "[fast]") {
  const MaskScratch s;
  const Result r = s.call("mask --rule 'transposable(2:4)' --in w.npy --out m.npy --keep k.npy");
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK_THAT(r.out, Contains("transposable(2:4) [8, 16], 64 of 128 elements kept"));
  CHECK_THAT(r.out, Contains("90 masks per 16 elements"));
  const Array w = s.read("w.npy"), m = s.read("m.npy"), k = s.read("k.npy");
  int columns[16] = {};
  for (int i = 0; i < 128; ++i) {
    const bool kept = k.as<std::uint8_t>()[i] == 1;
    CHECK(m.as<float>()[i] == (kept ? w.as<float>()[i] : 0));
    columns[i % 16] += kept;
  }
  for (const int kept : columns) CHECK(kept == 4);
  CHECK(s.call("mask --rule 'transposable(2:4)' --in m.npy --check").code == 0);
  const Result check = s.call("mask --rule 'transposable(2:4)' --in w.npy --check --json");
  CHECK(check.code == 1);
  const Json json = Json::parse(check.out);
  CHECK(json["groups"] == 64);
  CHECK(json["violations"] == 64);
  CHECK(json["first_violations"][1]["first"].dump() == "[0,4]");
}

TEST_CASE("mask: tiles of up to 32 x 32, which are no groups of sparse units", "[fast]") {
  const MaskScratch s;
  std::vector<float> x;
  for (int i = 0; i < 64 * 96; ++i) x.push_back(static_cast<float>((i * 7919) % 6007 - 3003) / 8);
  write_npy(s.path + "/x.npy", ArrayType::float32, {64, 96}, x.data());
  for (const std::string rule : {"'transposable(16:32)'", "'transposable-greedy(16:32)'"}) {
    CAPTURE(rule);
    const Result r = s.call("mask --rule " + rule + " --in x.npy --out m.npy");
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK_THAT(r.out, Contains("of 6144 elements kept") && !Contains("masks per"));
    const Result json = s.call("mask --rule " + rule + " --in x.npy --json");
    CHECK_FALSE(Json::parse(json.out).contains("masks"));
    CHECK(s.call("mask --rule " + rule + " --in m.npy --check").code == 0);
    CHECK(s.call("mask --rule " + rule + " --in x.npy --check").code == 1);
    check_refused(s.call("mask --rule " + rule + " --in x.npy --compressed a.npy --meta e.npy"),
                  "--compressed: expected N:M with M <= 16, as sparse units have it, found 16:32");
    check_refused(s.call("mask --rule " + rule + " --in x.npy --meta e.npy --expand --out y.npy"),
                  "--expand: expected N:M with M <= 16");
  }
}

TEST_CASE("mask compresses to either layout and expands again", "[fast]") {
  const MaskScratch s;
  for (const std::string layout : {"index", "ptx"}) {
    CAPTURE(layout);
    const Result r = s.call(
        "mask --rule 'greedy(2:4)' --in w.npy --out m.npy --compressed a.npy "
        "--meta e.npy --meta-layout " +
        layout);
    INFO(r.err);
    REQUIRE(r.code == 0);
    CHECK(s.read("a.npy").shape == ArrayShape{8, 8});
    CHECK(s.read("e.npy").shape == (layout == "index" ? ArrayShape{8, 8} : ArrayShape{8, 2}));
    REQUIRE(s.call("mask --rule 'greedy(2:4)' --in a.npy --meta e.npy --expand --out y.npy "
                   "--meta-layout " +
                   layout)
                .code == 0);
    CHECK(test::read_file(s.path + "/y.npy") == test::read_file(s.path + "/m.npy"));
  }
}

TEST_CASE("a share of the magnitude needs a magnitude", "[fast]") {
  const MaskScratch s;
  const auto printed = [&](const std::vector<float>& x, const char* options) {
    write_npy(s.path + "/x.npy", ArrayType::float32, {1, 4}, x.data());
    return s.call(std::string("mask --rule 'greedy(2:4)' --in x.npy ") + options).out;
  };
  CHECK_THAT(printed({4, 1, 3, 0}, ""), Contains("87.50 % of the magnitude"));
  CHECK_THAT(printed({0, 0, 0, 0}, ""), Contains("no share of the magnitude: all are zero"));
  const std::vector<float> wild = {NAN, 1, INFINITY, -INFINITY};
  CHECK_THAT(printed(wild, ""), Contains("no share of the magnitude: 1 NaN, 2 infinite"));
  CHECK_THAT(printed(wild, "--json"), Contains("\"kept_magnitude\": null"));
  const float nothing = 0;
  write_npy(s.path + "/empty.npy", ArrayType::float32, {0, 4}, &nothing);
  CHECK_THAT(s.call("mask --rule 'greedy(2:4)' --in empty.npy").out,
             Contains("no share of the magnitude: no elements"));
}

TEST_CASE("mask refuses in one line", "[fast]") {
  const MaskScratch s;
  check_refusals(
      s,
      {
          {"mask --rule 'unstructured(0.5)' --in w.npy --check", "has no pattern of groups"},
          {"mask --rule 'greedy(2:4)' --in w.npy --meta e.npy",
           "expected together with --compressed"},
          {"mask --rule 'greedy(2:4)' --in w.npy --expand", "expected --meta"},
          {"mask --rule 'greedy(2:4)' --in w.npy --check --out y.npy",
           "--out: not allowed with --check"},
          {"mask --rule 'greedy(2:4)' --in w.npy --meta e.npy --expand --keep k.npy --out y.npy",
           "--keep: not allowed with --expand"},
          {"mask --rule 'greedy(1:4)' --in w.npy --compressed a.npy --meta e.npy --meta-layout ptx",
           "1:4 has no layout ptx"},
          {"mask --rule 'greedy(2:4)' --in w.npy --axis 0 --compressed a.npy --meta e.npy",
           "along the last axis"},
          {"mask --rule 'greedy(2:4)' --in w.npy --meta w.npy --expand --out y.npy",
           "uint8 of metadata"},
          {"mask --rule 'gredy(2:4)' --in w.npy", "did you mean 'greedy'"},
          {"mask --rule 'transposable(2:4)' --in w.npy --axis -1",
           "axis: not allowed with transposable(2:4), whose tiles lie along the last two axes"},
          {"mask --rule 'unstructured(0.5)' --in w.npy --axis 0",
           "axis: not allowed with unstructured(0.5), which has no groups along an axis"},
          {"mask --rule 'greedy(2:4)' --in w.npy --compressed a.npy",
           "--compressed: expected --meta"},
          {"mask --rule 'greedy(2:4)' --in w.npy --out w.npy.json", "--out"},
          {"mask --rule 'greedy(2:4)' --in w.npy --out q.npy --keep q.npy", "--keep"},
          {"mask --rule 'greedy(2:4)' --in scalar.npy",
           "scalar.npy: shape: expected at least one axis"},
          {"mask --rule 'transposable(2:4)' --in row.npy --check",
           "row.npy: shape: expected matrices"},
      });
}

}  // namespace mask_test
