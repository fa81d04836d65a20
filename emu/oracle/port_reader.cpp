#include "emu/oracle/port_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

constexpr std::string_view kEnding = ".hex";
constexpr std::string_view kFields[] = {"a",  "b",  "c", "d", "in",     "out",
                                        "sa", "sb", "e", "r", "random", "flags"};

}  // namespace

std::string port_file(std::string_view prefix, std::string_view field) {
  return fmt::format("{}.{}{}", prefix, field, kEnding);
}

std::string_view port_prefix(std::string_view file) {
  if (!file.ends_with(kEnding)) return {};
  file.remove_suffix(kEnding.size());
  const std::size_t point = file.rfind('.');
  if (point == std::string_view::npos) return {};
  const bool known = std::find(std::begin(kFields), std::end(kFields), file.substr(point + 1)) !=
                     std::end(kFields);
  return known ? file.substr(0, point) : std::string_view();
}

PortReader::PortReader(std::string prefix, PortOpener opener)
    : prefix_(std::move(prefix)), opener_(std::move(opener)) {
  inputs_ = open("a");
  std::unique_ptr<TextReader> in = open("in");
  if ((inputs_ == nullptr) == (in == nullptr))
    throw Error(fmt::format("{}, {}: expected one of them, found {}", port_file(prefix_, "a"),
                            port_file(prefix_, "in"), in == nullptr ? "none" : "both"));
  first_ = in == nullptr ? "a" : "in";
  if (in != nullptr) inputs_ = std::move(in);
}

std::unique_ptr<TextReader> PortReader::open(const std::string& field) {
  const std::string file = port_file(prefix_, field);
  ByteReader bytes = opener_(file);
  if (!bytes) return nullptr;
  return std::make_unique<TextReader>(file, as_utf8(file, std::move(bytes)), "//");
}

void PortReader::open_all(const Layout& layout) {
  for (const Field& field : layout) {
    Port port{port_file(prefix_, field.name), {field}, nullptr, nullptr, {}};
    port.layout[0].packed = true;
    port.layout[0].optional = false;
    if (field.name != first_) port.own = open(field.name);
    port.text = field.name == first_ ? inputs_.get() : port.own.get();
    const bool c_of_unit = field.name == "c" && find_field(layout, "d") >= 0;
    if (port.text == nullptr && !field.optional && !c_of_unit)
      throw Error(fmt::format("{}: cannot open: expected {} of {} in one word a line", port.file,
                              field.count == 1 ? "one code" : fmt::format("{} codes", field.count),
                              field.name));
    if (port.text != nullptr && !port.text->header().empty() &&
        port.text->header() != inputs_->header())
      throw Error(fmt::format("{}: line 1: expected that of {}, or none", port.file,
                              port_file(prefix_, first_)));
    ports_.push_back(std::move(port));
  }
}

bool PortReader::has_optional() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const Port& port) {
    return port.layout[0].name == "flags" && port.text != nullptr;
  });
}

bool PortReader::read(const Layout& layout, std::int64_t most, Records& records) {
  if (ports_.empty()) open_all(layout);
  const Port* first = nullptr;
  for (Port& port : ports_) {
    if (port.text == nullptr) continue;
    port.text->read(port.layout, most, port.records);
    if (port.text == inputs_.get()) first = &port;
  }
  const std::int64_t n = first->records.size;
  records.reset(layout, n);
  for (std::size_t f = 0; f < ports_.size(); ++f) {
    Port& port = ports_[f];
    if (port.text == nullptr) continue;
    if (port.records.size != n)
      throw Error(fmt::format("{}: expected as many records as {}, found {}", port.file,
                              first->file, port.records.size < n ? "fewer" : "more"));
    records.columns[f].swap(port.records.columns[0]);
    records.unknown[f].swap(port.records.unknown[0]);
  }
  records.classes = first->records.classes;
  records.class_of = first->records.class_of;
  records.line = first->records.line;
  return n != 0;
}

}  // namespace numemu::oracle
