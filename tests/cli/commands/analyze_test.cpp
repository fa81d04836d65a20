// numemu analyze from outside: tables, JSON, verdicts, files, and bad input in one line.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace analyze_test {

namespace {

using Catch::Contains;
using numemu::Json;
using namespace numemu::test;

struct AnalyzeScratch : Scratch {
  Result analyze(const std::string& arguments) const { return call("analyze " + arguments); }
  Json json(const std::string& arguments) const {
    const Result r = analyze(arguments + " --json");
    INFO(arguments << "\n" << r.err);
    REQUIRE(r.code == 0);
    return Json::parse(r.out);
  }
  template <class T>
  void save(const std::string& name, numemu::ArrayType type, const std::vector<T>& x) const {
    numemu::write_npy(path + "/" + name, type, {static_cast<std::int64_t>(x.size())}, x.data());
  }
};

}  // namespace

TEST_CASE("analyze: the table names its three axes and every verdict holds", "[fast]") {
  const AnalyzeScratch s;
  const Result r =
      s.analyze("--format e4m3fn --dist normal --n 20000 --best-scale --overflow ieee");
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("float8_e4m3fn rne ieee, scale 1, 20000 draws of normal, seed 0"));
  CHECK_THAT(r.out, Contains("predicted (exact)"));
  CHECK_THAT(r.out, Contains("95 % interval"));
  CHECK_THAT(r.out, Contains("best scale (saturate)"));
  CHECK_THAT(r.out, Contains("power of two"));
  CHECK_THAT(r.out, !Contains("fails"));
}

TEST_CASE("analyze --json: predictions, measurements, intervals, best scales", "[fast]") {
  const AnalyzeScratch s;
  const Json json = s.json("--format int4 --dist uniform --scale 0.125 --best-scale --n 50000");
  CHECK(json["format"] == "int4");
  CHECK(json["rounding"] == "rne");
  CHECK(json["overflow"] == "saturate");
  CHECK(json["scale"] == 0.125);
  CHECK(json["n"] == 50000);
  CHECK(json["figures"].size() == 12);
  for (const auto& item : json["figures"].items()) {
    INFO(item.key() << " " << item.value().dump());
    CHECK(item.value()["verdict"] == "holds");
    CHECK(item.value()["ci95"][0].get<double>() <= item.value()["measured"].get<double>());
    CHECK(item.value()["ci95"][1].get<double>() >= item.value()["measured"].get<double>());
  }
  // 15 cells of 1/8; the two halves beyond 7.5 of them have errors up to a whole step.
  const double inside = 0.9375 * 0.125 * 0.125 / 12, outside = 0.0625 * 7.0 / 3 / 256;
  CHECK(json["figures"]["mse"]["predicted"].get<double>() ==
        Approx(inside + outside).epsilon(1e-12));
  CHECK(json["best_scale"]["real"]["scale"].get<double>() == Approx(1 / 7.5).epsilon(1e-5));
  CHECK(json["best_scale"]["power_of_two"]["log2_scale"] == -3);
}

TEST_CASE("analyze --scale-rule: the rule sees the numbers that are converted", "[fast]") {
  const AnalyzeScratch s;
  s.save("x.npy", numemu::ArrayType::float32, std::vector<float>{0.5f, -3, 1, 7});
  const std::string file = "--format int4 --dist x.npy ";
  CHECK(s.json(file + "--scale-rule absmax")["scale"] == 1);
  const Json half = s.json(file + "--scale-rule 'detuned( absmax , 0.50 )'");
  CHECK(half["scale"] == 0.5);
  CHECK(half["scale_rule"] == "detuned(absmax,0.5)");
  CHECK_FALSE(s.json(file).contains("scale_rule"));
  const Json law =
      s.json("--format e4m3fn --dist lognormal:2:log2 --n 50000 --scale-rule 'lognormal(-1)'");
  CHECK(std::abs(law["scale"].get<double>() - 0.5) < 0.02);  // e^mu = 1
  check_refused(s.analyze(file + "--scale-rule absmx"), "did you mean 'absmax'");
  check_refused(s.analyze(file + "--scale-rule absmax --scale 2"), "not both");
}

TEST_CASE("analyze: results depend on the seed and not on the threads", "[fast]") {
  const AnalyzeScratch s;
  const std::string common = "--format float4_e2m1fn --dist laplace --rounding 'sr(4)' --n 40000";
  const Result one = s.analyze(common + " --threads 1"), three = s.analyze(common + " --threads 3");
  CHECK(one.out == three.out);
  CHECK(s.analyze(common + " --seed 1").out != one.out);
}

TEST_CASE("analyze: formats without sign get the law of |x|, infinite means are null", "[fast]") {
  const AnalyzeScratch s;
  const Json json = s.json("--format uint4 --dist normal --rounding rup --n 2000");
  CHECK(json["dist"] == "|normal|");
  CHECK(json["figures"]["relative_square"]["predicted"].is_null());
  CHECK(json["figures"]["relative_square"]["verdict"] == "undecided");
}

TEST_CASE("analyze: means of errors are undecided where the MSE that they are judged by is",
          "[fast]") {
  const AnalyzeScratch s;
  const Json figures = s.json("--format float8_e4m3fn --dist lognormal:4 --n 20000")["figures"];
  for (const char* figure : {"mse", "mean_error", "outward_error", "gain_error", "sqnr_db"})
    CHECK(figures[figure]["verdict"] == "undecided");
  CHECK(s.json(
            "--format float8_e4m3fn --dist normal --n 20000")["figures"]["mean_error"]["verdict"] ==
        "holds");
}

TEST_CASE("analyze: results that are not finite are counted and left out of the errors", "[fast]") {
  const AnalyzeScratch s;
  const Json json =
      s.json("--format float8_e4m3fn --dist uniform --scale 0.001 --overflow ieee --n 20000");
  // Beyond 464 * 0.001 everything is NaN.
  const double scale = static_cast<double>(0.001F);
  CHECK(json["figures"]["nan"]["predicted"].get<double>() == Approx(1 - 464 * scale));
  CHECK(json["figures"]["overflow"]["predicted"] == json["figures"]["nan"]["predicted"]);
  CHECK(json["figures"]["signal"]["predicted"].get<double>() ==
        Approx(464 * scale * 464 * scale / 3));
  CHECK_THAT(s.analyze("--format float8_e4m3fn --dist uniform --scale 0.001 --overflow ieee").out,
             Contains("means over the results that are finite"));
}

TEST_CASE("analyze FILE.npy: the law on the numbers equals the codec on them", "[fast]") {
  const AnalyzeScratch s;
  std::vector<double> x;
  for (int i = -500; i <= 500; ++i) x.push_back(i / 64.0 + (i % 3) * 1e-3);
  s.save("x.npy", numemu::ArrayType::float64, x);
  s.save("y.npy", numemu::ArrayType::float32, std::vector<float>(x.begin(), x.end()));
  s.save("h.npy", numemu::ArrayType::float16, std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3555});
  for (const char* file : {"x.npy", "y.npy"}) {
    for (const char* rounding : {"rne", "rodd", "'sr(6)'"}) {
      const Json json = s.json(std::string("--format e2m3 --best-scale --dist ") + file +
                               " --rounding " + rounding);
      CHECK(json["n"] == 1001);
      CHECK(json["dist"] == file);
      for (const auto& item : json["figures"].items()) CHECK(item.value()["verdict"] == "holds");
      CHECK(json["best_scale"]["real"]["mse"].get<double>() <=
            json["figures"]["mse"]["predicted"].get<double>() * (1 + 1e-9));
    }
  }
  // 1, -2 and 0x3555 = 0.33325...: only the last is not a multiple of 1/8.
  const double rest = 0.375 - 0.333251953125;
  CHECK(s.json("--format e2m3 --dist h.npy")["figures"]["mse"]["measured"].get<double>() ==
        Approx(rest * rest / 3).epsilon(1e-12));
  CHECK_THAT(s.analyze("--format e2m3 --dist x.npy").out, Contains("1001 numbers of x.npy"));
}

TEST_CASE("analyze refuses bad arguments in one line", "[fast]") {
  const AnalyzeScratch s;
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    INFO(arguments);
    check_refused(s.analyze(arguments), text);
  };
  refused("--dist normal", "--format");
  refused("--format e4m3fn", "--dist");
  refused("--format e4m3fm --dist normal", "did you mean 'e4m3fn'");
  refused("--format float32 --dist normal", "32 bits, expected a format of at most 16");
  refused("--format binary15p1se --dist normal", "'binary15p1se': its values leave the range");
  refused("--format int4 --dist nromal", "did you mean 'normal'");
  refused("--format int4 --dist lognormal:0", "S is 0");
  refused("--format int4 --dist lognormal:-2:log2", "S is -2");
  refused("--format int4 --dist lognormal:two", "'two' is not a number");
  refused("--format int4 --dist lognormal:1:ln", "unknown unit 'ln'");
  refused("--format int4 --dist normal --scale 0", "--scale: expected a positive number");
  refused("--format int4 --dist normal --scale -1", "--scale");
  refused("--format int4 --dist normal --scale 1e60", "'1e60'");
  refused("--format int4 --dist normal --scale 1x", "'1x'");
  refused("--format int4 --dist normal --scale nan", "'nan'");
  refused("--format int4 --dist normal --n 10", "--n");
  refused("--format int4 --dist normal --n 1e6", "--n");
  refused("--format int4 --dist normal --seed -1", "--seed");
  refused("--format int4 --dist normal --rounding rnd", "rne");
  refused("--format int4 --dist normal --rounding 'sr(33)'", "sr(");
  refused("--format int4 --dist normal --overflow wrap", "unknown overflow");
  refused("--format int4 --dist normal --bestscale", "did you mean '--best-scale'");
}

TEST_CASE("analyze refuses bad files in one line that names the place", "[fast]") {
  const AnalyzeScratch s;
  s.save("empty.npy", numemu::ArrayType::float32, std::vector<float>{});
  s.save("nan.npy", numemu::ArrayType::float32, std::vector<float>{1, 2, NAN});
  s.save("inf.npy", numemu::ArrayType::float64, std::vector<double>{-INFINITY});
  s.save("int.npy", numemu::ArrayType::int32, std::vector<std::int32_t>{1});
  s.save("zero.npy", numemu::ArrayType::float32, std::vector<float>(5));
  s.save("good.npy", numemu::ArrayType::float32, std::vector<float>{1});
  std::ofstream(s.path + "/text.npy") << "no numbers";
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    INFO(arguments);
    check_refused(s.analyze("--format int4 --dist " + arguments), text);
  };
  refused("empty.npy", "empty.npy: shape [0]");
  refused("nan.npy", "nan.npy: element 2 is nan");
  refused("inf.npy", "inf.npy: element 0 is -inf");
  s.save("huge.npy", numemu::ArrayType::float64, std::vector<double>{1, 1e200});
  refused("huge.npy", "huge.npy: element 1 is 1e+200, expected finite numbers up to 1e+75");
  refused("int.npy", "int.npy: dtype int32, expected float16, float32 or float64");
  refused("text.npy", "text.npy");
  refused("none.npy", "none.npy");
  refused("zero.npy", "zero.npy: expected numbers that are not all zero");
  refused("good.npy --n 1000", "--n: good.npy is a file with its own numbers");
}

TEST_CASE("analyze: many formats and laws share one table with their limits", "[fast]") {
  const AnalyzeScratch s;
  const Json json = s.json(
      "--format 'e2m1,int{3,4},lloyd(normal,16),nvfp4,mx(e2m1,{16,32})' --dist normal,laplace");
  CHECK(json["rounding"] == "rne");
  CHECK(json["overflow"] == "saturate");
  const auto find = [&](const std::string& format, const std::string& law) -> Json {
    for (const Json& row : json["rows"])
      if (row["format"] == format && row["dist"] == law) return row;
    FAIL(format + " " + law);
    return {};
  };
  // The best scale of Lloyd-Max levels of a law is 1, and nothing of 4 bits is better.
  const Json lloyd = find("lloyd(normal,16)", "normal");
  CHECK(lloyd["scale"].get<double>() == Approx(1).epsilon(1e-3));
  CHECK(lloyd["sqnr_db"].get<double>() == Approx(20.22).margin(0.005));
  CHECK(lloyd["to_lloyd_max_db"].get<double>() == Approx(0).margin(1e-5));
  for (const char* format : {"float4_e2m1fn", "int4"})
    CHECK(find(format, "normal")["to_lloyd_max_db"].get<double>() < 0);
  // Specification: a uniform quantizer of a normal law loses least at a step of 0.3352 with 16
  // levels; int4 has 15.
  CHECK(find("int4", "normal")["scale"].get<double>() == Approx(0.352).epsilon(0.01));
  CHECK(find("nvfp4", "normal")["sqnr_db"].get<double>() == Approx(20.44).margin(0.06));
  CHECK(find("nvfp4", "normal")["kind"] == "measured");
  // Thirty draws of as many numbers in numpy spread by 0.0226 dB.
  const Json ends = find("nvfp4", "normal")["sqnr_ci95"];
  CHECK((ends[1].get<double>() - ends[0].get<double>()) / 2 == Approx(1.96 * 0.0226).epsilon(0.35));
  CHECK(find("int4", "normal")["sqnr_ci95"].is_null());
  const Json reached = find("Lloyd's algorithm: 16 levels, E8M0 scales, blocks of 32", "normal");
  CHECK(reached["sqnr_ci95"].is_null());
  CHECK(reached["kind"] == "reached");
  CHECK(find("limit: Lloyd-Max, 8 levels", "laplace")["sqnr_db"].get<double>() ==
        Approx(12.64).margin(0.011));
  // 6.02 dB a bit of a normal law.
  for (const Json& row : json["rows"])
    if (row["dist"] == "normal" && row["format"] == "limit: rate-distortion (Shannon's bound)")
      CHECK(row["sqnr_db"].get<double>() ==
            Approx(20 * std::log10(2.0) * row["bits"].get<double>()));
  CHECK(reached["sqnr_db"].get<double>() > find("mxfp4", "normal")["sqnr_db"].get<double>());
  CHECK(find("Lloyd's algorithm: 16 levels, E4M3 scales, blocks of 16", "normal")["sqnr_db"]
            .get<double>() > find("nvfp4", "normal")["sqnr_db"].get<double>() + 1);

  const Result r = s.analyze(
      "--format e2m1,int4 --dist 'student-t:4' --scale-rule best,absmax,power-of-two --csv t.csv");
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK_THAT(r.out, Contains("rne saturate"));
  CHECK_THAT(read_file(s.path + "/t.csv"), Contains("\"float4_e2m1fn\",4,\"power-of-two\""));
}

TEST_CASE("analyze: limits of formats without sign are those of the law of |x|", "[fast]") {
  const AnalyzeScratch s;
  for (const std::string law : {"normal", "laplace", "uniform", "lognormal:1"}) {
    const std::string folded = "|" + law + "|";
    const Json rows = s.json("--format uint4,int4,uint12 --dist " + law)["rows"];
    std::map<std::string, double> lloyd, shannon;  // of 4 bits
    for (const Json& row : rows) {
      const double db = row["sqnr_db"].get<double>();
      if (row["bits"] != 4) continue;
      const std::string format = row["format"].get<std::string>(), of = row["dist"];
      if (format == "limit: Lloyd-Max, 16 levels") lloyd[of] = db;
      if (format.starts_with("limit: rate-distortion")) shannon[of] = db;
    }
    CAPTURE(law);
    REQUIRE(lloyd.size() == 2);
    REQUIRE(shannon.size() == 2);
    // A law of magnitudes has a bit less.
    CHECK(shannon[folded] - shannon[law] == Approx(20 * std::log10(2.0)).epsilon(1e-6));
    for (const Json& row : rows) {
      if (row["kind"] != "exact" || row["bits"] != 4) continue;
      const std::string of = row["dist"];
      CHECK(of == (row["format"] == "uint4" ? folded : law));
      CHECK(row["sqnr_db"].get<double>() < lloyd[of]);
      CHECK(row["to_lloyd_max_db"].get<double>() ==
            Approx(row["sqnr_db"].get<double>() - lloyd[of]));
    }
  }
  // A uniform law on [0, 1] in 16 steps: 1/3 over (1/16)^2 / 12.
  const Json uniform = s.json("--table --format uint4 --dist uniform")["rows"];
  CHECK(uniform[1]["sqnr_db"].get<double>() == Approx(10 * std::log10(1024.0)).epsilon(1e-9));
}

TEST_CASE("analyze: a format, rule and law that come again count once, under any name", "[fast]") {
  const AnalyzeScratch s;
  const auto rows = [&](const std::string& options) {
    std::vector<std::string> names;
    const Json json = s.json(options + " --n 1000");
    for (const Json& row : json["rows"]) names.push_back(row["format"].get<std::string>());
    return names;
  };
  const std::vector<std::string> once = rows("--table --format e2m1 --dist normal");
  CHECK(once.size() == 3);  // with two limits
  CHECK(rows("--format e2m1 e2m1 e2m1fn --dist normal normal") == once);
  const std::string blocks = "--table --format 'mx(e2m1,32)' --dist student-t:5";
  CHECK(rows(blocks + " --format mxfp4 --dist student-t:5") == rows(blocks));
  CHECK(rows("--format e2m1 --dist normal --scale-rule mse 'mse(exact)' best").size() == 4);
}

TEST_CASE("analyze: a grid that mixes formats with and without infinity says so", "[fast]") {
  const AnalyzeScratch s;
  CHECK_THAT(s.analyze("--format 'e2m{1,2}' --dist normal").err,
             Contains("all codes of e2m1 are numbers, e2m2 has infinity and NaN"));
  for (const char* alike : {"'e2m{1,3}'", "'e2m{1,2}+finite'", "'e2m{1,2}' --quiet"})
    CHECK(s.analyze(std::string("--dist normal --format ") + alike).err.empty());
}

TEST_CASE("analyze: draws of heavy tails have no interval, and the table says so", "[fast]") {
  const AnalyzeScratch s;
  const Json rows = s.json("--format int4,mxfp4 --dist lognormal:3 --n 4096")["rows"];
  for (const Json& row : rows) {
    INFO(row.dump());
    const bool of_draws = row["kind"] == "measured" || row["kind"] == "reached";
    CHECK(row["heavy_tails"] == of_draws);
    CHECK(row["sqnr_ci95"].is_null());
  }
  CHECK_THAT(s.analyze("--format mxfp4 --dist lognormal:3 --n 4096").out,
             Contains("another --seed has others"));
  CHECK_THAT(s.analyze("--format mxfp4 --dist normal --n 4096").out, !Contains("heavy"));
}

TEST_CASE("analyze: two hundred formats of up to 8 bits", "[fast]") {
  const AnalyzeScratch s;
  const Json json = s.json("--format all:8 --dist normal");
  CHECK(json["rows"].size() > 200);
  for (const Json& row : json["rows"]) {
    INFO(row.dump());
    if (row["kind"] != "exact") continue;
    CHECK(row["to_lloyd_max_db"].get<double>() < 1e-6);
    CHECK(row["sqnr_db"].get<double>() > 0);
  }
}

TEST_CASE("analyze: blocks of a file end with its lines, as those of quantize", "[fast]") {
  const AnalyzeScratch s;
  std::vector<float> x;
  for (int i = 0; i < 16 * 32; ++i) x.push_back(static_cast<float>((i * 7919) % 509 - 254) / 64);
  numemu::write_npy(s.path + "/lines.npy", numemu::ArrayType::float32, {16, 32}, x.data());
  for (const std::string block : {"group(int4,128,float16)", "group(int4,channel,float16)"}) {
    CAPTURE(block);
    const std::string format = " '" + block + "' ";
    const Json rows = s.json("--format" + format + "--dist lines.npy --table")["rows"];
    const Result quantized =
        s.call("quantize --block" + format + "--in lines.npy --out y.npy --json");
    REQUIRE(quantized.code == 0);
    const Json one = Json::parse(quantized.out);
    CHECK(rows[0]["bits"] == one["bits_per_element"]);
    CHECK(rows[0]["sqnr_db"].get<double>() == Approx(one["sqnr_db"].get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("analyze: a table takes files of any floating type, rounded to float32", "[fast]") {
  const AnalyzeScratch s;
  s.save("wide.npy", numemu::ArrayType::float64, std::vector<double>{0.1, 1, -3, 2.5});
  s.save("exact.npy", numemu::ArrayType::float64, std::vector<double>{0.5, 1, -3, 2.5});
  s.save("rounded.npy", numemu::ArrayType::float32, std::vector<float>{0.1f, 1, -3, 2.5f});
  const auto rows = [&](const std::string& file) {
    return s.json("--format e2m1,int4,mxfp4 --dist " + file)["rows"];
  };
  Json wide = rows("wide.npy"), rounded = rows("rounded.npy");
  for (Json* const table : {&wide, &rounded})
    for (std::size_t i = 0; i < table->size(); ++i) (*table)[i].erase("dist");
  CHECK(wide == rounded);
  CHECK_THAT(s.analyze("--format e2m1,int4 --dist wide.npy").err,
             Contains("wide.npy: 1 of 4 numbers are rounded to float32 (rne)"));
  CHECK(s.analyze("--format e2m1,int4 --dist exact.npy").err.empty());
}

TEST_CASE("analyze: formats that no rule of a grid serves are named, the others have rows",
          "[fast]") {
  const AnalyzeScratch s;
  const std::string grid =
      "--format int4,mxfp4,nvfp4 --dist normal --n 4096 --scale-rule best,four-over-six";
  const Json json = s.json(grid);
  int rows = 0;
  for (const Json& row : json["rows"]) {
    CHECK(row["format"] != "mxfp4");
    rows += row["kind"] == "exact" || row["kind"] == "measured";
  }
  CHECK(rows == 3);  // int4 under both, nvfp4 under one
  CHECK(json["notes"].size() == 1);
  CHECK_THAT(s.analyze(grid).err, Contains("scale rule 'four-over-six' has no scales for mxfp4") &&
                                      Contains("it has no row"));
}

TEST_CASE(
    "analyze, quantize: the rule floor clips elements up to a power of two, and a note says so",
    "[fast]") {
  const AnalyzeScratch s;
  s.save("x.npy", numemu::ArrayType::float32, std::vector<float>{0.1f, 1, -3, 2.5f});
  const std::string clips =
      "scale rule floor puts the largest magnitude of a block of mx(nf4,32) up "
      "to 2 times above the largest element";
  CHECK_THAT(s.analyze("--format 'mx(nf4,32)' --dist normal --n 4096").err, Contains(clips));
  CHECK_THAT(s.call("quantize --block 'mx(nf4,32)' --in x.npy --out y.npy").err, Contains(clips));
  CHECK(s.analyze("--format 'mx(nf4,32)' --scale-rule ceil --dist normal --n 4096").err.empty());
  CHECK(
      s.call("quantize --block 'mx(nf4,32)' --scale-rule ceil --in x.npy --out y.npy").err.empty());
  CHECK_THAT(s.analyze("--format 'mx(nf4,32)' --dist normal --n 4096").err,
             Contains("; ceil clips nothing, mse has the least error"));
  // Under ceil posits have more error than under floor.
  CHECK_THAT(s.analyze("--format 'mx(posit(6,1),32)' --dist normal --n 4096").err,
             Contains("which clips it; mse has the least error"));
  CHECK(s.analyze("--format mxfp4,mxint8,mxfp8_e4m3 --dist normal --n 4096").err.empty());
}

TEST_CASE("analyze: tables that are refused", "[fast]") {
  const AnalyzeScratch s;
  s.save("large.npy", numemu::ArrayType::float64, std::vector<double>{1, 1e40});
  s.save("empty.npy", numemu::ArrayType::float32, std::vector<float>{});
  check_refusals(
      s, {
             {"analyze --format e2m1,int4 --dist empty.npy", "empty.npy: shape [0]"},
             {"analyze --format e2m1,int4 --dist large.npy",
              "large.npy: element 1 is 1e+40, expected numbers within float32"},
             {"analyze --format 'e2m1,e2{m1' --dist normal", "brackets that do not match"},
             {"analyze --format e2m1,nf5 --dist normal", "did you mean"},
             {"analyze --format e2m1,int4 --dist normal --overflow ieee",
              "--overflow: expected saturate"},
             {"analyze --format mxfp4 --dist normal --scale-rule absmax",
              "--scale-rule: scale rule 'absmax'"},
             {"analyze --format e2m1,int4 --dist normal --scale-rule bogus",
              "none, pow2, best, power-of-two"},
             {"analyze --format e2m1 --dist normal --scale-rule bogus",
              "--scale-rule: unknown scale rule 'bogus'; known: absmax, ceil, "},
             {"analyze --format int4,e8m23 --dist normal", "'float32' has 32 bits"},
             {"analyze --format all:9 --dist normal", "expected all:3 to all:8"},
             {"analyze --format e2m1 --dist student-t:2", "its variance is infinite"},
             {"analyze --format e2m1,int4 --dist normal --scale 2", "not allowed with a table"},
         });
}

}  // namespace analyze_test
