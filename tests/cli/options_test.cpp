// What the help shows of each kind of option, and what is refused with which words.
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace {

using Catch::Contains;
using namespace numemu::test;

}  // namespace

TEST_CASE("the help shows names, values, defaults and limits of options", "[fast]") {
  const Scratch s;
  const std::string train = s.run("train --help").out;
  for (const char* line :
       {"\n  --net NAME|FILE=lenet       Reference", "\n  --data SET REQUIRED ",
        "\n  --store TEXT:{f32,f16,bf16}=f32\n", "\n  --nesterov ", "\n  --lr FLOAT:POSITIVE ",
        "\n  --clip FLOAT:NONNEGATIVE ", "\n  --momentum FLOAT:FLOAT in [0 - 1]=0.9\n",
        "\n  --epsilon FLOAT:POSITIVE=1e-08\n", "\n  --warmup INT:INT in [0 - 1000000000]\n",
        "\n  --epochs INT:INT in [1 - 100000]=12\n"})
    CHECK_THAT(train, Contains(line));
  const std::string sweep = s.run("sweep --help").out;
  CHECK_THAT(sweep, Contains("\nPositionals:\n  config CONFIG.json "));
  CHECK_THAT(sweep, Contains("\n  --resume Excludes: --fresh "));
  CHECK_THAT(sweep, Contains("\n  --fresh Excludes: --resume --keep-old\n"));
  CHECK_THAT(s.run("report -h").out, Contains("\n  -o,--out FILE "));
  CHECK_THAT(s.run("infer -h").out, Contains("\n  --in [name=]x.npy ... REQUIRED\n"));
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
  check_refused(s.run(train + "--batch"), "train: --batch: 1 required INT");
  check_refused(s.run("train"), "train: --data is required");
  check_refused(s.run("sweep --resume --fresh"), "sweep: --resume excludes --fresh");
  check_refused(
      s.run("gemm --unit exact --a a --b b --seed 18446744073709551616"),
      "gemm: --seed: expected a whole number from 0 to 2^64-1, not '18446744073709551616'");
}
