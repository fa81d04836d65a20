// Generated text whose entropy rate is known: a chain in which the last two characters leave four.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::net::chain {

inline constexpr std::int64_t kCharacters = 1 << 20;
/// Bits per character that no model of the text can go below: each two characters are followed by
/// one of four, with probabilities 1/2, 1/4, 1/8, 1/8 (Shannon 1948, section 7).
inline constexpr double kEntropyRate = 1.75;

/// The text, of the letters a to z and the space. Character t is a function of the two before it
/// and of draw t.
std::vector<std::uint8_t> generate();

}  // namespace numemu::net::chain
