// What the process holds already, as its allocator counts it, beside what a pass is about to need.
#pragma once
#include <cstdint>
#include <string_view>

namespace numemu::net {

/// From now on what is allocated fits the memory budget beside the bytes that `held` counts: data
/// sets, references and networks. Null, as at first: they are not counted.
void count_held_memory(std::int64_t (*held)());

/// The sum of all claims (memory.hpp).
std::int64_t memory_claimed();

/// What is held now; 0 where nothing is counted.
std::int64_t memory_held();

/// The budget less what is held; never negative. No bound where none is set or nothing is counted.
std::int64_t memory_beside_held();

/// Throws Error "WHAT: needs ..." where so many bytes more do not fit.
void require_beside_held(std::int64_t bytes, std::string_view what);

}  // namespace numemu::net
