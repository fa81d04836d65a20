#include "emu/oracle/identify/protocol.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "emu/oracle/files/text.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

constexpr int kMostDepth = 1 << 12;

Field numbers(std::string name, const Format* format, int bits, std::int64_t count) {
  return {std::move(name), format != nullptr ? format->bits : bits, count, format};
}

Layout question_layout(const Ports& ports) {
  Layout layout = {numbers("a", ports.a, 0, ports.kept()), numbers("b", ports.b, 0, ports.k)};
  if (ports.scale != nullptr) {
    layout.push_back(numbers("sa", ports.scale, 0, ports.scales()));
    layout.push_back(numbers("sb", ports.scale, 0, ports.scales()));
  }
  if (!ports.sparsity.dense())
    layout.push_back({"e", unit::index_bits({ports.sparsity}), ports.kept()});
  layout.push_back(numbers("c", ports.c, ports.bits, 1));
  return layout;
}

std::string name_of(const Format* format, int bits) {
  return format != nullptr ? format->name : fmt::format("int{}", bits);
}

}  // namespace

void check_ports(const Ports& ports) {
  const auto require = [](bool holds, std::string_view port, std::string_view expected) {
    if (!holds) throw Error(fmt::format("{}: expected {}", port, expected));
  };
  require(unit::container_of(*ports.a).has_value(), "a", "a format that operands have");
  require(unit::container_of(*ports.b).has_value(), "b", "a format that operands have");
  require((ports.c == nullptr) == (ports.d == nullptr), "c", "an integer where d is one");
  for (const auto& [port, format] : {std::pair("c", ports.c), std::pair("d", ports.d)})
    require(format == nullptr || (unit::container_of(*format).has_value() &&
                                  format->kind == Kind::floating && format->is_signed),
            port, "int32 or a signed floating format");
  require(ports.k >= 1 && ports.k <= kMostDepth, "k", fmt::format("1 to {}", kMostDepth));
  require(ports.sparsity.dense() || ports.k % ports.sparsity.group == 0, "k",
          "a multiple of the sparsity's group");
}

Layout record_layout(const Ports& ports) {
  Layout layout = question_layout(ports);
  layout.push_back(answer_layout(ports).front());
  if (ports.d != nullptr)
    layout.push_back({.name = "flags", .bits = 8, .result = true, .optional = true});
  return layout;
}

Layout answer_layout(const Ports& ports) {
  Layout layout = {numbers("d", ports.d, ports.bits, 1)};
  layout.back().result = true;
  return layout;
}

std::string questions_header(const Ports& ports) {
  std::string line =
      fmt::format("{}1 a={} b={} c={} d={} k={}", kQuestionsBegin, ports.a->name, ports.b->name,
                  name_of(ports.c, ports.bits), name_of(ports.d, ports.bits), ports.k);
  if (ports.scale != nullptr)
    line += fmt::format(" scale={} block={}", ports.scale->name, ports.block);
  if (!ports.sparsity.dense())
    line += fmt::format(" sparsity={}:{}", ports.sparsity.kept, ports.sparsity.group);
  return line + "\n";
}

std::string question_text(const Ports& ports, const Dot& dot) {
  const Layout layout = question_layout(ports);
  Records records(layout, 1);
  const auto put = [&](std::string_view field, const auto& codes) {
    const int at = find_field(layout, field);
    if (at >= 0) records.columns[static_cast<std::size_t>(at)].assign(codes.begin(), codes.end());
  };
  put("a", dot.a);
  put("b", dot.b);
  put("sa", dot.scale_a);
  put("sb", dot.scale_b);
  put("e", dot.kept);
  put("c", std::vector<std::uint64_t>{dot.c});
  std::string text;
  append_text(layout, records, text);
  return text;
}

Dot dot_of(const Ports& ports, const Records& records, std::int64_t i) {
  const Layout layout = record_layout(ports);
  const auto get = [&](std::string_view name, auto& codes) {
    const int at = find_field(layout, name);
    if (at < 0) return;
    const Field& field = layout[static_cast<std::size_t>(at)];
    const auto begin = records.columns[static_cast<std::size_t>(at)].begin() + i * field.count;
    codes.assign(begin, begin + field.count);
  };
  Dot dot;
  std::vector<std::uint64_t> c;
  get("a", dot.a);
  get("b", dot.b);
  get("sa", dot.scale_a);
  get("sb", dot.scale_b);
  get("e", dot.kept);
  get("c", c);
  dot.c = c.front();
  return dot;
}

}  // namespace numemu::oracle
