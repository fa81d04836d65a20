// The integer program of an allocation as text for a solver, and the solver's answer.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "formats/error.hpp"
#include "policies/bits/allocation.hpp"

namespace numemu::policies {
namespace {

/// "+ 0.5 x0_1 + 2 x0_2": a sum over all variables.
template <class Coefficient>
std::string sum_of(const AllocationTable& table, const Coefficient& coefficient) {
  std::string out;
  for (std::size_t l = 0; l < table.size(); ++l) {
    for (std::size_t o = 0; o < table[l].size(); ++o)
      out += fmt::format(" + {:.17g} x{}_{}\n", coefficient(table[l][o]), l, o);
  }
  return out;
}

bool read_index(std::string_view& text, std::size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string allocation_lp(const AllocationTable& table, const std::vector<double>& limits) {
  std::string out =
      "Minimize\n loss:\n" + sum_of(table, [](const LayerOption& o) { return o.loss; });
  out += "Subject To\n";
  for (std::size_t l = 0; l < table.size(); ++l) {
    out += fmt::format(" layer{}:", l);
    for (std::size_t o = 0; o < table[l].size(); ++o) out += fmt::format("\n + x{}_{}", l, o);
    out += "\n = 1\n";
  }
  for (std::size_t b = 0; b < limits.size(); ++b) {
    const std::string sum = sum_of(table, [&](const LayerOption& o) { return o.costs[b]; });
    out += fmt::format(" budget{}:\n{} <= {:.17g}\n", b, sum, limits[b]);
  }
  out += "Binaries\n";
  for (std::size_t l = 0; l < table.size(); ++l) {
    for (std::size_t o = 0; o < table[l].size(); ++o) out += fmt::format(" x{}_{}\n", l, o);
  }
  return out + "End\n";
}

std::optional<Allocation> read_cbc_solution(const AllocationTable& table, const std::string& text,
                                            const std::string& where) {
  if (text.starts_with("Infeasible") || text.starts_with("Integer infeasible")) return std::nullopt;
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format("{}: expected a solution of cbc, {}", where, what));
  };
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (!line.starts_with("Optimal")) throw fail("found '" + line.substr(0, 60) + "'");
  std::vector<std::size_t> options(table.size()), found(table.size(), 0);
  // "      3 x1_2        1        0.5": place, variable, value, reduced cost.
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string place, name;
    double value = 0;
    if (!(words >> place >> name >> value) || value < 0.5) continue;
    std::string_view at = name;
    std::size_t l = 0, o = 0;
    if (!at.starts_with('x')) throw fail("found the variable " + name);
    at.remove_prefix(1);
    const bool first = read_index(at, l) && at.starts_with('_');
    if (first) at.remove_prefix(1);
    if (!first || !read_index(at, o) || !at.empty() || l >= table.size() || o >= table[l].size())
      throw fail("found the variable " + name);
    options[l] = o;
    ++found[l];
  }
  for (std::size_t l = 0; l < table.size(); ++l) {
    if (found[l] != 1) throw fail(fmt::format("with one option of layer {}", l));
  }
  return allocation_of(table, std::move(options));
}

}  // namespace numemu::policies
