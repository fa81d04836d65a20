// Long ONNX files whose import takes most memory or time for their bytes, which a fuzzer's short
// inputs cannot show.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

using namespace numemu;
using net::test::attribute;
using net::test::ModelWriter;

/// Of the processor; the slowest takes a fraction of a second where nothing else runs.
constexpr double kMostSeconds = 30;

struct Case {
  std::string name, file;
};

ModelWriter input() { return ModelWriter().input("x", {-1, 20'000}); }

std::string nodes(int count, const std::string& op, const std::string& name) {
  ModelWriter w = input();
  for (int i = 0; i < count; ++i) w.node(op, {"x"}, {"y" + std::to_string(i)}, {}, name);
  return w.output("y0").file();
}

std::string chain(const std::string& op, const std::vector<std::string>& others, int count,
                  ModelWriter w, const std::string& first) {
  std::string x = first;
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> inputs{x};
    inputs.insert(inputs.end(), others.begin(), others.end());
    x = w.op(op, inputs, {attribute("axis", std::int64_t{0})});
  }
  return w.output(x).file();
}

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"nodes", nodes(19'000, "Relu", "")});
  out.push_back({"nodes of one long name", nodes(5'000, "Relu", std::string(100, 'n'))});
  out.push_back({"too many nodes", nodes(30'000, "Relu", "")});
  std::vector<std::string> parts;
  for (int i = 0; i < 19'000; ++i) parts.push_back("");
  const std::string last = attribute("axis", std::int64_t{1});
  out.push_back(
      {"parts of a split",
       ModelWriter().input("x", {-1, 19'000}).node("Split", {"x"}, parts, {last}).file()});
  std::vector<std::string> names;
  for (int i = 0; i < 100'000; ++i) names.push_back(std::to_string(i));
  out.push_back({"names that are read", input().node("Concat", names, {"y"}).output("y").file()});
  ModelWriter initializers = input();
  for (int i = 0; i < 20'000; ++i) initializers.integers(std::to_string(i), {}, {1});
  out.push_back({"initializers", initializers.output("x").file()});
  const std::vector<float> weight(256 * 256, 1);
  out.push_back({"a weight used often",
                 chain("MatMul", {"w"}, 2'000,
                       ModelWriter().input("x", {-1, 256}).floats("w", {256, 256}, weight), "x")});
  out.push_back({"a constant turned often",
                 chain("Transpose", {}, 2'000, input().floats("w", {256, 256}, weight), "w")});
  out.push_back({"a constant doubled",
                 chain("Concat", {"w"}, 2'000, input().floats("w", {256, 256}, weight), "w")});
  out.push_back({"a sum with a constant",
                 chain("Add", {"w"}, 2'000, input().floats("w", {256, 256}, weight), "w")});
  std::vector<std::int64_t> singles(100'000, 1);
  out.push_back({"a constant of many axes",
                 chain("Reshape", {"d"}, 5'000,
                       input().integers("d", {100'000}, singles).floats("w", {}, {1}), "w")});
  out.push_back({"a value of many axes",
                 chain("Reshape", {"d"}, 5'000, input().integers("d", {100'000}, singles), "x")});
  out.push_back(
      {"indices", chain("Gather", {"d"}, 5'000, input().integers("d", {100'000}, singles), "x")});
  // As they are held, and copied.
  for (const char* op : {"Identity", "Unsqueeze", "Not"}) {
    out.push_back({std::string("booleans: ") + op,
                   ModelWriter()
                       .input("x", {-1, 1 << 20})
                       .bools("b", {1 << 20}, std::vector<int>(1 << 20, 1))
                       .node(op, {"b"}, {"c"}, {attribute("axes", std::vector<std::int64_t>{0})})
                       .node("Where", {"c", "x", "x"}, {"y"})
                       .output("y")
                       .file(11)});
  }
  return out;
}

}  // namespace

int main() {
  static std::string current;
  fuzz::finding = [] {
    std::fprintf(stderr, "in %s\n", current.c_str());
    std::exit(1);
  };
  fuzz::InputFile file;
  for (const Case& c : cases()) {
    current = c.name;
    file.write(c.file);
    const std::clock_t start = std::clock();
    const bool loads = fuzz::run(c.file.size(), fuzz::kPromised,
                                 [&] { net::import_onnx(net::read_onnx(file.path())); });
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%-26s %8zu bytes, %5.1f for each allocated, %.2f s, %s\n", c.name.c_str(),
                c.file.size(),
                static_cast<double>(fuzz::taken) / static_cast<double>(c.file.size()), seconds,
                loads ? "loads" : "is refused");
    if (seconds > kMostSeconds) {
      std::fprintf(stderr, "%s took longer than %.0f s\n", c.name.c_str(), kMostSeconds);
      return 1;
    }
  }
  return 0;
}
