// Files read by the check: valid folders, changed bits, and folders that must be refused.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/command.hpp"
#include "tests/oracle/cuda/replay/example.hpp"
#include "tests/oracle/cuda/replay/judge.hpp"

namespace numemu::oracle::recording::replay {
namespace {

namespace fs = std::filesystem;

const std::string kHeader =
    "file\tunit\tkind\tinstr\tK\ta\tb\tc\td\tscale\tblock\tnscale\tcount\tsource\tkept\tnmeta\n";
const std::string kHalf =
    "r.bin\tH100\tmma\tm16n8k16.f32.f16.f16.f32\t16\tf16\tf16\tf32\tf32\t-\t0"
    "\t0\t3\ta test\t16\t0\n";
const std::string kSparse =
    "r.bin\tA100\tmmasp\tm16n8k64.s32.s4.u4.s32\t64\ts4\tu4\ts32\ts32\t-\t0"
    "\t0\t3\ta test\t32\t8\n";

/// A folder that goes away with the test.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() /
              ("numemu_replay_" + std::to_string(getpid()) + "_" + std::to_string(next_++))) {
    fs::remove_all(path_);
    fs::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  std::string path() const { return path_.string(); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
  }
  void write(const std::string& file, const std::vector<std::uint8_t>& bytes) const {
    write(file, std::string(bytes.begin(), bytes.end()));
  }

 private:
  inline static int next_ = 0;
  fs::path path_;
};

/// Three records whose answers are those of the first rule.
std::vector<std::uint8_t> three(const Example& e, const std::string& chip) {
  std::vector<std::uint8_t> bytes;
  for (int n = 0; n < 3; ++n) {
    const std::vector<std::uint8_t> one = e.record(e.answer(chip));
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

Example half() {
  return Example("mma", "m16n8k16.f32.f16.f16.f32").product(3, 0x3c00, 0x4200).c(0x3f800000);
}
Example sparse() {
  return Example("mmasp", "m16n8k64.s32.s4.u4.s32").metadata(2, 0b1101).a(9, 0xf).b(19, 0xd);
}

struct Outcome {
  int status;
  std::string out, errors;
};

std::string text_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

Outcome replayed(const std::vector<std::string>& words) {
  std::FILE *out = std::tmpfile(), *errors = std::tmpfile();
  REQUIRE((out != nullptr && errors != nullptr));
  const int status = replay_command(words, out, errors);
  return {status, text_of(out), text_of(errors)};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The command refuses the folder and gives the reason.
void refused(const Folder& folder, const std::string& why) {
  const Outcome outcome = replayed({folder.path()});
  INFO(outcome.errors);
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.errors, why));
}

}  // namespace

TEST_CASE("sound records pass, dense and sparse", "[fast]") {
  for (const bool dense : {true, false}) {
    const Folder folder;
    folder.write("index.tsv", kHeader + (dense ? kHalf : kSparse));
    folder.write("r.bin", dense ? three(half(), "H100") : three(sparse(), "A100"));
    const Outcome outcome = replayed({folder.path()});
    INFO(outcome.out << outcome.errors);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "1 files, 3 records: 0 mismatches"));
    CHECK(contains(outcome.out, "(specification)"));
  }
}

TEST_CASE("every bit of a result that is changed is reported at its record", "[fast]") {
  const Folder folder;
  folder.write("index.tsv", kHeader + kHalf);
  folder.write("probes.tsv", "file\trecord\tid\tquestion\nr.bin\t1\tZ7\tzero-exponent\n");
  const std::vector<std::uint8_t> sound = three(half(), "H100");
  const std::size_t record = sound.size() / 3;
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::vector<std::uint8_t> changed = sound;
    changed[2 * record - 4 + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    folder.write("r.bin", changed);
    const RecordFile file = read_records(folder.path(), folder.path() + "/index.tsv").files.at(0);
    const Verdict v = judge(file, {"", "no rival", 0}).verdicts.at(0);
    REQUIRE(v.mismatches == 1);
    REQUIRE(v.first == 1);
    REQUIRE((v.answered ^ v.recorded) == std::uint64_t{1} << bit);
  }
  const Outcome outcome = replayed({folder.path()});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.out, "record 1, probe Z7 (zero-exponent), rule \"G=16 F=25\""));
  CHECK(contains(outcome.out, "recorded c0800000"));
  CHECK(contains(outcome.out, "rule     40800000"));
  CHECK(replayed({folder.path(), "--first", "1"}).status == 0);
}

TEST_CASE("signs of zeros and bits of NaN are told apart from other differences", "[fast]") {
  const Folder folder;
  folder.write("index.tsv", kHeader + kHalf);
  const Example zero("mma", "m16n8k16.f32.f16.f16.f32");
  const Example nan = Example(zero).a(0, 0x7e00);
  std::vector<std::uint8_t> bytes;
  for (const auto& record : {zero.record(0x80000000), nan.record(0x7fc00000), zero.record(1)})
    bytes.insert(bytes.end(), record.begin(), record.end());
  folder.write("r.bin", bytes);
  const RecordFile file = read_records(folder.path(), folder.path() + "/index.tsv").files.at(0);
  const Verdict v = judge(file, {"", "no rival", 0}).verdicts.at(0);
  CHECK(v.mismatches == 3);
  CHECK(v.zero_sign == 1);
  CHECK(v.nan_bits == 1);
}

TEST_CASE("where several answers are otherwise, the closest rule names them", "[fast]") {
  const Example shape("mma", "m16n8k16.f32.bf16.bf16.f32");
  Rule truth = rules("H100", shape.instruction()).at(0);
  truth.fraction = 24;
  truth.zero = ZeroProduct::dropped;
  truth.zero_sign = ZeroSign::of_addends;
  std::mt19937 random(4);
  std::vector<std::uint8_t> bytes;
  for (int n = 0; n < 400; ++n) {
    Example e = shape;
    // Ordinary numbers; tiny ones beside zeros; nothing but negative zeros.
    for (int k = 0; k < 16; ++k) {
      const std::uint64_t code = random() & 0x87ff;
      const std::uint64_t base = n % 4 == 0 ? 0x1500 : 0x3c00;
      if (n % 4 == 1) {
        e.product(k, 0x8000, base);
      } else if (k % 5 != 4) {
        e.product(k, code + base, (random() & 0x7ff) + base);
      } else {
        e.b(k, n % 4 == 2 ? 0x7e00 : 0x3f80);
      }
    }
    e.c(n % 4 == 1 ? 0x80000000 : 0);
    const std::vector<std::uint8_t> record = e.record(e.answer(truth));
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  const Folder folder;
  std::string row = kHalf;
  for (std::size_t at = 0; (at = row.find("f16", at)) != std::string::npos; at += 4)
    row.replace(at, 3, "bf16");
  row.replace(row.find("\t3\t"), 3, "\t400\t");
  folder.write("index.tsv", kHeader + row);
  folder.write("r.bin", bytes);
  const RecordFile file = read_records(folder.path(), folder.path() + "/index.tsv").files.at(0);
  const Judgement j = judge(file, {"", "", 0});
  for (const Verdict& v : j.verdicts) CHECK(v.mismatches > 0);
  const std::vector<Verdict> closest = closest_rule(j);
  REQUIRE(closest.size() == 1);
  INFO(closest[0].rule.name);
  CHECK(closest[0].mismatches == 0);
  for (const char* change :
       {" + F=24", " + zero products dropped, no floor", " + -0 where every addend is negative"})
    CHECK(contains(closest[0].rule.name, change));
  const Outcome outcome = replayed({folder.path()});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.out, "closest: " + closest[0].rule.name + ": 0 mismatches"));
  CHECK(
      contains(outcome.out, "\nrefuted\n  H100 mma m16n8k16.f32.bf16.bf16.f32: \"G=16 F=25\" by "));
  CHECK(contains(outcome.out, " of 400 records; stands: no rule, see \"closest\" above\n"));
}

TEST_CASE("options", "[fast]") {
  const Folder folder;
  folder.write("index.tsv", kHeader + kHalf);
  // 2^16 - 2^16 + 2^-8: F = 25 and 24 keep it, F = 23 does not.
  const Example e = Example("mma", "m16n8k16.f32.f16.f16.f32")
                        .product(0, 0x5c00, 0x5c00)
                        .product(1, 0xdc00, 0x5c00)
                        .product(2, 0x3c00, 0x1c00);
  folder.write("r.bin", three(e, "H100"));
  CHECK(replayed({folder.path()}).status == 0);
  const Outcome chip = replayed({folder.path(), "--chip", "T4"});
  CHECK(chip.status == 0);
  const Outcome rivals = replayed({folder.path(), "--rule", "F=23"});
  CHECK(contains(rivals.out, "rule \"F=23\""));
  CHECK(!contains(rivals.out, "F=24"));
  const Outcome all = replayed({folder.path()});
  CHECK(contains(all.out,
                 "exponents of normalised products                    0            0  1 of 1: "
                 "mma m16n8k16.f32.f16.f16.f32"));
  CHECK(contains(all.out,
                 "F=23                                                3            0  none"));
  CHECK_FALSE(contains(all.out, "refuted\n"));
  CHECK(replayed({folder.path(), "--chip", "MI300"}).status == 2);
  CHECK(replayed({folder.path(), "--first", "0"}).status == 2);
  CHECK(replayed({folder.path(), "--first"}).status == 2);
  CHECK(replayed({folder.path(), "--fast"}).status == 2);
  CHECK(replayed({folder.path(), "more"}).status == 2);
  CHECK(replayed({}).status == 2);
  CHECK(replayed({"--help"}).status == 0);
}

TEST_CASE("conversions and other makers' units are skipped aloud", "[fast]") {
  const Folder folder;
  const std::string conversion = "c.bin\tH100\tcvt\tany\t1\tf32\t-\t-\tf16\t-\t0\t0\t1\tx\t1\t0\n";
  folder.write("index.tsv", kHeader + conversion + kHalf);
  folder.write("r.bin", three(half(), "H100"));
  const Outcome outcome = replayed({folder.path()});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.out, "c.bin: not replayed, conversions are not dots"));
  folder.write("index.tsv", kHeader + conversion);
  refused(folder, "names no records to replay");
}

TEST_CASE("bad indexes are refused with file and line", "[fast]") {
  const Folder folder;
  folder.write("r.bin", three(half(), "H100"));
  refused(folder, "index.tsv: cannot read");
  folder.write("index.tsv", "");
  refused(folder, "index.tsv: is empty");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string row = kHalf;
    row.replace(row.find(from), from.size(), to);
    folder.write("index.tsv", kHeader + row);
  };
  with("\ta test", "");
  refused(folder, "line 2: expected 16 columns, got 15");
  with("m16n8k16", "m16n8k15");
  refused(folder, "line 2: no instruction mma m16n8k15.f32.f16.f16.f32");
  with("\t16\tf16", "\t8\tf16");
  refused(folder, "line 2: K: expected 16 for m16n8k16.f32.f16.f16.f32, got \"8\"");
  with("\t-\t0", "\tue8m0\t0");
  refused(folder, "scale: expected -");
  with("\t16\t0\n", "\t8\t0\n");
  refused(folder, "kept: expected 16");
  with("\t3\t", "\t-3\t");
  refused(folder, "line 2: count: expected a number below 10^9, got \"-3\"");
  with("\t3\t", "\t99999999999999999999\t");
  refused(folder, "count: expected a number");
  with("\t3\t", "\t4\t");
  refused(folder, "r.bin: expected 4 records of 72 bytes, that is 288 bytes, got 216");
  with("r.bin", "../r.bin");
  refused(folder, "is not a path below");
  with("r.bin", "/r.bin");
  refused(folder, "is not a path below");
  folder.write("index.tsv", kHeader + std::string(kHalf) + kHalf);
  refused(folder, "line 3: file \"r.bin\" stands twice");
  with("r.bin", "other.bin");
  refused(folder, "other.bin: cannot read");
  folder.write("index.tsv", "file\tfile\n1\t2\n");
  refused(folder, "column file stands twice");
  folder.write("index.tsv", "file\tunit\n1\t2\n");
  refused(folder, "line 2: no column kind");
  with("r.bin", "r.bin");
  folder.write("probes.tsv", "file\trecord\tid\tquestion\nr.bin\t3\tZ7\tzero-exponent\n");
  refused(folder, "probes.tsv line 2: expected a record below 3, got 3");
}

TEST_CASE("bad records are refused with their place", "[fast]") {
  const Folder folder;
  folder.write("index.tsv", kHeader + kSparse);
  const std::vector<std::uint8_t> sound = three(sparse(), "A100");
  const std::size_t record = sound.size() / 3;
  const auto with = [&](std::size_t at, std::uint8_t byte) {
    std::vector<std::uint8_t> changed = sound;
    changed[2 * record + at] = byte;
    folder.write("r.bin", changed);
  };
  with(5, 0x1f);
  refused(folder, "r.bin record 2 a[5]: expected a code of 4 bits, got 0x1f");
  with(32 + 63, 0x80);
  refused(folder, "r.bin record 2 b[63]: expected a code of 4 bits, got 0x80");
  const std::size_t metadata = 32 + 64 + 4;
  with(metadata + 3, 0b0101);
  refused(folder, "r.bin record 2 metadata[3]: expected two rising indices in four bits, got 0x5");
  with(metadata + 3, 0x14);
  refused(folder, "metadata[3]");
  std::vector<std::uint8_t> shorter = sound;
  shorter.pop_back();
  folder.write("r.bin", shorter);
  refused(folder, "expected 3 records of 112 bytes, that is 336 bytes, got 335");
}

}  // namespace numemu::oracle::recording::replay
