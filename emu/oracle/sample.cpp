#include "emu/oracle/sample.hpp"

#include <algorithm>

namespace numemu::oracle {

void append_record(const Layout& layout, const Records& from, std::int64_t i, Records& to) {
  if (to.columns.empty()) to.reset(layout, 0);
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const auto begin = from.columns[f].begin() + i * layout[f].count;
    to.columns[f].insert(to.columns[f].end(), begin, begin + layout[f].count);
    if (from.unknown.size() > f && !from.unknown[f].empty()) {
      const auto bits = from.unknown[f].begin() + i * layout[f].count;
      to.unknown[f].resize(static_cast<std::size_t>(to.size * layout[f].count));
      to.unknown[f].insert(to.unknown[f].end(), bits, bits + layout[f].count);
    }
  }
  to.class_of.push_back(to.class_number(from.class_name(i)));
  to.line.push_back(from.line[static_cast<std::size_t>(i)]);
  ++to.size;
}

Records slice(const Layout& layout, const Records& from, std::int64_t first, std::int64_t n) {
  Records some(layout, n);
  for (std::size_t f = 0; f < layout.size(); ++f)
    std::copy_n(from.columns[f].begin() + first * layout[f].count, n * layout[f].count,
                some.columns[f].begin());
  return some;
}

void append_record(const Layout& layout, const Sample& from, std::int64_t i, Sample& to) {
  const auto at = static_cast<std::size_t>(i);
  append_record(layout, from.records, i, to.records);
  append_record(layout, from.before, i, to.before);
  append_record(layout, from.earlier, i, to.earlier);
  to.want.push_back(from.want[at]);
  to.want_flags.push_back(from.want_flags[at]);
  to.number.push_back(from.number[at]);
}

Sample spread(const Layout& layout, const Sample& all, std::int64_t most) {
  if (all.size() <= most) return all;
  Sample some;
  for (std::int64_t n = 0; n < most; ++n) append_record(layout, all, n * all.size() / most, some);
  return some;
}

}  // namespace numemu::oracle
