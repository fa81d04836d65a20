// ONNX's own test cases (Debian: libonnx-testdata) through infer: right, refused and why,
// different.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "api/networks.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"

namespace onnx_node_tests_test {

using namespace numemu;
namespace fs = std::filesystem;

namespace {

const std::string kFolder = "/usr/include/onnx/backend/test/data/";

/// Expected results come from float32 sums of at most a few hundred terms in another order, or from
/// functions rounded a few times: 2^-24 each, of the largest element. Results of 16 bits have 2^-11
/// (float16) and 2^-8 (bfloat16) of rounding beside it, once.
constexpr double kRelative = 128 * 0x1p-24, kHalf = 0x1p-10, kBrain = 0x1p-7;

/// A folder of cases, how many they are in release 1.12, and how many are right at least. The
/// others are refused: sequences, optionals and strings, random numbers, states of optimizers.
struct Suite {
  std::string name;
  std::int64_t right;
};
const Suite kSuites[] = {
    {"node", 847}, {"pytorch-converted", 82}, {"pytorch-operator", 35}, {"simple", 7}};

/// Cases whose expected results are not those of the operator's definition: what they may differ
/// by.
struct Inexact {
  std::string_view part;  ///< of the name
  double relative;
};
constexpr Inexact kInexact[] = {
    {"blackmanwindow", 1e-4},  // pi is 3.1415 there
    {"hammingwindow", 1e-4},
    {"hannwindow", 1e-4},
    {"roialign", 1e-4},  // written with four digits
    // Computed with a fraction of an element, which engines do not do.
    {"resize_downsample_scales_cubic_align_corners", 0.1},
    {"resize_downsample_scales_linear_align_corners", 0.3},
};

struct Stored {
  net::Tensor tensor;
  net::OnnxType type = net::OnnxType::float32;
};

/// A TensorProto; nothing for a sequence, an optional or strings.
std::optional<Stored> read_tensor(const fs::path& path, const net::OnnxValueInfo& port) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string name = path.filename();
  try {
    net::OnnxTensor stored = net::read_onnx_tensor(net::WireReader(name, bytes));
    // Codes of bfloat16 are there as uint16.
    if (port.type == static_cast<std::int64_t>(net::OnnxType::bfloat16) &&
        stored.type == net::OnnxType::uint16)
      stored.type = net::OnnxType::bfloat16;
    Stored out{net::Tensor(), stored.type};
    out.tensor.shape = stored.dims;
    out.tensor.data = net::to_floats(stored);
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct Outcome {
  std::string what;  ///< "right", "different", or why it is refused
  std::string detail;
};

/// Without what differs from case to case: paths, bytes, names, numbers.
std::string reason_of(std::string text) {
  for (const std::string_view mark : {"model.onnx: ", "): ", "supported: "}) {
    if (const std::size_t at = text.find(mark); at != text.npos)
      text = text.substr(at + mark.size());
  }
  std::string out;
  for (const char c : text)
    if (c < '0' || c > '9') out += c;
  return out.substr(0, 90);
}

std::string difference(const net::Tensor& got, const Stored& wanted, std::string_view name) {
  if (got.shape != wanted.tensor.shape)
    return "shape " + net::to_string(got.shape) + ", expected " +
           net::to_string(wanted.tensor.shape);
  double size = 1e-30, error = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    const double a = got.data[i], b = wanted.tensor.data[i];
    if (std::isnan(a) != std::isnan(b)) return "NaN at element " + std::to_string(i);
    if (std::isnan(a) || a == b) continue;
    if (std::isinf(a) || std::isinf(b)) return "infinity at element " + std::to_string(i);
    size = std::max(size, std::fabs(b));
    error = std::max(error, std::fabs(a - b));
  }
  for (const float b : wanted.tensor.data)
    if (std::isfinite(b)) size = std::max(size, std::fabs(double{b}));
  double bound = kRelative;
  if (wanted.type == net::OnnxType::float16) bound = kHalf;
  if (wanted.type == net::OnnxType::bfloat16) bound = kBrain;
  if (net::is_integer(wanted.type)) bound = 0;
  for (const Inexact& each : kInexact)
    if (name.find(each.part) != name.npos) bound = each.relative;
  return error <= bound * size ? "" : "by " + std::to_string(error / size) + " of the largest";
}

Outcome run(const fs::path& folder, const test::Workplace& w, const std::string& recipe = "") {
  const std::string path = folder / "model.onnx";
  const fs::path data = folder / "test_data_set_0";
  try {
    const net::OnnxModel model = net::read_onnx(path);
    api::InferRequest asked{.model = path, .recipe = recipe, .keep_all = true};
    std::vector<net::NamedTensor> arrays;
    for (const net::OnnxValueInfo& input : model.graph.inputs) {
      // Before version 4 of the format weights are inputs, too.
      if (std::ranges::count(model.graph.initializers, input.name, &net::OnnxTensor::name) > 0)
        continue;
      const std::optional<Stored> given =
          read_tensor(data / ("input_" + std::to_string(arrays.size()) + ".pb"), input);
      if (!given) return {"an input is no tensor of numbers", ""};
      arrays.push_back({std::string(input.name), given->tensor});
    }
    asked.arrays = arrays;
    const api::Inferred inferred = api::infer(asked, w.context);
    for (std::size_t i = 0; i < model.graph.outputs.size(); ++i) {
      const std::optional<Stored> wanted =
          read_tensor(data / ("output_" + std::to_string(i) + ".pb"), model.graph.outputs[i]);
      if (!wanted) return {"an output is no tensor of numbers", ""};
      const auto found = std::ranges::find(inferred.outputs, model.graph.outputs[i].name,
                                           &api::Inferred::Output::name);
      if (found == inferred.outputs.end()) return {"different", "no output"};
      if (const std::string text = difference(found->values, *wanted, folder.filename().string());
          !text.empty() && recipe.empty())
        return {"different", text};
    }
    return {"right", ""};
  } catch (const Error& error) {
    return {reason_of(error.what()), error.what()};
  }
}

}  // namespace

TEST_CASE("ONNX's own test cases are right or refused", "[fast]") {
  if (!fs::exists(kFolder)) {
    WARN("skipped: ONNX's test data are not installed (apt-get install libonnx-testdata)");
    return;
  }
  const test::Workplace w;
  std::ofstream report;  // counts and cases by reason
  if (const char* const path = std::getenv("NUMEMU_NODE_TESTS")) report.open(path);
  for (const Suite& suite : kSuites) {
    std::map<std::string, std::vector<std::string>> found;
    std::vector<fs::path> cases;
    for (const auto& entry : fs::directory_iterator(kFolder + suite.name))
      cases.push_back(entry.path());
    std::ranges::sort(cases);
    for (const fs::path& folder : cases) {
      const Outcome outcome = run(folder, w);
      const std::string name = folder.filename().string().substr(5);
      found[outcome.what].push_back(outcome.what == "right" ? name : name + ": " + outcome.detail);
    }
    for (const auto& [what, names] : found) {
      report << suite.name << ": " << names.size() << " " << what << "\n";
      for (const std::string& name : names) report << "    " << name << "\n";
    }
    for (const std::string& different : found["different"]) FAIL_CHECK(different);
    INFO(suite.name << ": " << found["right"].size() << " of " << cases.size() << " are right");
    CHECK(std::ssize(found["right"]) >= suite.right);
  }
}

TEST_CASE("a recipe applies to arrays that are one sample", "[fast]") {
  const std::string folder = kFolder + std::string("node/test_matmul_");
  if (!fs::exists(folder + "2d")) {
    WARN("skipped: ONNX's test data are not installed (apt-get install libonnx-testdata)");
    return;
  }
  const test::Workplace w;
  const std::string recipe =
      R"({"numemu_recipe": 1, "calibrate": {"rule": "dynamic"},
          "roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}}})";
  std::map<std::string, std::vector<std::string>> found;
  std::ptrdiff_t right = 0;
  for (const auto& entry : fs::directory_iterator(kFolder + std::string("node"))) {
    if (run(entry.path(), w).what != "right") continue;
    ++right;
    const Outcome outcome = run(entry.path(), w, recipe);
    found[outcome.what].push_back(entry.path().filename().string() + ": " + outcome.detail);
  }
  for (const auto& [what, names] : found)
    if (what != "right") WARN(names.size() << " " << what << ", " << names[0]);
  CHECK(right > 800);
  CHECK(std::ssize(found["right"]) == right);
}

}  // namespace onnx_node_tests_test
