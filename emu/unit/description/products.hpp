// The table of products of core table, as a .npy file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// Bits of both codes together: the largest table has 2^20 entries.
inline constexpr int kMostTableBits = 20;

/// Reads 2^bits(a) x 2^bits(b) products, int16 or int32. The file's size is compared with that
/// before memory is taken. Empty, which check_description() refuses, where the description has no
/// use for a table. Throws Error naming the file.
std::shared_ptr<const std::vector<std::int32_t>> read_products(const UnitDescription&,
                                                               const std::string& path);
/// Writes them as int32.
void write_products(const UnitDescription&, const std::string& path);

}  // namespace numemu::unit
