// Metadata as the packed words of NVIDIA's sparse matrix instructions.
#pragma once
#include <cstdint>

#include "emu/unit/sparse/pattern.hpp"

namespace numemu::unit {

/// Layout `ptx`: 4 bits per group, two ascending 2-bit indices with the first in the low bits,
/// groups ascending from the low bits of a word on (PTX ISA, "Sparse matrix storage", of mma.sp and
/// wgmma.mma_async.sp, with ordered metadata; which thread holds which word is left to the caller).
/// The indices count quarters of a group: the elements of 2:4, the pairs of 4:8.pairwise, and the
/// 16-bit halves of 1:2, where only both halves of one element make sense (0b0100, 0b1110).
/// Word is uint8 or uint32; every row starts with a new word, bits left over are 0.
template <class Word>
std::int64_t ptx_words_per_row(const Pattern& p, std::int64_t depth) {
  constexpr std::int64_t kGroups = sizeof(Word) * 2;
  return (depth / p.group + kGroups - 1) / kGroups;
}

/// Index to ptx. Throws Error for indices that break their rules, and for patterns without the
/// layout.
template <class Word>
void encode_ptx(const Pattern&, const std::uint8_t* index, std::int64_t rows, std::int64_t depth,
                Word* words);

/// ptx to index. Throws Error naming row and group of a value that PTX leaves undefined, or row and
/// word of bits after the last group.
template <class Word>
void decode_ptx(const Pattern&, const Word* words, std::int64_t rows, std::int64_t depth,
                std::uint8_t* index);

}  // namespace numemu::unit
