// What the help shows of each kind of option, and what is refused with which words.
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace options_test {

namespace {

using Catch::Contains;
using namespace numemu::test;

/// Help with single spaces: versions of CLI11 break and indent lines in their own ways.
std::string squeezed(const std::string& help) {
  std::string out;
  for (const char c : help) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
  }
  return out;
}

/// "--lr FLOAT=0.1" (CLI11 2.3), or "--lr FLOAT [0.1]" (2.4).
bool shows_default(const std::string& help, const std::string& option, const std::string& value) {
  return help.find(" " + option + "=" + value + " ") != std::string::npos ||
         help.find(" " + option + " [" + value + "] ") != std::string::npos;
}

}  // namespace

TEST_CASE("the help shows names, values, defaults and limits of options", "[fast]") {
  const Scratch s;
  const std::string train = squeezed(s.run("train --help").out);
  for (const char* shown :
       {" --data SET REQUIRED glyphs", " --nesterov Use", " --lr FLOAT:POSITIVE Learning",
        " --clip FLOAT:NONNEGATIVE Maximum", " --warmup INT:INT in [0 - 1000000000] Warm-up"})
    CHECK_THAT(train, Contains(shown));
  CHECK(shows_default(train, "--net NAME|FILE", "lenet"));
  CHECK(shows_default(train, "--store TEXT:{f32,f16,bf16}", "f32"));
  CHECK(shows_default(train, "--momentum FLOAT:FLOAT in [0 - 1]", "0.9"));
  CHECK(shows_default(train, "--epsilon FLOAT:POSITIVE", "1e-08"));
  CHECK(shows_default(train, "--epochs INT:INT in [1 - 100000]", "12"));
  const std::string sweep = squeezed(s.run("sweep --help").out);
  CHECK_THAT(sweep, Contains(" Positionals: config CONFIG.json "));
  CHECK_THAT(sweep, Contains(" --resume Excludes: --fresh "));
  CHECK_THAT(sweep, Contains(" --fresh Excludes: --keep-old --resume "));
  CHECK_THAT(squeezed(s.run("report -h").out), Contains(" -o,--out FILE "));
  CHECK_THAT(squeezed(s.run("infer -h").out), Contains(" --in [name=]x.npy ... REQUIRED "));
  const Result all = s.run("");
  CHECK(all.code == 2);
  CHECK(all.err == s.run("--help").out);
}

TEST_CASE("values that an option does not take are refused in one line", "[fast]") {
  const Scratch s;
  const std::string train = "train --data glyphs --out x ";
  check_refused(s.run(train + "--store f8"), "train: --store: f8 not in {f32,f16,bf16}");
  check_refused(s.run(train + "--lr 0"), "train: --lr: expected a number above 0, not '0'");
  // Not a number is in no range, infinity in none that has an end.
  for (const char* bad : {"nan", "inf", "-inf", "1e999", "x"}) {
    check_refused(s.run(train + "--lr " + bad), "train: --lr: expected a number above 0");
    check_refused(s.run(train + "--clip " + bad), "train: --clip: expected a number from 0, ");
    check_refused(s.run(train + "--beta1 " + bad), "--beta1: expected a number from 0 to 1, ");
  }
  check_refused(s.run(train + "--beta1 1.5"), "--beta1: expected a number from 0 to 1, not '1.5'");
  check_refused(s.run(train + "--epochs 0"),
                "--epochs: expected a whole number from 1 to 100000, not '0'");
  check_refused(s.run(train + "--warmup 1e3"), "--warmup: expected a whole number from 0 to 10000");
  check_refused(s.run(train + "--memory 4KB"), "--memory: expected bytes, or a number with K, M");
  check_refused(s.run(train + "--optimizer novogard"),
                "unknown optimizer 'novogard'; did you mean 'novograd'?");
  check_refused(s.run(train + "--optimizer 'lion(bta2=1)'"),
                "optimizer lion: unknown option 'bta2'; did you mean 'beta2'?");
  check_refused(s.run(train + "--objective cross_entropy,complemnt"),
                "unknown objective 'complemnt'; did you mean 'complement'?");
  check_refused(s.run(train + "--objective 'label_smoothing(2)'"),
                "objective label_smoothing: share: expected a number from 0 to 1");
  check_refused(s.run(train + "--batch"), "train: --batch: 1 required INT");
  check_refused(s.run("train"), "train: --data is required");
  check_refused(s.run("completion"), "completion: shell is required: bash, zsh");
  check_refused(s.run("plot"), "plot: kind is required: ");
  check_refused(s.run("encode x.npy"), "encode: unexpected argument 'x.npy'; numemu encode --help");
  check_refused(s.run("-v"), "unknown option '-v'; known: --help, --version");
  check_refused(s.run("help encode"), "did you mean 'numemu --help' or 'COMMAND --help'?");
  check_refused(s.run("nothing"), "unknown command 'nothing'; all: numemu --help");
  check_refused(s.run("formats ''"), "formats: name: expected NAME, found ''");
  check_refused(s.run("units ''"), "units: name: expected NAME|PATTERN|FILE.json, found ''");
  check_refused(s.run("config --print nothing"),
                "numemu: unknown recipe 'nothing'; all: numemu train");
  check_refused(s.run("sweep --resume --fresh"), "sweep: --resume excludes --fresh");
  check_refused(
      s.run("gemm --unit exact --a a --b b --seed 18446744073709551616"),
      "gemm: --seed: expected a whole number from 0 to 2^64-1, not '18446744073709551616'");
}

}  // namespace options_test
