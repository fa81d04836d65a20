// --memory: a number of bytes, or one with K, M, G or T (powers of 1024).
#include "cli/memory_option.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/machine_memory.hpp"
#include "emu/net/held_memory.hpp"
#include "emu/net/memory.hpp"

namespace numemu::cli {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;

std::optional<std::int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 1) return std::nullopt;
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (unit.empty()) return value <= kMost ? std::optional(value) : std::nullopt;
  const std::size_t power = kUnits.find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "iB"))
    return std::nullopt;
  const auto shift = static_cast<int>(10 * (power + 1));
  return value <= kMost >> shift ? std::optional(value << shift) : std::nullopt;
}

}  // namespace

void add_memory(Command& command) {
  constexpr std::size_t kShown = 40;  // characters of a wrong value
  auto size = std::make_shared<std::optional<std::string>>();
  command
      .option(
          "--memory SIZE", *size,
          "Memory limit for data, networks and their values (default: half of the machine's memory "
          "or of its cgroup limit)")
      .check([](const std::string& text) {
        return parse_size(text) ? std::string()
                                : fmt::format(
                                      "expected bytes, or a number with K, M, G or T up to "
                                      "1024T, not '{}'",
                                      text.substr(0, kShown));
      });
  command.before_run([size] {
    net::count_held_memory(held_memory);
    if (*size) {
      net::set_memory_budget(parse_size(**size).value_or(kMost));
    } else if (const std::int64_t bytes = machine_memory(); bytes > 0) {
      net::set_memory_budget(bytes / 2);
    }
  });
}

}  // namespace numemu::cli
