// The program from outside: exit codes, one-line errors on stderr, data on stdout.
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace cli_test {

namespace {

using Catch::Contains;
using namespace numemu::test;
using numemu::Json;

/// A row with everything that a report needs.
Json row(const std::string& key) {
  return Json::parse(
      R"({"point": {"net": "n", "data": "d", "recipe": {"roles": {"weight": null, "activation": null}, "gemms": {"fprop": {"unit": "u"}}}, "x": ")" +
      key + R"("}, "key": ")" + key + R"(",
    "bits": {"weight": 32.0, "activation": 32.0}, "metrics": {"top1": 1.0, "n": 2, "ci95": [0.0, 1.0], "loss": null},
    "predicted": {"tensors": []}, "layers": [], "version": "1"})");
}

std::uint32_t big_endian(std::uint32_t x) { return __builtin_bswap32(x); }

/// An IDX file of the MNIST layout: `count` images of 28 x 28, or labels.
std::string idx(bool images, std::uint32_t count, int label = 3) {
  std::string text;
  const auto word = [&](std::uint32_t x) {
    x = big_endian(x);
    text.append(reinterpret_cast<const char*>(&x), 4);
  };
  word(images ? 0x803 : 0x801);
  word(count);
  if (images) word(28), word(28);
  text += images ? std::string(count * 784, '\x40') : std::string(count, static_cast<char>(label));
  return text;
}

}  // namespace

TEST_CASE("unknown commands, options and names offer the nearest", "[fast]") {
  const Scratch s;
  check_refused(s.run("sweeep"), "unknown command 'sweeep'; did you mean 'sweep'");
  check_refused(s.run("eval --nett lenet --data glyphs"), "did you mean '--net'");
  check_refused(s.run("formats float8_e4m3fm"), "float8_e4m3fn");
  check_refused(s.run("units exat"), "exact");
  check_refused(s.run("train --net lanet --data glyph"), "glyphs");
  check_refused(s.run("eval --data glyphs"), "--net");
  check_refused(s.run("train --data glyphs --epochs 0"), "--epochs");
  check_refused(s.run("sweep --threads 0"), "--threads");
  check_refused(s.run("units a b"), "units: unexpected argument 'b'");
}

TEST_CASE("numbers beyond their range are refused in one short line", "[fast]") {
  const Scratch s;
  const std::string big(300, '9');
  for (const std::string& images : {std::string("0"), std::string("-1"), std::string("1.5"),
                                    std::string("1e3"), std::string("99999999999999999999"), big}) {
    const Result result = s.run("eval --net lenet --data glyphs --images=" + images);
    check_refused(result, "--images: expected a whole number from 1 to 100000000, not '");
    CHECK(result.err.size() < 160);
  }
  check_refused(s.run("sweep --threads " + big), "--threads: expected a whole number from 1 to");
  for (const char* shard : {"'0/ 2'", "0/4294967297", "+0/2", "2/2"})
    check_refused(s.run("sweep --quiet --shard " + std::string(shard)), "--shard: expected i/n");
}

TEST_CASE("threads that cannot be started are one line and no failed verdict", "[fast]") {
  const Scratch s;
  // Stacks of 1 GB in 4 GB of addresses.
  const std::string command = "ulimit -s 1000000 && ulimit -v 4000000 && cd " + s.path +
                              " && '" NUMEMU_PROGRAM
                              "' analyze --format int8 --dist normal --threads 16 >out 2>err";
  const int status = std::system(command.c_str());
  if (!std::filesystem::exists(s.path + "/err")) {
    WARN("skipped: the limits cannot be set");
    return;
  }
  check_refused({WEXITSTATUS(status), read_file(s.path + "/out"), read_file(s.path + "/err")},
                "cannot start 16 threads");
}

TEST_CASE("whatever runs networks has a memory budget", "[fast]") {
  const Scratch s;
  const std::string refused =
      "data set glyphs: needs 44.9 MiB, but the memory budget of 1.0 MiB (--memory)";
  check_refused(s.run("train --net mlp --data glyphs --epochs 1 --memory 1M --quiet"), refused);
  check_refused(s.run("eval --net lenet --data glyphs --images 32 --memory 1M --quiet"), refused);
  s.file("s.json", R"({"numemu_sweep": 1, "eval_images": 32, "points": [{}]})");
  check_refused(s.run("sweep s.json --out o --memory 1M --quiet"), refused);
  check_refused(s.run("experiment mvue --size smoke --memory nothing"), "--memory");
}

TEST_CASE("a sweep without points is refused", "[fast]") {
  const Scratch s;
  const std::string sweep = s.file("s.json", R"({"numemu_sweep": 1, "points": []})");
  check_refused(s.run("sweep " + sweep), "s.json: expected at least one point");
  check_refused(s.run("sweep --dry-run " + sweep), "s.json: expected at least one point");
}

TEST_CASE("a report names the row and key it cannot use, and what is missing", "[fast]") {
  const Scratch s;
  std::filesystem::create_directory(s.path + "/r");
  const std::string good = row("a").dump() + "\n";
  for (const char* key : {"point", "bits", "metrics", "predicted", "layers"}) {
    Json bad = row("b");
    bad.erase(key);
    s.file("r/rows.jsonl", good + bad.dump() + "\n");
    check_refused(s.run("report r"),
                  "r/rows.jsonl: line 2: expected a row with " + std::string(key));
  }
  s.file("r/rows.jsonl", good);
  const Result result = s.run("report r --json");
  CHECK(result.code == 0);
  CHECK(result.out == good);
  CHECK(result.err.empty());
  s.file("r/sweep.json", R"({"numemu_sweep": 1, "grid": {"seed": [1, 2, 3]}})");
  const Result partial = s.run("report r --quiet");
  CHECK(partial.code == 0);
  CHECK(partial.out == "r/report.html\n");
  CHECK(partial.err == "r/sweep.json: 1 of 3 points present\n");
  s.file("r/sweep.json", R"({"numemu_sweep": 1, "grid": {"seed": [1]}})");
  s.file("r/rows.jsonl", good + row("b").dump() + "\n");
  CHECK_THAT(s.run("report r").err, Contains("the folder has rows of another sweep"));
}

TEST_CASE("a report is written to regular files only", "[fast]") {
  const Scratch s;
  std::filesystem::create_directory(s.path + "/r");
  s.file("r/rows.jsonl", row("a").dump() + "\n");
  const std::string kExpected = ": expected a regular file or a new name";
  for (const std::string target : {"/dev/full", "/dev/stdout", "r"}) {
    check_refused(s.run("report r -o " + target), target + kExpected);
    check_refused(s.run("report r --csv " + target), target + kExpected);
    check_refused(s.run("report r --sqlite " + target), target + kExpected);
  }
  CHECK_FALSE(std::filesystem::exists(s.path + "/r/report.html"));
  CHECK(s.run("report r --quiet -o " + s.file("old.html", "old")).code == 0);
  CHECK_THAT(read_file(s.path + "/old.html"), Contains("<html"));
}

TEST_CASE("a report replaces nothing that it is made from", "[fast]") {
  const Scratch s;
  std::filesystem::create_directory(s.path + "/r");
  s.file("r/rows.jsonl", row("a").dump() + "\n");
  s.file("r/sweep.json", "{}");
  const std::string rows = read_file(s.path + "/r/rows.jsonl");
  check_refused(s.run("report r --csv r/rows.jsonl"),
                "expected two files, found r/rows.jsonl twice");
  check_refused(s.run("report r --sqlite r/../r/sweep.json"),
                "--sqlite and the folder's sweep.json");
  check_refused(s.run("report r --csv x --sqlite x"), "--csv and --sqlite: expected two files");
  std::filesystem::create_directory(s.path + "/r/losses");
  s.file("r/losses/k.npy", "sums");
  const std::string expected = ": expected another folder than that of the rows' losses";
  for (const char* const file : {"r/losses/k.npy", "r/losses/new.html", "r/../r/losses/k.npy"})
    check_refused(s.run(std::string("report r -o ") + file), file + expected);
  check_refused(s.run("report r --csv r/losses/k.npy"), "--csv: r/losses/k.npy" + expected);
  CHECK(read_file(s.path + "/r/losses/k.npy") == "sums");
  CHECK(read_file(s.path + "/r/rows.jsonl") == rows);
  CHECK(read_file(s.path + "/r/sweep.json") == "{}");
}

TEST_CASE("what cannot be written is refused before anything is loaded", "[fast]") {
  const Scratch s;
  std::filesystem::remove_all(s.path + "/cache");  // so that a data set made would be seen
  s.file("file", "");
  const std::string sweep = s.file("s.json", R"({"numemu_sweep": 1, "net": "mlp"})");
  const std::string nowhere = "file/x: cannot be created (file is not a folder)";
  check_refused(s.run("sweep s.json --out file/x"), nowhere);
  check_refused(s.run("train --net mlp --data glyphs --out file/x"), nowhere);
  check_refused(s.run("experiment zap --size smoke --out file/x"), nowhere);
  check_refused(s.run("infer --model mlp --in x.npy --out no/y.npy"),
                "numemu: no: no such folder\n");
  check_refused(s.run("infer --model mlp --in x.npy --out file/y.npy"), "file is not a folder");
  check_refused(s.run("infer --model mlp --in x.npy --out x.npy"), "--out and --in: expected two");
  std::filesystem::create_directories(s.path + "/o/report.html");
  for (const char* command : {"sweep s.json", "experiment zap --size smoke"})
    check_refused(s.run(std::string(command) + " --out o"),
                  "o/report.html: expected a regular file or a new name");
  std::filesystem::create_directory(s.path + "/r");
  s.file("r/rows.jsonl", row("a").dump() + "\n");
  for (const char* option : {"-o", "--csv", "--sqlite"})
    check_refused(s.run("report r " + std::string(option) + " no/report"), "no: no such folder");
  CHECK_FALSE(std::filesystem::exists(s.path + "/cache"));
}

TEST_CASE("tables and paths on standard output are harmless too", "[fast]") {
  const Scratch s;
  const std::string folder = "r\x1b[31m";
  std::filesystem::create_directory(s.path + "/" + folder);
  Json hostile = row("a");
  hostile["point"]["recipe"]["layers"] =
      Json::array({{{"match", "\x1b]0;x\x07"}, {"gemms", {{"fprop", {{"unit", "exact"}}}}}}});
  s.file(folder + "/rows.jsonl", hostile.dump() + "\n");
  const Result result = s.run("report '" + folder + "'");
  CHECK(result.code == 0);
  CHECK_THAT(result.out, Contains("?]0;x?: fprop exact") && Contains("r?[31m/report.html"));
  CHECK(result.out.find('\x1b') == std::string::npos);
}

TEST_CASE("formats and units print tables and JSON", "[fast]") {
  const Scratch s;
  const Result table = s.run("formats");
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Contains("float8_e4m3fn") && Contains("int8"));
  const Json one = Json::parse(s.run("formats e4m3fn --json").out);
  CHECK(one["name"] == "float8_e4m3fn");
  CHECK(one["largest"] == 448);
  CHECK(one["values"].size() == 256);
  CHECK(one["values"][0x7f] == "NaN");
  const Json units = Json::parse(s.run("units --json").out);
  CHECK(units.size() >= 3);
  CHECK(Json::parse(s.run("units exact --json").out)["name"] == "neutral.exact");
}

TEST_CASE("config prints a canonical form that prints itself", "[fast]") {
  const Scratch s;
  const std::string recipe =
      s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "e2m1"}}})");
  const Result once = s.run("config --print " + recipe);
  CHECK(once.code == 0);
  CHECK(Json::parse(once.out)["roles"]["weight"]["format"] == "float4_e2m1fn");
  CHECK(s.run("config --print " + s.file("again.json", once.out)).out == once.out);
  check_refused(s.run("config --print missing.json"), "missing.json: cannot be opened");
  check_refused(s.run("config --print " + s.file("bad.json", "{\"numemu_recipe\": 1,}")),
                "line 1 column 21");
  check_refused(s.run("config --print " +
                      s.file("role.json",
                             R"({"numemu_recipe": 1, "roles": {"vector": {"format": "e8m0"}}})")),
                "roles.vector");
  check_refused(
      s.run("config --print " + s.file("sweep.json", R"({"numemu_sweep": 1, "gird": {}})")),
      "did you mean 'grid'");
}

TEST_CASE("wrong data sets are one line with file, offset and what was expected", "[fast]") {
  const Scratch s;
  const std::string dir = s.path + "/mnist";
  std::filesystem::create_directory(dir);
  const auto eval = [&] { return s.run("eval --net lenet --data mnist:" + dir); };
  check_refused(eval(), "train-images");
  const auto put_all = [&] {
    for (const char* split : {"train", "t10k"}) {
      const std::uint32_t count = split[1] == 'r' ? 6000 : 10;
      s.file("mnist/" + std::string(split) + "-images-idx3-ubyte", idx(true, count));
      s.file("mnist/" + std::string(split) + "-labels-idx1-ubyte", idx(false, count));
    }
  };
  put_all();
  s.file("mnist/train-images-idx3-ubyte", idx(true, 6000).substr(0, 5000));
  check_refused(eval(), "train-images-idx3-ubyte");
  put_all();
  s.file("mnist/train-labels-idx1-ubyte", idx(true, 60));
  check_refused(eval(), "train-labels-idx1-ubyte");
  put_all();
  s.file("mnist/t10k-labels-idx1-ubyte", idx(false, 10, 12));
  check_refused(eval(), "t10k-labels-idx1-ubyte");
  put_all();
  s.file("mnist/t10k-labels-idx1-ubyte", idx(false, 9));
  check_refused(eval(), "t10k-labels-idx1-ubyte");
  put_all();
  check_refused(eval(), "numemu ships no trained lenet for mnist");
  check_refused(s.run("eval --net " + s.file("x.safetensors", "short") + " --data mnist:" + dir),
                "x.safetensors");
  check_refused(s.run("eval --net lenet --data imagenet"), "unknown data set 'imagenet'");
}

TEST_CASE("a network is trained, evaluated and swept", "[fast]") {
  const Scratch s;
  std::filesystem::create_directory(s.path + "/mnist");
  for (const char* split : {"train", "t10k"}) {
    const std::uint32_t count = split[1] == 'r' ? 5600 : 50;
    s.file("mnist/" + std::string(split) + "-images-idx3-ubyte", idx(true, count));
    s.file("mnist/" + std::string(split) + "-labels-idx1-ubyte", idx(false, count));
  }
  // A closed stderr does not stop the work.
  const Result trained =
      s.run("train --net mlp --data mnist:mnist --epochs 1 --out t --json", "", "/dev/full");
  REQUIRE(trained.code == 0);
  CHECK(Json::parse(trained.out)["metrics"]["top1"] == 1);  // every label is 3
  const std::string recipe = s.file(
      "r.json",
      R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}}})");
  const Result evaluated =
      s.run("eval --net t/mlp-mnist.safetensors --data mnist:mnist --json --recipe " + recipe);
  REQUIRE(evaluated.code == 0);
  CHECK(Json::parse(evaluated.out)["metrics"]["n"] == 50);
  CHECK_THAT(evaluated.err, Contains("evaluating t/mlp-mnist.safetensors on mnist:mnist\n") &&
                                Contains("eval 100 %") && Contains(" %  0:00 left  evaluation\n") &&
                                Contains(" left  predictions\n") && !Contains("images/s"));
  const std::string eval = "eval --net t/mlp-mnist.safetensors --data mnist:mnist --quiet ";
  const Result table = s.run(eval + "--images 50 --recipe " + recipe);
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK_THAT(table.out, Contains("invalid") && Contains("difference +0.00 points"));
  check_refused(s.run(eval + "--images 51"), "--images: expected at most 50, the test images of");
  const std::string sweep = s.file(
      "s.json",
      R"({"numemu_sweep": 1, "net": "t/mlp-mnist.safetensors", "data": "mnist:mnist", "eval_images": 50,
    "grid": {"roles.weight.format": ["int2", "int8"]}})");
  const Result dry = s.run("sweep " + sweep + " --dry-run --quiet");
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out,
             Contains("2 points, ") && !Contains("about 0") && !Contains("about 1 seconds"));
  CHECK_FALSE(std::filesystem::exists(s.path + "/out"));
  const Result swept = s.run("sweep " + sweep, "", "/dev/full");
  CHECK(swept.code == 0);
  CHECK_THAT(swept.out, Catch::EndsWith("\nout/s/report.html\n"));
  for (const char* name : {"rows.jsonl", "times.jsonl", "sweep.json", "tensors.json", "report.html",
                           "report.csv", "report.sqlite", "report.md"}) {
    CHECK(std::filesystem::exists(s.path + "/out/s/" + name));
  }
  const std::string rows = read_file(s.path + "/out/s/rows.jsonl");
  CHECK(s.run("sweep " + sweep + " --out sharded --quiet --shard 0/2").code == 0);
  CHECK(s.run("sweep " + sweep + " --out sharded --quiet --shard 1/2").code == 0);
  CHECK(s.run("report sharded --quiet").out == "sharded/report.html\n");
  CHECK(read_file(s.path + "/sharded/rows.0.jsonl") + read_file(s.path + "/sharded/rows.1.jsonl") ==
        rows);
  check_refused(s.run("sweep " + sweep + " --quiet --shard 2/2"), "--shard");
  const std::string other = s.file(
      "other.json",
      R"({"numemu_sweep": 1, "net": "t/mlp-mnist.safetensors", "data": "mnist:mnist", "eval_images": 50,
    "grid": {"roles.weight.format": ["int2", "int8", "int4"]}})");
  check_refused(s.run("sweep " + other + " --out sharded --quiet --shard 0/2"),
                "sharded/sweep.json: belongs to another sweep with shards in this folder; use "
                "--fresh or --out sharded-2\n");
  check_refused(s.run("sweep " + sweep + " --out sharded --quiet --shard 0/3"),
                "was written with another --shard");
  CHECK(s.run("sweep " + other + " --out sharded --quiet --fresh --shard 0/2").code == 0);
  // Points added to an unsharded sweep keep the rows that are there; an edited row is found by the
  // report, and by the sweep, which computes it again.
  std::string edited = rows;
  const std::string top1 = R"("top1":)";
  edited.replace(edited.find(top1), top1.size() + 1, top1 + "0");
  REQUIRE(edited != rows);
  s.file("out/s/rows.jsonl", edited);
  const std::string damage = "out/s/rows.jsonl: line 1: a damaged row (digest does not match)";
  check_refused(s.run("report out/s"), damage + "; repeat the run that wrote it");
  const Result added = s.run("sweep " + other + " --out out/s");
  CHECK(added.code == 0);
  CHECK_THAT(added.err, Contains("numemu: " + damage + "; dropped, will be computed again\n") &&
                            Contains("3 points: 2 computed, 1 already present"));
  CHECK(read_file(s.path + "/out/s/rows.jsonl").starts_with(rows));
  // Of a finished sweep the times are known.
  CHECK_THAT(s.run("sweep " + other + " --dry-run --out out/s").out,
             Contains("3 points, 3 of them already present, ") && !Contains("about 0"));
  // Lines of a dry run tell points apart by whatever differs.
  s.file("apart.json",
         R"~({"numemu_sweep": 1, "net": "t/mlp-mnist.safetensors", "data": "mnist:mnist",
    "seeds": [0, 1], "eval_images": 50, "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}}},
    "grid": {"calibrate.rule": ["absmax", "percentile(99.9)"], "roles.weight.axis": ["channel", "reduction"],
             "gemms.*.unit": ["exact", "f32.sequential"]},
    "points": [{"layers": [{"match": "fc1", "roles": {"weight": {"format": "mxfp8_e4m3"}}}]},
               {"layers": [{"match": "fc2", "roles": {"weight": {"format": "mxfp8_e4m3"}}}]}]})~");
  const Result apart = s.run("sweep apart.json --dry-run");
  INFO(apart.err);
  REQUIRE(apart.code == 0);
  std::set<std::string> lines;
  std::istringstream listed(apart.out);
  for (std::string line; std::getline(listed, line);)
    lines.insert(line.substr(std::min<std::size_t>(4, line.size())));
  CHECK(lines.size() == 21);  // points and the estimate
  CHECK_THAT(apart.out, Contains("calibrate.rule percentile(99.9)") && !Contains("dgrad"));
  check_refused(s.run("report nothing"), "nothing");
}

}  // namespace cli_test
