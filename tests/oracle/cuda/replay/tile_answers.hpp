// The results of a rule for every dot of tiles.
#pragma once
#include "emu/oracle/recording/batch.hpp"
#include "tests/oracle/cuda/replay/rule.hpp"

namespace numemu::oracle::recording {

/// The dot of row `row` and column `column` of a tile; points into the batch.
Dot dot_of(const Batch&, int tile, int row, int column);

/// D of every tile, [count][m][n] in the containers of batch.d.
std::vector<std::uint8_t> tile_answers(const Rule&, const Batch&);

}  // namespace numemu::oracle::recording
