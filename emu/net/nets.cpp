// From a network's name to its row of nets.def.
#include "emu/net/nets.hpp"

#include "emu/net/build/blocks.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

struct Row {
  std::string_view name;
  DataKind kind;
  void (*build)(Builder&);
};

const Row kRows[] = {
#define NUMEMU_NET(name, kind, ...) {name, DataKind::kind, [](Builder& net) { __VA_ARGS__; }},
#include "emu/net/nets.def"
#undef NUMEMU_NET
};

const Row& find(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row;
  }
  throw Error(unknown_name("network", name, net_names()));
}

}  // namespace

Graph build_net(std::string_view name, const Shape& input_shape, std::int64_t classes) {
  const Row& row = find(name);
  Builder builder(name, input_shape, classes);
  row.build(builder);
  return builder.take();
}

Graph build_net(std::string_view name, const Dataset& data) {
  const DataKind kind = net_kind(name);
  if (kind != data.kind()) {
    throw Error("network " + std::string(name) + ": expected " + std::string(to_string(kind)) +
                ", data set " + data.name() + " has " + std::string(to_string(data.kind())));
  }
  return build_net(name, data.input_shape(), data.classes());
}

DataKind net_kind(std::string_view name) { return find(name).kind; }

std::vector<std::string> net_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace numemu::net
