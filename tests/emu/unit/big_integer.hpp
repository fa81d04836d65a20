// Integers of any size, for oracles.
#pragma once
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 takes cpp_int's small-number buffer, a member of a union, for uninitialised wherever it is
// inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/multiprecision/cpp_int.hpp>

namespace numemu::unit::test {
using boost::multiprecision::cpp_int;
}  // namespace numemu::unit::test
