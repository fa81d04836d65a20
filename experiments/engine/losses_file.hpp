// What two rows are paired by: which test samples a row got right, as bits; where samples are not
// right or wrong, a file of the sums of each that the row's figure is made of.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/train/score.hpp"
#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// Bits of a row: those of its first samples, at most 1,668 characters.
inline constexpr std::int64_t kMostAnswers = 10000;

/// `right` is base64 of ceil(n / 8) bytes, sample i in bit i mod 8 (from the lowest) of byte i / 8;
/// one entry a sample.
RowAnswers row_answers(const std::vector<std::uint8_t>& right);
/// One entry a sample; nothing where `answers` is none.
std::optional<std::vector<std::uint8_t>> read_answers(const RowAnswers&);

/// "0110": whether each target is right, as results of trials hold it.
std::string answer_text(const std::vector<std::uint8_t>& right);

/// The sums of the score that a row is judged by; without a score where a row has its answers.
struct JudgedSums {
  const net::Score* score = nullptr;
  net::ScoreTable table;
};

/// Larger tables, of thousands of classes, are not kept.
inline constexpr std::int64_t kMostLossBytes = std::int64_t{1} << 26;

/// The folder of the losses of the rows in `folder`.
std::string losses_folder(const std::string& folder);

/// Writes losses/KEY.npy below `folder`, float64 [samples, columns]. For the row: the path below
/// `folder`, the SHA-256 of the file, the name of the score. Nothing, and no file, of sums that are
/// not kept.
Member<RowLosses> write_losses(const std::string& folder, const std::string& key,
                               const JudgedSums&);

/// The sums that a row with losses names. Sizes are checked before memory is taken. Throws Error
/// that names the file where it is missing, or is not the one that was written with the row.
JudgedSums read_losses(const std::string& folder, const Row&);

/// Removes the losses of all rows in the folder; other files stay.
void remove_losses(const std::string& folder);

}  // namespace numemu::experiments
