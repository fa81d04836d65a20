// The product that a caller describes, laid out for its unit.
#pragma once
#include <memory>

#include "api/units.hpp"
#include "bindings/c/arrays.hpp"
#include "bindings/c/handles.hpp"

namespace numemu::c {

/// Borrows the caller's arrays. `d`: what is written; nullptr: nothing is. Throws Error as
/// api::make_product() does.
std::unique_ptr<api::Product> product_of(const numemu_unit*, const numemu_product&, Out* d);

}  // namespace numemu::c
