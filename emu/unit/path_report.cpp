#include "emu/unit/path_report.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/fast_paths.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/two_levels.hpp"
#include "emu/unit/unit.hpp"
#include "formats/codec.hpp"
#include "formats/containers.hpp"

namespace numemu::unit {
namespace {

/// A small product of numbers near 1, of both signs, that owns its arrays.
class Probe {
 public:
  explicit Probe(const UnitDescription& u) {
    constexpr std::int64_t kRows = 4, kColumns = 16, kLeastDepth = 64, kMostDepth = 4096;
    std::int64_t k = std::clamp<std::int64_t>(2 * std::max({u.k, u.group, u.outer.every}),
                                              kLeastDepth, kMostDepth);
    if (!u.sparsity.dense()) k = (k + u.sparsity.group - 1) / u.sparsity.group * u.sparsity.group;
    const std::int64_t kept = u.sparsity.dense() ? k : k / u.sparsity.group * u.sparsity.kept;
    gather_a_ = Gather::matrix(kRows, kept);
    gather_b_ = Gather::matrix(kColumns, k, true);
    gemm_.m = kRows;
    gemm_.n = kColumns;
    gemm_.k = k;
    gemm_.a = {&operand(u, u.a), fill(operand(u, u.a), kRows * kept, a_), &gather_a_};
    gemm_.b = {&operand(u, u.b), fill(operand(u, u.b), kColumns * k, b_), &gather_b_};
    if (u.scaling.block != 0) {
      const std::int64_t blocks = (kept + u.scaling.block - 1) / u.scaling.block;
      const Value one = value_of(1.0f);
      const auto code = static_cast<std::uint8_t>(
          encode(*u.scaling.format, one, Rounding{}, Overflow::saturate).code);
      scales_.assign(static_cast<std::size_t>(kColumns * blocks), code);
      gemm_.scale_a = gemm_.scale_b = scales_.data();
    }
    for (std::int64_t i = 0; !u.sparsity.dense() && i < kRows * kept; ++i)
      kept_.push_back(static_cast<std::uint8_t>(i % u.sparsity.kept));
    gemm_.kept = u.sparsity.dense() ? nullptr : kept_.data();
    d_.resize(static_cast<std::size_t>(kRows * kColumns *
                                       bytes_of(result_format(u), result_register(u))));
    gemm_.d = d_.data();
  }
  Probe(const Probe&) = delete;
  const Gemm& gemm() const { return gemm_; }

 private:
  static const Format& operand(const UnitDescription& u, const Format* own) {
    if (own != nullptr) return *own;
    return find_format(u.core == CoreKind::exact ? "float16" : "float32");
  }
  static const void* fill(const Format& f, std::int64_t n, std::vector<std::uint8_t>& array) {
    const auto bytes = static_cast<std::size_t>(container_bytes(f));
    array.assign(static_cast<std::size_t>(n) * bytes + sizeof(std::uint64_t), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = (i % 2 == 0 ? 1 : -1) * (1 + static_cast<double>(i % 3) / 2);
      const std::uint64_t code = encode(f, value_of(x), Rounding{}, Overflow::saturate).code
                                 << f.container_shift;
      std::memcpy(&array[static_cast<std::size_t>(i) * bytes], &code, bytes);
    }
    return array.data();
  }

  std::vector<std::uint8_t> a_, b_, d_, scales_, kept_;
  Gather gather_a_, gather_b_;
  Gemm gemm_;
};

/// The name of the path, empty for none.
std::string path_of(const UnitDescription& u) {
  const Probe probe(u);
  if (!u.sparsity.dense() || u.outer.every != 0) {
    if (!multiply_fast(u, probe.gemm())) return "";
    UnitDescription dense = u.outer.every != 0 ? *inner_unit(u) : u;
    dense.sparsity = {};
    return (u.outer.every != 0 ? "two levels over " : "row by row over ") + path_of(dense);
  }
  const FastPath* path = multiply_by_path(u, probe.gemm());
  return path == nullptr ? "" : std::string(path->name);
}

using Texts = std::vector<std::pair<std::string, std::string>>;

/// Every field that may stand in the way, as text.
Texts texts_of(const UnitDescription& u) {
  Texts texts;
  for_each_field(u, [&](const std::string& key, const auto& field) {
    if (key != "name" && key != "a" && key != "b" && key != "nan_code")
      texts.emplace_back(key, text_of(field));
  });
  return texts;
}

std::vector<PathReport::Change> differences(const Texts& own, const Texts& other) {
  std::vector<PathReport::Change> found;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].second != other[i].second)
      found.push_back({own[i].first, own[i].second, other[i].second});
  }
  return found;
}

/// `u` with fields of another description.
UnitDescription changed(UnitDescription u, const std::vector<PathReport::Change>& changes,
                        UnitDescription from) {
  for (const PathReport::Change& change : changes) {
    for_each_field(u, [&](std::string_view key, auto& field) {
      if (key != change.key) return;
      for_each_field(from, [&](std::string_view same, auto& other) {
        if constexpr (std::is_same_v<decltype(field), decltype(other)>) {
          if (same == key) field = other;
        }
      });
    });
  }
  const Format* d = result_format(u);
  u.nan_code = d != nullptr && d->has_nan() ? d->nan_code() : 0;
  return u;
}

std::string path_of_valid(const UnitDescription& u) {
  return DescriptionCheck(u).run().empty() ? path_of(u) : "";
}

}  // namespace

PathReport path_report(const UnitDescription& u) {
  PathReport report;
  report.path = path_of(u);
  if (!report.path.empty()) return report;
  constexpr std::size_t kTried = 12;
  const Texts own = texts_of(u);
  std::vector<std::pair<std::vector<PathReport::Change>, const Unit*>> near;
  for (const Unit* unit : all_units()) {
    const UnitDescription* other = unit->description();
    if (other == nullptr || other->core != u.core) continue;
    near.emplace_back(differences(own, texts_of(*other)), unit);
  }
  std::ranges::stable_sort(near, {}, [](const auto& one) { return one.first.size(); });
  near.resize(std::min(near.size(), kTried));
  const auto accept = [&](const std::vector<PathReport::Change>& changes, const Unit* unit) {
    const std::string path = path_of_valid(changed(u, changes, *unit->description()));
    if (path.empty()) return false;
    report.changes = changes;
    report.like = unit->row().name;
    report.other_path = path;
    return true;
  };
  // One field may be enough, else two, else all.
  for (const auto& [changes, unit] : near) {
    for (const auto& change : changes) {
      if (accept({change}, unit)) return report;
    }
  }
  for (const auto& [changes, unit] : near) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      for (std::size_t j = i + 1; j < changes.size(); ++j) {
        if (accept({changes[i], changes[j]}, unit)) return report;
      }
    }
  }
  for (const auto& [changes, unit] : near) {
    if (accept(changes, unit)) return report;
  }
  return report;
}

}  // namespace numemu::unit
