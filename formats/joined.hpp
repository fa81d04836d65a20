// Lists in texts. fmt::join() costs a quarter of a second in each source that calls it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace numemu {

/// The elements with `between` between two of them.
std::string joined(std::span<const std::string>, std::string_view between);
std::string joined(std::span<const std::string_view>, std::string_view between);
std::string joined(std::span<const char* const>, std::string_view between);
std::string joined(std::span<const std::int64_t>, std::string_view between);
std::string joined(std::span<const int>, std::string_view between);
std::string joined(const std::set<std::string>&, std::string_view between);

/// The first `most` elements, and how many more there are: "a, b and 3 more".
std::string joined_first(std::span<const std::string>, std::string_view between, std::size_t most,
                         const char* more = " and {} more");

}  // namespace numemu
