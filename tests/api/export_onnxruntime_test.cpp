// Exported files read back by ONNX Runtime (tests/oracle/onnxruntime): names, shapes, values.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "api/array_files.hpp"
#include "api/networks.hpp"
#include "emu/net/model/weights.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"

namespace numemu::export_onnxruntime_test {
namespace {

namespace fs = std::filesystem;

const std::string kSource = NUMEMU_SOURCE "/tests/onnx/";

/// Of the largest output. Float32: sums in another order.
constexpr double kFloat32 = 1e-4;
/// int8: a sum in another order moves a quotient across a tie, which is a code of 127 of a layer.
constexpr double kCodes = 0.05;

/// The packages of ONNX Runtime; "" where they are not installed.
std::string packages() {
  const char* const given = std::getenv("NUMEMU_ONNXRUNTIME");
  const std::string folder = given != nullptr ? given : NUMEMU_BINARY "/onnxruntime/node_modules";
  return fs::exists(folder + "/onnxruntime-node") ? folder : "";
}

using test::read_file;
using Outputs = std::map<std::string, net::Tensor>;

/// What ONNX Runtime gives for files of arrays "name=x.npy".
Outputs onnxruntime(const test::Workplace& w, const std::string& model,
                    const std::vector<std::string>& arrays) {
  std::string command = "NODE_PATH=" + packages() +
                        " node " NUMEMU_SOURCE "/tests/oracle/onnxruntime/run.js " + model + " " +
                        w.folder.path();
  for (const std::string& array : arrays) command += " " + array;
  command += " > " + (w / "run.json") + " 2> " + (w / "run.log");
  if (std::system(command.c_str()) != 0) throw Error("ONNX Runtime: " + read_file(w / "run.log"));
  Outputs out;
  const Json json = Json::parse(read_file(w / "run.json"));
  for (std::size_t i = 0; i < json["outputs"].size(); ++i) {
    const Json& output = json["outputs"][i];
    const Array array = api::read_float32(output["file"].get<std::string>(), "");
    net::Tensor& value = out[output["name"].get<std::string>()];
    value = net::Tensor(net::Shape(array.shape.begin(), array.shape.end()));
    std::copy_n(array.as<float>(), array.elements(), value.data.begin());
  }
  return out;
}

Outputs inferred(const test::Workplace& w, const std::string& model,
                 const std::vector<std::string>& arrays, const std::string& recipe) {
  const api::Inferred result = api::infer({.model = model,
                                           .recipe = recipe,
                                           .in = arrays,
                                           .keep_all = true,
                                           .noise = false,
                                           .predictions = false},
                                          w.context);
  Outputs out;
  for (const api::Inferred::Output& output : result.outputs) out[output.name] = output.values;
  return out;
}

/// The largest difference over the largest magnitude; names and shapes must be the same.
double difference(const Outputs& a, const Outputs& b) {
  if (a.size() != b.size()) throw Error("another number of outputs");
  double worst = 0;
  for (const auto& [name, x] : a) {
    const auto found = b.find(name);
    if (found == b.end()) throw Error("no output " + name);
    if (found->second.shape != x.shape)
      throw Error(name + ": shapes " + net::to_string(x.shape) + " and " +
                  net::to_string(found->second.shape));
    double most = 1e-30, gap = 0;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const double u = x.data[i], v = found->second.data[i];
      if (u == v || (std::isnan(u) && std::isnan(v))) continue;
      gap = std::max(gap, std::isfinite(u - v) ? std::fabs(u - v) : HUGE_VAL);
    }
    for (const float u : x.data)
      if (std::isfinite(u)) most = std::max(most, std::fabs(double{u}));
    worst = std::max(worst, gap / most);
  }
  return worst;
}

/// Arrays of the network's file of them, in files of their own.
std::vector<std::string> arrays_of(const test::Workplace& w, const fs::path& model) {
  std::vector<std::string> out;
  const fs::path npz = fs::path(model).replace_extension(".npz");
  if (!fs::exists(npz)) return {"x=" + fs::path(model).replace_extension(".x.npy").string()};
  for (const net::NamedTensor& tensor : net::read_npz(npz).tensors) {
    if (!tensor.name.starts_with("in.") && tensor.name != "x") continue;
    const std::string name = tensor.name == "x" ? "x" : tensor.name.substr(3);
    const ArrayShape shape(tensor.value.shape.begin(), tensor.value.shape.end());
    write_npy(w / (name + ".npy"), ArrayType::float32, shape, tensor.value.data.data());
    out.push_back(name + "=" + (w / (name + ".npy")));
  }
  return out;
}

struct Counts {
  int networks = 0, exported = 0;
  std::vector<std::string> unread;  ///< by ONNX Runtime itself
};

/// Refused: what a layer quantizes is a sum within an Einsum. Exported in training with dropout,
/// which ONNX Runtime draws: response.
constexpr std::array<std::string_view, 6> kLeftOut = {"random_einsum_2", "random_einsum_4",
                                                      "random_einsum_5", "random_einsum_6",
                                                      "random_einsum_7", "response"};

/// Exports the network under the recipe and compares.
void check_export(const test::Workplace& w, const std::string& model, const std::string& recipe,
                  const std::vector<std::string>& arrays) {
  const std::string file = w / "m.onnx";
  api::export_network({.net = model, .recipe = recipe}, {.out = file, .in = arrays}, w.context);
  const Outputs there = onnxruntime(w, file, arrays);
  CHECK(difference(there, inferred(w, file, arrays, "")) <= kCodes);
  CHECK(difference(there, inferred(w, model, arrays, recipe)) <= kCodes);
}

/// Exports every network of the folder, or each `stride`th, and compares.
void check_folder(const std::string& folder, std::size_t stride, Counts& counts) {
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(kSource + folder))
    if (entry.path().extension() == ".onnx") models.push_back(entry.path());
  std::ranges::sort(models);
  for (std::size_t i = 0; i < models.size(); i += stride) {
    const std::string model = models[i];
    INFO(model);
    const test::Workplace w;
    const std::vector<std::string> arrays = arrays_of(w, models[i]);
    if (std::ranges::any_of(kLeftOut, [&](std::string_view name) {
          return model.ends_with("/" + std::string(name) + ".onnx");
        }))
      continue;
    Outputs given;
    try {
      given = onnxruntime(w, model, arrays);
    } catch (const Error&) {
      counts.unread.push_back(models[i].stem());
      continue;
    }
    ++counts.networks;
    try {
      CHECK(difference(inferred(w, model, arrays, ""), given) <= kFloat32);
      check_export(w, model, "int8-static", arrays);
      ++counts.exported;
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

bool skipped() {
  if (!packages().empty()) return false;
  WARN(
      "skipped: ONNX Runtime is not installed: tests/oracle/onnxruntime/install.sh FOLDER, then "
      "NUMEMU_ONNXRUNTIME=FOLDER/node_modules");
  return true;
}

}  // namespace

TEST_CASE("ONNX Runtime reads exported networks as they are, a few of each kind", "[fast]") {
  if (skipped()) return;
  Counts counts;
  check_folder("cases", 1, counts);
  check_folder("products", 9, counts);
  CHECK(counts.exported == counts.networks);
  CHECK(counts.networks >= 8);
}

TEST_CASE("ONNX Runtime multiplies exported codes: MatMulNBits, MatMulInteger, ConvInteger",
          "[fast]") {
  if (skipped()) return;
  const std::map<std::string, std::vector<std::string>> operators = {
      {"w4a16-g128", {"MatMulNBits"}}, {"int8-dynamic", {"MatMulInteger", "ConvInteger"}}};
  for (const auto& [recipe, names] : operators) {
    std::string written;
    for (const char* name : {"gradients/llama", "gradients/bottleneck", "cases/seg_conv"}) {
      const std::string model = kSource + name + ".onnx";
      INFO(recipe << " " << model);
      const test::Workplace w;
      check_export(w, model, recipe, arrays_of(w, model));
      written += read_file(w / "m.onnx");
    }
    for (const std::string& name : names) CHECK_THAT(written, Catch::Contains(name));
  }
}

TEST_CASE("ONNX Runtime reads chains of Einsum and dynamic scales of recurrent layers", "[fast]") {
  if (skipped()) return;
  for (const auto& [name, recipe] : {std::pair("products/bilinear", "int8-static"),
                                     {"products/einsum_three_18", "int8-dynamic"},
                                     {"gradients/einsum", "int8-static"},
                                     {"gradients/lstm", "int8-dynamic"},
                                     {"gradients/gru", "int8-dynamic"}}) {
    const std::string model = std::string(kSource) + name + ".onnx";
    INFO(recipe << " " << model);
    const test::Workplace w;
    check_export(w, model, recipe, arrays_of(w, model));
  }
}

TEST_CASE("ONNX Runtime reads tensors between operators as codes", "[fast]") {
  if (skipped()) return;
  for (const char* name : {"cases/seg_conv", "cases/hardswish", "gradients/bottleneck"}) {
    const std::string model = std::string(kSource) + name + ".onnx";
    INFO(model);
    const test::Workplace w;
    const std::string recipe = w.file("r.json", R"({"numemu_recipe": 1, "edges": "static",
        "roles": {"weight": {"format": "int8", "granularity": "channel"},
                  "activation": {"format": "int8", "zero_point": "calibrated"}}})");
    check_export(w, model, recipe, arrays_of(w, model));
  }
}

TEST_CASE("ONNX Runtime reads exported networks as they are", "[slow]") {
  if (skipped()) return;
  Counts counts;
  for (const char* folder : {"cases", "products", "gradients", "random"})
    check_folder(folder, 1, counts);
  CHECK(counts.networks > 100);
  WARN(counts.exported << " of " << counts.networks << " networks are exported; "
                       << counts.unread.size() << " are not read by ONNX Runtime");
  CHECK(counts.exported == counts.networks);
}

}  // namespace numemu::export_onnxruntime_test
