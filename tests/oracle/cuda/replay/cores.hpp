// The cores of a rule, one function each; all but the payload of a NaN is decided here.
#pragma once
#include "tests/oracle/cuda/replay/products.hpp"

namespace numemu::oracle::recording::replay {

std::uint64_t fused_answer(const Rule&, const Dot&);
std::uint64_t fma_answer(const Rule&, const Dot&);
std::uint64_t lowered_answer(const Rule&, const Dot&);
std::uint64_t groups_answer(const Rule&, const Dot&);
std::uint64_t integer_answer(const Rule&, const Dot&);

/// C, with what the rule makes of its subnormals.
Number accumulator(const Rule&, Element, std::uint64_t code);

/// How a fused step writes: float32 toward zero, float16 to nearest even.
Writing writing_of(const Rule&, Element);

/// One fused step over `count` products (which lie `fraction` bits above their exponents' unit) and
/// an accumulator of type `in`; its result is a code of type `out`.
std::uint64_t fused_step(const Rule&, const Product*, int count, int fraction, Element in,
                         const Number& accumulator, Element out);

/// c + t, one rounding to nearest even, as IEEE 754 adds; the result is of t's type.
std::uint64_t rounded_sum(const Rule&, Element of_c, std::uint64_t c, Element of_t,
                          std::uint64_t t);

}  // namespace numemu::oracle::recording::replay
