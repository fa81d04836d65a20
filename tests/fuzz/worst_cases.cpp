// Long files of the records that take most memory for their bytes: what a fuzzer's short inputs
// cannot show beside the fixed part of the bound.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "emu/net/data/npz.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "emu/net/model/weights.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

using namespace numemu;
using net::test::bytes;
using net::test::integer;

/// Far less than 64 times the length of a case.
constexpr std::int64_t kAllowance = 64 << 10;
constexpr std::size_t kLong = 1 << 18;

struct Case {
  std::string name, file;
  std::function<void(const std::string& path)> load;
};

/// `part` repeated to about `length` bytes.
std::string many(const std::string& part, std::size_t length = kLong) {
  std::string out;
  while (out.size() < length) out += part;
  return out;
}

/// The same with a number in each, in place of #.
std::string many_numbered(const std::string& before, const std::string& after, std::size_t length) {
  std::string out;
  for (int i = 0; out.size() < length; ++i) out += before + std::to_string(i) + after;
  return out;
}

void load_onnx(const std::string& path) {
  const net::OnnxModel model = net::read_onnx(path);
  for (const auto& tensor : model.graph.initializers) {
    net::to_floats(tensor);
    if (is_integer(tensor.type)) net::to_integers(tensor);
  }
}

void load_safetensors(const std::string& path) { net::read_weights(path); }
void load_npz(const std::string& path) { net::read_npz(path); }
void load_json(const std::string& path) { parse_json(read_text(path), path); }

std::string safetensors(const std::string& header) {
  return net::test::packed(std::uint64_t{header.size()}) + header;
}

/// A graph with one node of those fields.
std::string node(const std::string& fields) { return bytes(1, bytes(4, "A") + fields); }

void add_onnx(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, const std::string& graph) {
    cases.push_back({"onnx " + name, net::test::model(graph), load_onnx});
  };
  const auto attribute = [](const std::string& fields) {
    return node(bytes(5, bytes(1, "a") + fields));
  };
  add("nodes", many(node("")));
  add("nodes without an operator", many(bytes(1, "")));
  add("nodes with one input", many(node(bytes(1, ""))));
  add("inputs", node(many(bytes(1, ""))));
  add("attributes", node(many(bytes(5, bytes(1, "a")))));
  add("ints", attribute(many(integer(8, 0))));
  add("packed ints", attribute(bytes(8, std::string(kLong, '\0'))));
  add("floats", attribute(bytes(7, std::string(kLong, '\0'))));
  add("strings", attribute(many(bytes(9, ""))));
  add("initializers", many(bytes(5, net::test::tensor("a", {0}, 1, ""))));
  add("axes of a tensor",
      bytes(5, bytes(8, "a") + integer(2, 1) + bytes(1, std::string(kLong, '\0'))));
  add("booleans", bytes(5, net::test::tensor("a", {kLong}, 9, bytes(5, std::string(kLong, '\1')))));
  add("tensors of one boolean", many(bytes(5, net::test::tensor("a", {}, 9, bytes(9, "\1")))));
  add("halves", bytes(5, net::test::tensor("a", {kLong}, 10, bytes(5, std::string(kLong, '\1')))));
  add("values", many(bytes(13, bytes(1, "a"))));
  add("axes of a value",
      bytes(11, bytes(1, "x") + bytes(2, bytes(1, bytes(2, many(bytes(1, "")))))));
}

void add_json(std::vector<Case>& cases) {
  cases.push_back({"json numbers", "[" + many("0,") + "0]", load_json});
  cases.push_back({"json lists", "[" + many("[],") + "0]", load_json});
  cases.push_back({"json objects", "[" + many("{},") + "0]", load_json});
  cases.push_back({"json texts", "[" + many("\"\",") + "0]", load_json});
  cases.push_back({"json keys", "{" + many_numbered("\"", "\":0,", kLong) + "\"\":0}", load_json});
  cases.push_back({"json small objects", "[" + many("{\"\":0},") + "0]", load_json});
}

void add_safetensors(std::vector<Case>& cases) {
  const auto add = [&](const std::string& name, const std::string& header,
                       const std::string& data = "") {
    cases.push_back({"safetensors " + name, safetensors(header) + data, load_safetensors});
  };
  const std::string rest = ":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},";
  add("tensors", "{" + many_numbered("\"", "\"" + rest, kLong) + "\"__metadata__\":{}}");
  add("axes", "{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,0],\"shape\":[" + many("0,") + "0]}}");
  add("metadata", "{\"__metadata__\":{" + many_numbered("\"", "\":\"\",", kLong) + "\"\":\"\"}}");
  add("numbers that are no tensors", "{" + many_numbered("\"", "\":0,", kLong) + "\"\":0}");
  const std::string coded = R"("w_scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  add("codes",
      R"({"__metadata__":{"parameters":"[\"w\"]","w_format":"int8"},)" + coded +
          R"(,"w":{"dtype":"I8","shape":[)" + std::to_string(kLong) + R"(],"data_offsets":[4,)" +
          std::to_string(kLong + 4) + "]}}",
      net::test::packed(1.0f) + std::string(kLong, '\1'));
  add("names of parameters", R"({"__metadata__":{"parameters":"[)" + many(R"(\"\",)") +
                                 R"(\"\"]"},"":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})");
  // Each format of codes with its scale: three entries for a parameter.
  std::string list, formats, tensors, data;
  for (int i = 0; tensors.size() < kLong; ++i) {
    const std::string name = std::to_string(i), at = std::to_string(4 * i);
    list += (i > 0 ? R"(,\")" : R"(\")") + name + R"(\")";
    formats += ",\"" + name + R"(_format":"int8")";
    const std::string end = std::to_string(4 * (i + 1));
    tensors += ",\"" + name + R"(_scale":{"dtype":"F32","shape":[1],"data_offsets":[)" + at + "," +
               end + "]},\"" + name + R"(":{"dtype":"I8","shape":[0],"data_offsets":[)" + end +
               "," + end + "]}";
    data += net::test::packed(1.0f);
  }
  add("coded parameters",
      R"({"__metadata__":{"parameters":"[)" + list + "]\"" + formats + "}" + tensors + "}", data);
}

void add_npz(std::vector<Case>& cases) {
  std::vector<net::test::ZipItem> small, deflated;
  const std::string array = net::test::npy(ArrayType::uint8, {1}, "x");
  for (int i = 0; i < 1000; ++i) {
    small.push_back({std::to_string(i) + ".npy", array});
    deflated.push_back({std::to_string(i) + ".npy", array, true});
  }
  cases.push_back({"npz entries", net::test::zip(small), load_npz});
  cases.push_back({"npz deflated entries", net::test::zip(deflated), load_npz});
  const std::string data(kLong, 'x');
  cases.push_back({"npz bytes",
                   net::test::zip({{"w.npy", net::test::npy(ArrayType::uint8, {kLong}, data)}}),
                   load_npz});
}

}  // namespace

int main() {
  std::vector<Case> cases;
  add_onnx(cases);
  add_json(cases);
  add_safetensors(cases);
  add_npz(cases);
  static std::string current;
  fuzz::finding = [] {
    std::fprintf(stderr, "in %s\n", current.c_str());
    std::exit(1);
  };
  fuzz::InputFile file;
  for (const Case& c : cases) {
    current = c.name;
    file.write(c.file);
    try {  // tables that are made once are made here
      c.load(file.path());
    } catch (const std::exception&) {
    }
    const bool loads = fuzz::run(c.file.size(), kAllowance, [&] { c.load(file.path()); });
    std::printf("%-32s %8zu bytes, %5.1f for each allocated, %s\n", c.name.c_str(), c.file.size(),
                static_cast<double>(fuzz::taken) / static_cast<double>(c.file.size()),
                loads ? "loads" : "is refused");
  }
  return 0;
}
