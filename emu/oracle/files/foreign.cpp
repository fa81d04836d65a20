#include "emu/oracle/files/foreign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::oracle {

namespace {

constexpr std::string_view kEnding = ".hex";
constexpr std::string_view kFields[] = {
    "a", "b",      "c",     "d",    "in",     "out",        "sa",    "sb",        "e",
    "r", "random", "flags", "bias", "factor", "multiplier", "shift", "zero_point"};

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
      throw file_error(fmt::format(
          "{}: cannot open: expected {} of {} in one word a line", port.file,
          field.count == 1 ? "one code" : fmt::format("{} codes", field.count), field.name));
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

namespace {

constexpr std::string_view kNames[] = {
    "in",     "out", "a",     "b",    "c",      "d",          "sa",    "sb",         "e",
    "random", "r",   "flags", "bias", "factor", "multiplier", "shift", "zero_point", "skip"};

[[noreturn]] void refuse(std::string_view field, const std::string& text) {
  throw usage_error(fmt::format("--fields: '{}': {}", field, text));
}

/// A whole number that is all of the text; -1 where it is none.
std::int64_t number_of(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : -1;
}

Field parse_field(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) refuse(text, "expected NAME:[COUNTx]FORMAT");
  Field field;
  field.name = text.substr(0, colon);
  if (std::find(std::begin(kNames), std::end(kNames), field.name) == std::end(kNames))
    refuse(text, fmt::format("expected one of {}", joined(kNames, " ")));
  std::string_view format = text.substr(colon + 1);
  const std::size_t x = format.find('x');
  const bool counted = x != std::string_view::npos && number_of(format.substr(0, x)) >= 0;
  if (counted) {
    field.count = number_of(format.substr(0, x));
    format.remove_prefix(x + 1);
  }
  if (field.count < 1 || field.count > kMostProducts)
    refuse(text, fmt::format("expected a count of 1 to {}", kMostProducts));
  if (format == "int32" || format == "s32") {
    field.bits = 32;
  } else if (const std::int64_t bits = number_of(format); bits >= 0) {
    if (bits < 1 || bits > 64) refuse(text, "expected 1 to 64 bits");
    field.bits = static_cast<int>(bits);
  } else {
    try {
      field.format = &find_format(format);
    } catch (const Error& error) {
      refuse(text, error.what());
    }
    field.bits = field.format->bits;
  }
  return field;
}

std::int64_t words_of(const Layout& layout) {
  std::int64_t words = 0;
  for (const Field& field : layout) words += field.words();
  return words;
}

/// The words of the first line that is no comment, within `text`; 0 where there is none.
std::int64_t words_of_first_record(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, std::min(line.find('#'), line.find("//")));
    std::int64_t words = 0;
    bool inside = false;
    for (const char c : line) {
      const bool blank = c == ' ' || c == '\t' || c == '\r';
      words += !blank && !inside;
      inside = !blank;
    }
    if (words != 0) return words;
  }
  return 0;
}

}  // namespace

Layout parse_fields(std::string_view text) {
  Layout layout;
  while (true) {
    const std::size_t comma = text.find(',');
    Field field = parse_field(text.substr(0, comma));
    if (field.name != "skip" && find_field(layout, field.name) >= 0)
      refuse(field.name, "expected each name once");
    layout.push_back(std::move(field));
    if (comma == std::string_view::npos) return layout;
    text.remove_prefix(comma + 1);
  }
}

ForeignReader::ForeignReader(Layout foreign, ElementOrder order, const Subject& subject,
                             std::string name, ByteReader bytes)
    : foreign_(std::move(foreign)), order_(order) {
  for (const Field& own : layout_of(subject)) {
    const int at = find_field(foreign_, own.name);
    const bool c = (own.name == "c" || own.name == "bias") && subject.operation == Operation::unit;
    if (at < 0) {
      if (!c && !own.optional)
        refuse(own.name, fmt::format("expected this field: {} codes of {}", own.count,
                                     own.format != nullptr ? own.format->name
                                                           : fmt::format("{} bits", own.bits)));
    } else {
      Field& field = foreign_[static_cast<std::size_t>(at)];
      const bool other_format = field.format != nullptr && own.format != nullptr &&
                                field.format->name != own.format->name;
      if (other_format || field.count != own.count || field.bits != own.bits)
        refuse(own.name, fmt::format("{} x {} contradicts {} x {}", field.count,
                                     field.format != nullptr ? field.format->name
                                                             : fmt::format("{} bits", field.bits),
                                     own.count,
                                     own.format != nullptr ? own.format->name
                                                           : fmt::format("{} bits", own.bits)));
    }
    layout_.push_back(own);
    source_.push_back(at);
  }
  for (const Field& field : foreign_)
    if (field.name != "skip" && find_field(layout_, field.name) < 0)
      refuse(field.name, "no field of this unit or operation");
  decide(name, std::move(bytes));
}

void ForeignReader::decide(const std::string& name, ByteReader bytes) {
  // The first line, which must be in it: comments before it and its codes, twice as long.
  std::size_t most = std::size_t{1} << 18;
  for (const Field& field : foreign_) most += static_cast<std::size_t>(field.count) * 20;
  auto head = std::make_shared<std::string>(most, '\0');
  std::size_t got = 0;
  while (got < most) {
    const std::size_t more = bytes(head->data() + got, most - got);
    if (more == 0) break;
    got += more;
    const std::string_view so_far(head->data(), got);
    const std::size_t end = so_far.rfind('\n');
    if (end != std::string_view::npos && words_of_first_record(so_far.substr(0, end)) != 0) break;
  }
  head->resize(got);
  const std::int64_t words = words_of_first_record(*head);
  const std::int64_t separate = words_of(foreign_), fields = std::ssize(foreign_);
  if (words == fields) {
    for (Field& field : foreign_) field.packed = field.count > 1;
  } else if (words != separate && words != 0) {
    throw Error(fmt::format(
        "{}: first record: expected {} words, one for each field, or {}, one for each code; "
        "found {}",
        name, fields, separate, words));
  }
  std::size_t given = 0;
  text_ = std::make_unique<TextReader>(
      name, [head, given, bytes = std::move(bytes)](char* to, std::size_t count) mutable {
        if (given == head->size()) return bytes(to, count);
        const std::size_t part = std::min(count, head->size() - given);
        std::copy_n(head->data() + given, part, to);
        given += part;
        return part;
      });
}

bool ForeignReader::read(std::int64_t most, Records& records) {
  if (!text_->read(foreign_, most, lines_)) return false;
  records.reset(layout_, lines_.size);
  records.classes = lines_.classes;
  records.class_of = lines_.class_of;
  records.line = lines_.line;
  records.unknown.assign(layout_.size(), {});
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    if (source_[f] < 0) continue;
    const auto from = static_cast<std::size_t>(source_[f]);
    std::vector<std::uint64_t>& codes = lines_.columns[from];
    std::vector<std::uint64_t>* unknown =
        lines_.unknown.size() > from ? &lines_.unknown[from] : nullptr;
    const auto count = static_cast<std::ptrdiff_t>(layout_[f].count);
    if (order_ == ElementOrder::msb && foreign_[from].packed) {
      for (std::vector<std::uint64_t>* all : {&codes, unknown}) {
        if (all == nullptr) continue;
        for (auto at = all->begin(); at != all->end(); at += count) std::reverse(at, at + count);
      }
    }
    records.columns[f].swap(codes);
    if (unknown != nullptr) records.unknown[f].swap(*unknown);
  }
  return true;
}

}  // namespace numemu::oracle
