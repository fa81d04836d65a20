// numemu verify as its users run it: lines of a simulator, arrays of a kernel, planted faults.
#include <zlib.h>

#include <bit>
#include <filesystem>
#include <functional>
#include <map>

#include "emu/net/data/npz.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/files/text.hpp"
#include "emu/oracle/record.hpp"
#include "formats/random.hpp"
#include "formats/storage/json.hpp"
#include "tests/cli/gemm_fixture.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"

namespace numemu::test::verify_test {
namespace {

using namespace oracle;

constexpr const char* kUnit = "nvidia.h100.wgmma.e4m3.f32";

std::uint32_t word(std::size_t i) { return RandomSource{.stream = Stream::vectors}.bits(i, 32); }

/// Records of random codes with the results of a unit.
Records dots(const Subject& s, std::int64_t count) {
  Records records(layout_of(s), count);
  for (std::size_t f = 0; f < 2; ++f) {
    for (std::size_t i = 0; i < records.columns[f].size(); ++i)
      records.columns[f][i] = (word(i + (f << 24)) >> 24 & 0xbf) + 0x10;
  }
  for (std::size_t i = 0; i < records.columns[2].size(); ++i)
    records.columns[2][i] = std::bit_cast<std::uint32_t>(static_cast<float>(word(i) >> 20));
  evaluate(s, records);
  return records;
}

/// As a simulator prints them: one word for each field, element 0 last.
std::string simulator_text(const Subject& s, const Records& records) {
  Layout layout = layout_of(s);
  for (Field& field : layout) field.packed = field.count > 1;
  if (layout.back().name == "flags") layout.pop_back();
  std::string text = "// $fdisplay of tb_dot.sv\n\n";
  append_text(layout, records, text);
  return text;
}

const std::string kForeign =
    std::string("--unit ") + kUnit + " --fields a:32xe4m3fn,b:32xe4m3fn,c:f32,d:f32";

TEST_CASE("verify: a file of a simulator that matches, plain, gzip, from a pipe", "[fast]") {
  const Scratch s;
  const Subject subject = unit_subject(unit::find_unit(kUnit));
  const std::string text = simulator_text(subject, dots(subject, 500));
  s.file("sim.txt", text);
  gzFile zipped = gzopen((s.path + "/sim.gz").c_str(), "wb");
  gzwrite(zipped, text.data(), static_cast<unsigned>(text.size()));
  gzclose(zipped);
  for (const char* in :
       {"--in sim.txt", "--in sim.gz", "--in - <sim.gz", "--in sim.txt --threads 1"}) {
    INFO(in);
    const Result r = s.run("verify " + kForeign + " " + in);
    CHECK(r.code == 0);
    CHECK_THAT(r.out, Catch::Contains("records     500\nmatches     500\nmismatches  0\n"));
    CHECK(r.err.empty());
  }
}

TEST_CASE("verify: a planted fault is named, with its line and step", "[fast]") {
  const Scratch s;
  const Subject subject = unit_subject(unit::find_unit(kUnit));
  unit::UnitDescription faulty = *subject.unit->description();
  faulty.name = "faulty";
  faulty.alignment.fraction_bits = 12;
  const auto unit = unit::make_unit(faulty);
  Subject other = subject;
  other.unit = unit.get();
  s.file("sim.txt", simulator_text(subject, dots(other, 300)));
  const Result r = s.call("verify " + kForeign + " --in sim.txt --junit report.xml");
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("first       line ") && Catch::Contains("step 0, k 0..31: ") &&
                        Catch::Contains("rule        12 fraction bits kept instead of 13 "
                                        "(alignment): explains ") &&
                        Catch::Contains("contradicts 0 of "));
  const std::string xml = read_file(s.path + "/report.xml");
  CHECK_THAT(xml, Catch::Contains("tests=\"1\" failures=\"1\"") &&
                      Catch::Contains("12 fraction bits kept instead of 13"));
  for (const char* threads : {"1", "3"})
    CHECK(s.call("verify " + kForeign + " --in sim.txt --threads " + threads).out == r.out);
  const Json json = Json::parse(s.call("verify " + kForeign + " --in sim.txt --json").out);
  CHECK(json["records"] == 300);
  CHECK(json["rules"][0]["family"].text() == "alignment");
  CHECK(json["rules"][0]["contradicted"] == 0);
}

TEST_CASE("verify: TestFloat's lines with a fault in the ties", "[fast]") {
  const Scratch s;
  const Subject subject = operation_subject(Operation::mul, find_format("float16"),
                                            find_format("float16"), {}, Overflow::ieee);
  Subject other = subject;
  other.rounding = {.mode = RoundingMode::rna};
  Records records(layout_of(subject), 4000);
  for (std::size_t i = 0; i < 4000; ++i) {
    records.columns[0][i] = word(2 * i) >> 16 & 0x7fe0;  // few bits: products with ties
    records.columns[1][i] = word(2 * i + 1) >> 16 & 0x7fe0;
  }
  evaluate(other, records);
  std::string text;
  append_text(layout_of(subject), records, text);
  s.file("results.txt", text);
  const std::string command = "verify --in results.txt --op mul --from float16 --overflow ieee";
  const Result r = s.call(command);
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("rounding rna in place of rne (rounding)") &&
                        Catch::Contains("halfway between"));
  CHECK(s.call(command + " --rounding rna").code == 0);
  CHECK(s.call(command + " --ulp 1").code == 0);
  // The same with a first line that says what the file is about.
  s.file("results.txt", header_line(other) + "\n" + text);
  CHECK(s.call("verify --in results.txt").code == 0);
  CHECK(s.call("verify --in results.txt --rounding rne --max-errors 1").code == 1);
}

TEST_CASE("verify: arrays of a kernel", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  CHECK(s.gemm(kUnit, "--out d.npy").code == 0);
  const std::string command =
      std::string("verify --unit ") + kUnit + " --a a.npy --b b.npy --d d.npy";
  const Result fine = s.call(command);
  CHECK(fine.code == 0);
  CHECK_THAT(fine.out, Catch::Contains("records     6\nmatches     6\n"));
  std::vector<float> d = s.result<float>(ArrayType::float32);
  d[4] = std::bit_cast<float>(0x7fc00000u);
  s.floats("d.npy", {2, 3}, d);
  const Result wrong = s.call(command);
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.out, Catch::Contains("first       D[1,1]: expected 40800000") &&
                            Catch::Contains("  NaN                  1\n"));
  s.floats("d.npy", {3, 2}, d);
  check_refused(s.call(command), "d.npy: shape: expected [2, 3] (the shape of D), found [3, 2]");
}

TEST_CASE("verify: arrays in another order are named", "[fast]") {
  const Scratch s;
  constexpr std::int64_t kM = 6, kK = 8, kN = 5;
  const auto number = [](std::size_t i) { return static_cast<float>(word(i) >> 28); };
  const auto floats = [&](const char* file, std::int64_t rows, std::int64_t columns, auto value) {
    Array array(ArrayType::float32, {rows, columns});
    for (std::int64_t i = 0; i < rows * columns; ++i)
      array.as<float>()[i] = value(i / columns, i % columns);
    write_npy(s.path + "/" + file, array);
  };
  using Number = std::function<float(std::int64_t, std::int64_t)>;
  const auto flat = [&](std::size_t from, std::int64_t columns) -> Number {
    return [=](std::int64_t i, std::int64_t j) {
      return number(from + static_cast<std::size_t>(i * columns + j));
    };
  };
  const Number a = flat(0, kK), b = flat(1000, kN), c = flat(2000, kN);
  // As a kernel reads row-major memory that it takes for column-major.
  const auto other = [](const Number& x, std::int64_t rows, std::int64_t columns) -> Number {
    return [=](std::int64_t i, std::int64_t j) {
      const std::int64_t at = j * rows + i;
      return x(at / columns, at % columns);
    };
  };
  const auto product = [](const Number& x, const Number& y, const Number& z) -> Number {
    return [=](std::int64_t i, std::int64_t j) {
      float sum = z(i, j);
      for (std::int64_t k = 0; k < kK; ++k) sum += x(i, k) * y(k, j);
      return sum;
    };
  };
  floats("a.npy", kM, kK, a);
  floats("b.npy", kK, kN, b);
  floats("c.npy", kM, kN, c);
  const Number right = product(a, b, c);
  const std::pair<const char*, Number> kRows[] = {
      {"A is transposed", product(other(a, kM, kK), b, c)},
      {"B is transposed", product(a, other(b, kK, kN), c)},
      {"C is transposed", product(a, b, other(c, kM, kN))},
      {"D is transposed",
       [&](std::int64_t i, std::int64_t j) {
         const std::int64_t at = i * kN + j;
         return right(at % kM, at / kM);
       }},
      {"rows of D one too late",
       [&](std::int64_t i, std::int64_t j) { return right((i + kM - 1) % kM, j); }},
      {"columns of D in reverse order",
       [&](std::int64_t i, std::int64_t j) { return right(i, kN - 1 - j); }}};
  for (const auto& [name, kernel] : kRows) {
    INFO(name);
    floats("d.npy", kM, kN, kernel);
    const Result r = s.call(
        "verify --unit f32.sequential --format-a float32 --format-b float32 "
        "--a a.npy --b b.npy --c c.npy --d d.npy");
    CHECK(r.code == 1);
    CHECK_THAT(r.out, Catch::Contains(std::string("rule        ") + name));
  }
}

TEST_CASE("verify: arrays of dots, of a batch, and B as N x K", "[fast]") {
  const Scratch s;
  const auto codes = [&](const char* file, const ArrayShape& shape, std::size_t from) {
    Array array(ArrayType::uint8, shape);
    for (std::size_t i = 0; i < static_cast<std::size_t>(array.data.size()); ++i)
      array.data.data()[i] = static_cast<std::byte>((word(from + i) >> 24 & 0xbf) + 0x10);
    write_npy(s.path + "/" + file, array);
  };
  codes("a.npy", {12, 32}, 0);
  codes("b.npy", {12, 32}, 1000);
  codes("a3.npy", {3, 4, 32}, 0);
  codes("b3.npy", {3, 5, 32}, 2000);
  const auto check = [&](const std::string& make, const std::string& verify, const char* last) {
    INFO(verify);
    CHECK(s.call(make + " --out d.npy --unit " + kUnit).code == 0);
    CHECK(s.call("verify --d d.npy " + verify + " --unit " + kUnit).code == 0);
    Array d = read_npy(s.path + "/d.npy");
    d.data.data()[d.data.size() - 2] ^= std::byte{0x80};
    write_npy(s.path + "/d.npy", d);
    const Result wrong = s.call("verify --d d.npy " + verify + " --unit " + kUnit);
    CHECK(wrong.code == 1);
    CHECK_THAT(wrong.out, Catch::Contains("mismatches  1\n") && Catch::Contains(last));
  };
  const std::string dots = "--a a.npy --b b.npy", batch = "--a a3.npy --b b3.npy --b-layout nk";
  check("dot " + dots, dots + " --dots", "first       D[11]: ");
  check("gemm " + batch, batch, "first       D[2,3,4]: ");
  check_refused(s.call("verify --d d.npy " + batch + " --dots --unit " + kUnit),
                "--b-layout: not allowed with --dots");
}

TEST_CASE("verify: options that contradict the file or would be ignored are refused", "[fast]") {
  const Scratch s;
  CHECK(s.call("vectors --op mul --format float32 --n 9 --out mul.txt").code == 0);
  CHECK(s.call("verify --in mul.txt --from float32").code == 0);
  for (const auto& [options, message] :
       {std::pair{"--k 3", "--k: expected 1 or nothing, as mul.txt has it"},
        {"--from float16", "--from: expected float32 or nothing"},
        {"--to bfloat16", "--to: expected float32 or nothing"},
        {"--c c.npy", "--c: not allowed with --in"},
        {"--seed 3", "--seed: not allowed with --in"},
        {"--meta-layout ptx", "--meta-layout: not allowed with --in"},
        {"--element-order msb", "--element-order: expected together with --fields"},
        {"--dots", "--dots: not allowed with --in"}})
    check_refused(s.call(std::string("verify --in mul.txt ") + options), message);
  CHECK(s.call(std::string("vectors --n 9 --out u.txt --unit ") + kUnit).code == 0);
  check_refusals(s, {{"verify --in u.txt --rounding rne", "--rounding: not allowed with"},
                     {std::string("verify --in u.txt --rounding rne --unit ") + kUnit,
                      "--rounding: not allowed with --unit"},
                     {"verify --in u.txt --k 0", "--k: expected a whole number from 1 to 65536"},
                     {"verify --in v.npz", "v.npz: cannot open"}});
  s.file("mine.txt", "# numemu-vectors 1 unit=my.unit k=4\n");
  check_refused(s.call("verify --in mine.txt"), "if it is yours, give its description FILE.json");
}

TEST_CASE("verify: files of every form, as vectors writes them", "[fast]") {
  for (const std::string subject :
       {"--op fma --format bfloat16 --rounding 'sr(8)'", "--op convert --from tf32 --to int5",
        "--op div --format float64", "--op sqrt --format float8_e5m2", "--op lt --format float32",
        "--op fnmadd --format float16", "--op to_integer --from float64 --to uint64",
        "--op convert --from int64 --to bfloat16", "--unit h100.wgmma.e4m3.f32 --k 32",
        "--unit b200.tcgen05.e2m1.f32.nv16 --k 16", "--unit a100.mma.f16.f32.sp24",
        "--unit intel.emr.vpdpbusds.u8xs8.s32 --k 1",
        "--unit neutral.mac.e5m10.sr8 --format-a float16 --k 3"}) {
    INFO(subject);
    const Scratch s;
    const std::string make = "vectors --n 700 " + subject + " --file-format ";
    for (const auto& [form, file] : {std::pair{"text", "v.txt"},
                                     {"csv", "v.csv"},
                                     {"jsonl", "v.jsonl"},
                                     {"npz", "v.npz"},
                                     {"readmemh", "tb"}}) {
      INFO(form);
      REQUIRE(s.call(make + form + " --out " + file).code == 0);
      const Result r = s.call(std::string("verify --in ") + file);
      CHECK(r.err.empty());
      CHECK(r.code == 0);
      CHECK_THAT(r.out, Catch::StartsWith(file) && Catch::Contains("records     700\nmatches     7"
                                                                   "00\n"));
    }
    CHECK(s.call("verify --in tb.flags.hex").code ==
          (subject.find("s32") == std::string::npos ? 0 : 2));
  }
}

TEST_CASE("verify: results of ports with X digits and faults, and without flags", "[fast]") {
  const Scratch s;
  REQUIRE(s.call(std::string("vectors --k 4 --n 9 --file-format readmemh --out tb --unit ") + kUnit)
              .code == 0);
  const auto words = [&](const char* file, auto change) {
    std::string text = read_file(s.path + "/" + file);
    change(text);
    s.file(file, text);
  };
  std::filesystem::remove(s.path + "/tb.flags.hex");
  words("tb.d.hex", [](std::string& text) {
    text.erase(0, text.find('\n') + 1);  // as a simulator writes it
    text.replace(0, 8, "xxxxXXzZ");
    char& digit = text[text.find('\n') + 8];
    digit = digit == '0' ? '1' : '0';
  });
  const Result r = s.call("verify --in tb");
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("mismatches  2\n  X or Z digits        1\n") &&
                        Catch::Contains("first       line 2 ["));
  words("tb.d.hex", [](std::string& text) { text += "00000000\n"; });
  check_refused(s.call("verify --in tb"),
                "tb.d.hex: expected as many records as tb.a.hex, found more");
  words("tb.d.hex", [](std::string& text) { text.replace(0, 8, "123456789"); });
  check_refused(s.call("verify --in tb"), "tb.d.hex: line 1: d: expected at most 8 digits");
  words("tb.b.hex", [](std::string& text) { text.insert(text.find("seed=0") + 5, "1"); });
  check_refused(s.call("verify --in tb"), "tb.b.hex: line 1: expected that of tb.a.hex, or none");
  s.file("tb.in.hex", "");
  check_refused(s.call("verify --in tb"), "tb.a.hex, tb.in.hex: expected one of them, found both");
  std::filesystem::remove(s.path + "/tb.in.hex");
  std::filesystem::remove(s.path + "/tb.b.hex");
  check_refusals(s, {{"verify --in tb", "tb.b.hex: cannot open"},
                     {"verify --in tb --fields a:f32 --op mul --from f32 --overflow ieee",
                      "--fields: not allowed with tb, whose fields have names"}});
}

TEST_CASE("verify: arrays of an npz file with faults, options in place of its header", "[fast]") {
  const Scratch s;
  const std::string make = std::string("vectors --k 4 --n 9 --file-format npz --out v.npz --unit ");
  REQUIRE(s.call(make + kUnit).code == 0);
  std::map<std::string, Array> arrays = net::read_npz_arrays(s.path + "/v.npz", true);
  const auto put = [&](std::map<std::string, Array>& from) {
    std::vector<net::test::ZipItem> items;
    for (const auto& [name, array] : from) {
      if (name == "class" || name == "numemu_vectors") continue;
      const std::string data(reinterpret_cast<const char*>(array.data.data()),
                             static_cast<std::size_t>(array.data.size()));
      items.push_back({name + ".npy", net::test::npy(array.type, array.shape, data), true});
    }
    s.file("w.npz", net::test::zip(items));
  };
  arrays.at("d").as<std::uint32_t>()[5] ^= 0x80000000;
  arrays.erase("flags");
  put(arrays);
  check_refused(s.call("verify --in w.npz"),
                "--unit or --op: expected one, as the file has no first line with it");
  const std::string command = std::string("verify --in w.npz --unit ") + kUnit;
  const Result r = s.call(command);
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("K = 4") && Catch::Contains("mismatches  1\n") &&
                        Catch::Contains("first       record 5: expected"));
  CHECK(Json::parse(s.call(command + " --json").out)["first"]["record"] == 5);
  arrays.at("d").shape = {3, 3};
  put(arrays);
  check_refused(s.call(command), "w.npz: d: shape: expected [records], found [3, 3]");
}

TEST_CASE("verify: vectors of a described unit need no description beside them", "[fast]") {
  const Scratch s;
  s.file("mine.json",
         R"({"numemu_unit": 1, "name": "my.unit", "a": "float8_e4m3fn", "b": "float8_e4m3fn",
             "c": "float32", "d": "float32", "core": "fused", "k": 8,
             "alignment": {"fraction_bits": 12}, "accumulator": {"format": "e8m20"}})");
  for (const auto& [form, file] : {std::pair{"text", "v.txt"},
                                   {"csv", "v.csv"},
                                   {"jsonl", "v.jsonl"},
                                   {"npz", "v.npz"},
                                   {"readmemh", "tb"}}) {
    INFO(form);
    REQUIRE(s.call(std::string("vectors --unit mine.json --n 300 --file-format ") + form +
                   " --out " + file)
                .code == 0);
    const std::string in = std::string(" --in ") + file;
    CHECK_THAT(s.call("verify" + in).out,
               Catch::Contains("my.unit: ") && Catch::Contains("matches     300\n"));
    CHECK(s.call("verify --unit mine.json" + in).code == 0);
  }
  const Result found = s.call("identify --in v.txt");
  CHECK(found.code == 0);
  CHECK_THAT(found.out, Catch::Contains("12 bits kept"));
  s.file("v.txt",
         "# numemu-vectors 1 unit=my.unit description={\"numemu_unit\":1,\"core\":\"x\"}\n");
  check_refused(s.call("verify --in v.txt"), "v.txt: line 1: description: ");
}

TEST_CASE("verify: a byte-order mark is passed over, UTF-16 and zip archives are named", "[fast]") {
  const Scratch s;
  const std::string text = s.call("vectors --op mul --format float16 --n 5").out;
  s.file("v.txt", "\xef\xbb\xbf" + text);
  CHECK(s.call("verify --in v.txt").code == 0);
  s.file("v.txt", "\xff\xfe#\0 \0");
  check_refused(s.call("verify --in v.txt"), "v.txt: expected UTF-8 text, found UTF-16");
  s.file("v.txt", net::test::zip({{"a.npy", "x"}}));
  check_refused(s.call("verify --in v.txt"), "v.txt: expected text, found a zip archive");
}

TEST_CASE("verify: one scale a record may stand without its axis", "[fast]") {
  const Scratch s;
  REQUIRE(s.call("vectors --unit b200.tcgen05.e2m1.f32.nv16 --k 16 --n 50 --file-format npz --out "
                 "v.npz")
              .code == 0);
  for (const auto& [name, array] : net::read_npz_arrays(s.path + "/v.npz", true))
    write_npy(s.path + "/" + name + ".npy", array);
  CHECK(s.call("verify --unit b200.tcgen05.e2m1.f32.nv16 --dots --a a.npy --b b.npy --c c.npy "
               "--scale-a sa.npy --scale-b sb.npy --d d.npy")
            .code == 0);
}

TEST_CASE("verify: a rule explains results with their flags where the file has them", "[fast]") {
  const Scratch s;
  const std::string command =
      "vectors --op convert --from float32 --to bfloat16 --style ties --n 50";
  const std::string text = s.call(command).out, away = s.call(command + " --rounding rna").out;
  s.file("v.txt", text.substr(0, text.find('\n') + 1) + away.substr(away.find('\n') + 1));
  const Result r = s.call("verify --in v.txt");
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("rounding rna in place of rne") &&
                        Catch::Contains(" mismatches with their flags, contradicts 0 of "));
}

TEST_CASE("verify: lines in TestFloat's layout, of every kind of function", "[fast]") {
  const Scratch s;
  struct Lines {
    const char *options, *text;
  };
  // Results of IEEE 754, written by hand; NaN and integers of invalid conversions as x86 has them.
  for (const Lines& lines :
       {Lines{"--op div --from float32",
              "3F800000 40400000 3EAAAAAB 01\n"
              "80000000 00000000 FFC00000 10\n"
              "C1200000 80000000 7F800000 08\n"},
        {"--op sqrt --from float32",
         "40000000 3FB504F3 01\nBF800000 FFC00000 10\n"
         "80000000 80000000 00\n"},
        {"--op fma --from float32", "3F800001 3F800001 BF800002 28800000 00\n"},
        {"--op le --from float32", "3F800000 40000000 1 00\n7FC00000 3F800000 0 10\n"},
        {"--op lt_quiet --from float32", "7FC00000 3F800000 0 00\n7F800001 3F800000 0 10\n"},
        {"--op eq --from float64", "0000000000000000 8000000000000000 1 00\n"},
        {"--op convert --from uint64 --to float32", "FFFFFFFFFFFFFFFF 5F800000 01\n"},
        {"--op convert --from int32 --to float16", "FFFF0000 FC00 05\n"},
        {"--op to_integer --from float32 --to int32 --invalid any",
         "3FC00000 00000002 00\n4F000000 80000000 10\n7FC00000 80000000 10\n"
         "C0200000 FFFFFFFE 00\n"},
        {"--op convert --from float32 --to int64 --rounding rtz --invalid any",
         "3FC00000 0000000000000001 01\n7F800000 8000000000000000 10\n"}}) {
    INFO(lines.options);
    s.file("v.txt", lines.text);
    const Result r = s.call(std::string("verify --in v.txt --overflow ieee ") + lines.options);
    CHECK(r.code == 0);
    CHECK(r.err.empty());
  }
  // Without --invalid any the rule is named.
  s.file("v.txt", s.call("vectors --op convert --from float32 --to int32 --n 400").out);
  std::string text = read_file(s.path + "/v.txt"), changed;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    if (const auto nv = line.find(" 10 #"); nv != line.npos) line.replace(nv - 8, 8, "80000000");
    changed += line + "\n";
    at = end + 1;
  }
  s.file("v.txt", changed);
  const Result r = s.call("verify --in v.txt");
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("NaN and what is out of range give one integer, as x86 does"));
  CHECK(s.call("verify --in v.txt --invalid any").code == 0);
}

TEST_CASE("verify: conversions to integers out of range have the flags of vectors", "[fast]") {
  const Scratch s;
  std::string text = s.call("vectors --op convert --from float32 --to int8 --n 400").out;
  // 10^9 is far beyond int8: NV alone, as RISC-V's fcvt has it.
  text =
      text.substr(0, text.find('\n') + 1) + "4E6E6B28 7F 10\n" + text.substr(text.find('\n') + 1);
  CHECK(text.find(" 7F 05 ") == text.npos);
  CHECK(text.find(" 80 05 ") == text.npos);
  s.file("v.txt", text);
  CHECK(s.call("verify --in v.txt").code == 0);
  text.replace(text.find("7F 10\n"), 5, "7F 05");
  s.file("v.txt", text);
  const Result r = s.call("verify --in v.txt");
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("mismatches  1\n") && Catch::Contains("flags"));
}

TEST_CASE("verify: metadata that is not a legal pattern is refused with its line", "[fast]") {
  const Scratch s;
  const std::string command =
      "verify --unit a100.mma.f16.f32.sp24 --fields a:4xf16,b:8xf16,e:4x2,d:f32 --in sim.txt";
  const std::string operands = "3c003c003c003c00 3c003c003c003c003c003c003c003c00 ";
  s.file("sim.txt", "// e, d\n" + operands + "99 40800000\n" + operands + "93 40800000\n");
  check_refused(s.call(command), "sim.txt: line 3: meta row 0, position 1: index 0 after 3");
  // What nobody knows is no error, but a class of mismatch.
  s.file("sim.txt", "// e, d\n" + operands + "99 40800000\n" + operands + "xx 40800000\n");
  const Result r = s.call(command);
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Catch::Contains("mismatches  1\n  X or Z digits        1\n"));
}

TEST_CASE("verify: wrong files and options are refused", "[fast]") {
  const Scratch s;
  s.file("sim.txt", "# nothing\n");
  check_refusals(s,
                 {{"verify " + kForeign + " --in sim.txt", "sim.txt: expected records, found none"},
                  {"verify --in sim.txt",
                   "--unit or --op: expected one, as the file has no first line with it"}});
  s.file("sim.txt", "00 11 22\n");
  check_refusals(
      s, {{"verify " + kForeign + " --in sim.txt", "sim.txt: first record: expected 4 words"},
          {"verify " + kForeign, "--in: expected a file of records"},
          {"verify " + kForeign + " --in none.txt", "none.txt: cannot open"},
          {"verify --in sim.txt --unit exact --op mul", "--op: not allowed with --unit"},
          {"verify " + kForeign + " --in sim.txt --junit sim.txt", "--junit"}});
  s.file("sim.txt", "# numemu-vectors 1 op=mul from=float16 rounding=up overflow=ieee\n");
  check_refused(s.call("verify --in sim.txt"), "sim.txt: line 1: ");
}

/// `from` in the place of the first `to` of a text.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("verify: codes of sums in files, and faults of their epilogue", "[fast]") {
  const Scratch s;
  const std::string made = "vectors --quiet --unit intel.emr.tdpbssd --k 16 --n 900 --requantize ";
  for (const std::string how : {"float", "fixed-point-single", "fixed-point-double"}) {
    INFO(how);
    REQUIRE(s.call(made + how + " --out v.txt").code == 0);
    CHECK(s.call("verify --in v.txt --requantize " + how).code == 0);
    for (const auto& [form, out, in] : {std::tuple("csv", "v.csv", "v.csv"),
                                        {"jsonl", "v.jsonl", "v.jsonl"},
                                        {"npz", "v.npz", "v.npz"},
                                        {"readmemh", "tb", "tb"}}) {
      INFO(form);
      REQUIRE(s.call(made + how + " --file-format " + form + " --out " + out).code == 0);
      const Result r = s.call(std::string("verify --in ") + in);
      INFO(r.out << r.err);
      CHECK(r.code == 0);
      CHECK_THAT(r.out, Catch::Contains("matches     900\n"));
    }
  }
  // A design of one rounding where two were asked for.
  REQUIRE(s.call(made + "fixed-point-single --zero-point 3 --out v.txt").code == 0);
  s.file("w.txt",
         replaced(read_file(s.path + "/v.txt"), "fixed-point-single", "fixed-point-double"));
  const Result wrong = s.call("verify --in w.txt");
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.out, Catch::Contains("one rounding in place of two, as fixed-point-single "
                                        "(requantization): explains"));
  CHECK_THAT(wrong.out, Catch::Contains("int8 results of -128 to 127, by fixed-point-double"));
  CHECK_THAT(wrong.out, Catch::Contains("zero point 3 the code"));
  for (const auto& [options, message] : std::vector<std::pair<std::string, std::string>>{
           {"--in v.txt --requantize float",
            "--requantize: expected fixed-point-single or nothing"},
           {"--in v.txt --low 3 --requantize fixed-point-single",
            "--low: expected -128 or nothing"},
           {"--in v.txt --low 3", "--low: expected --requantize, too"},
           {"--in v.txt --requantize fixed-point-single --factor 1",
            "--factor: not allowed with --in"},
           {"--in v.txt --format-d int8", "--format-d: expected --requantize, too"}})
    check_refused(s.call("verify " + options), message);
  check_refused(s.call("identify --in v.txt"), "expected results of the unit itself");
  for (const auto& [options, message] : std::vector<std::pair<std::string, std::string>>{
           {"--requantize float --multiplier 3 --shift 0", "--multiplier, --shift: expected"},
           {"--requantize fixed-point-single --shift 0", "--multiplier and --shift"},
           {"--requantize float --factor f.npy",
            "--factor: expected one number for all records, found 'f.npy'"},
           {"--requantize float --zero-point 128", "--zero-point: expected a number of int8"},
           {"--requantize float --format-d float16", "integers of at most 16 bits"},
           {"--zero-point 1", "--zero-point: expected --requantize, too"}})
    check_refused(s.call("vectors --unit intel.emr.tdpbssd " + options), message);
  check_refused(s.call("vectors --unit h100.wgmma.e4m3.f32 --requantize float"),
                "requantize: expected a unit with int32 results");
  check_refused(s.call("vectors --op mul --format int8 --requantize float"),
                "requantize: expected a unit with int32 results");
}

TEST_CASE("verify: codes of sums in arrays", "[fast]") {
  const GemmFolder s;
  std::vector<std::int8_t> a(40 * 24), b(24 * 30);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int8_t>(word(i) >> 24);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int8_t>(word(i + 9999) >> 24);
  s.put<std::int8_t>("a.npy", ArrayType::int8, {40, 24}, a);
  s.put<std::int8_t>("b.npy", ArrayType::int8, {24, 30}, b);
  std::vector<std::int32_t> bias(30), multiplier(30);
  for (std::size_t j = 0; j < bias.size(); ++j) {
    bias[j] = static_cast<std::int32_t>(word(j) >> 18) - 8000;
    multiplier[j] = static_cast<std::int32_t>((1u << 30) | word(j + 70) >> 2);
  }
  s.put<std::int32_t>("bias.npy", ArrayType::int32, {30}, bias);
  s.put<std::int32_t>("m.npy", ArrayType::int32, {30}, multiplier);
  const std::string rest = " --bias bias.npy --multiplier m.npy --shift=-8 --low=-100";
  const auto verify = [&](const std::string& how, const std::string& more) {
    return s.call("verify --unit intel.emr.tdpbssd --a a.npy --b b.npy --d d.npy --requantize " +
                  how + rest + more);
  };
  for (const std::string how : {"fixed-point-single", "fixed-point-double"}) {
    INFO(how);
    const Result made =
        s.gemm("intel.emr.tdpbssd", "--out d.npy --requantize " + how + rest + " --zero-point=-3");
    INFO(made.err);
    REQUIRE(made.code == 0);
    const Result same = verify(how, " --zero-point=-3");
    INFO(same.out << same.err);
    CHECK(same.code == 0);
    const Result lost = verify(how, " --zero-point 5");
    CHECK(lost.code == 1);
  }
  // A kernel that forgets the zero point, and one that forgets the bias.
  REQUIRE(s.gemm("intel.emr.tdpbssd", "--out d.npy --requantize fixed-point-double" + rest).code ==
          0);
  CHECK_THAT(verify("fixed-point-double", " --zero-point=-3").out,
             Catch::Contains("the zero point is not added (zero point): explains"));
  const std::string bare = " --multiplier m.npy --shift=-8 --low=-100";
  REQUIRE(s.gemm("intel.emr.tdpbssd", "--out d.npy --requantize fixed-point-double" + bare).code ==
          0);
  CHECK_THAT(verify("fixed-point-double", "").out,
             Catch::Contains("the bias is not added (bias): explains"));
  check_refused(verify("float", ""), "--multiplier, --shift: expected");
}

}  // namespace
}  // namespace numemu::test::verify_test
