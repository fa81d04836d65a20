// The steps in which the products of a described unit enter its sum.
#pragma once
#include <vector>

#include "emu/oracle/dots.hpp"

namespace numemu::oracle {

/// The step of each product, as the variant of the step map shows it that tells the most steps
/// apart; empty where none does, and of more than 64 products.
std::vector<int> steps_of_unit(const unit::UnitDescription&, const Ports&);

}  // namespace numemu::oracle
