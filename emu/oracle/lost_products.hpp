// Dead lanes: positions whose product has no effect on what a unit answers.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "emu/oracle/dots.hpp"

namespace numemu::oracle {

/// Asks the product 1 at each position, alone: those with the answer to no product at all, where
/// others have another one. Of dense dots; else none.
std::vector<int> lost_products(const Ports&, const std::function<std::uint64_t(const Dot&)>&);

/// The dot with zeros at those positions, of a dense one.
Dot without_products(Dot, const std::vector<int>& positions);

}  // namespace numemu::oracle
