// Finds the metadata word that selects the place of each kept value: all words flip between two
// values by the bits of their own index.
#include "tests/oracle/cuda/layout/layout_metadata.hpp"

#include "tests/oracle/cuda/layout/layout_questions.hpp"

namespace numemu::oracle::recording {
namespace {

/// Valid words of metadata: two ascending indices of two bits, the first low; in 1:2 the pair names
/// the halves of one element (PTX ISA, "Sparse matrix storage").
std::vector<std::uint8_t> words(const Instruction& i) {
  if (i.sparsity == Sparsity::one_of_two) return {0b0100, 0b1110};
  return {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
}
/// The two words whose every index differs.
constexpr std::uint8_t kLowWord = 0b0100, kHighWord = 0b1110;

int kept_of_group(const Instruction& i) { return i.group() / 2; }

/// Positions within the group that the one of each row meets, [shift * patterns + pattern][row];
/// `word` gives the metadata. The columns of B spell the bits of the position, again and again.
Indices ask_positions(Machine& machine, const Instruction& i, int patterns,
                      const std::function<int(int pattern, int row, int group)>& word) {
  const int bits = bits_of(i.group());
  Indices got =
      ask(machine, i, i.kept() * patterns, 1, 0, one(i.d),
          [&](Batch& tiles, int tile, int question, int) {
            set_shifted_ones(tiles, tile, question / patterns);
            for (int row = 0; row < i.m; ++row)
              for (int group = 0; group < i.groups(); ++group)
                tiles.metadata[static_cast<std::size_t>((tile * i.m + row) * i.groups() + group)] =
                    static_cast<std::uint8_t>(word(question % patterns, row, group));
            for (int k = 0; k < i.k; ++k)
              for (int column = 0; column < i.n; ++column)
                if (has_bit(k % i.group(), column % bits)) set_b(tiles, tile, k, column);
          });
  for (std::vector<int>& places : got) {
    std::vector<int> positions;
    for (auto row = places.begin(); row != places.end(); row += i.n) {
      int index = kNothing;
      for (int column = 0; column < i.n; ++column) {
        const int bit = row[column];
        if (bit == kGarbled || bit != row[column % bits]) index = kGarbled;
        if (index != kGarbled && column < bits) index += (bit + 1) << column;
      }
      positions.push_back(index);
    }
    places = positions;
  }
  return got;
}

/// Decodes a word: every word of the tile is the same.
void check_words(Machine& machine, const Instruction& i, const std::string& blamed,
                 std::vector<std::string>& all) {
  const std::vector<std::uint8_t> valid = words(i);
  const int patterns = static_cast<int>(valid.size());
  const Indices got = ask_positions(machine, i, patterns, [&valid](int pattern, int, int) {
    return valid[static_cast<std::size_t>(pattern)];
  });
  Complaints wrong;
  for (int question = 0; question < i.kept() * patterns; ++question) {
    const int word = valid[static_cast<std::size_t>(question % patterns)];
    for (int row = 0; row < i.m; ++row) {
      const int kept = (row + question / patterns) % i.kept();
      const int from = got[static_cast<std::size_t>(question)][static_cast<std::size_t>(row)];
      if (from == position_of(i, kept, word)) continue;
      wrong.add("with all words " + std::to_string(word) + " the kept value " +
                element_name("A", row, kept) + " met " +
                (from < 0 ? index_name("B", from, 1) : "position " + std::to_string(from)) +
                " of its group, expected position " + std::to_string(position_of(i, kept, word)));
    }
  }
  wrong.move_to(all, blamed);
}

/// [row][kept]: the word (row * groups + group) that chooses its position, or kNothing, kGarbled.
std::vector<int> governing_words(Machine& machine, const Instruction& i) {
  const int passes = bits_of(i.m * i.groups());
  const Indices got = ask_positions(machine, i, passes, [&i](int pass, int row, int group) {
    return has_bit(row * i.groups() + group, pass) ? kHighWord : kLowWord;
  });
  std::vector<int> governed(static_cast<std::size_t>(i.m * i.kept()), 0);
  for (int question = 0; question < i.kept() * passes; ++question) {
    for (int row = 0; row < i.m; ++row) {
      const int kept = (row + question / passes) % i.kept();
      int& index = governed[static_cast<std::size_t>(row * i.kept() + kept)];
      const int from = got[static_cast<std::size_t>(question)][static_cast<std::size_t>(row)];
      const bool high = from == position_of(i, kept, kHighWord);
      if (!high && from != position_of(i, kept, kLowWord)) index = kGarbled;
      if (index != kGarbled && high) index += 1 << question % passes;
    }
  }
  for (int& index : governed)
    if (index != kGarbled) index -= 1;
  return governed;
}

std::string word_named(const Instruction& i, int word) {
  return word < 0 ? index_name("word", word, 1) : index_name("word", word, i.groups());
}

void check_governing_words(Machine& machine, const Instruction& i, const std::string& blamed,
                           std::vector<std::string>& all) {
  const std::vector<int> governed = governing_words(machine, i);
  Complaints wrong;
  for (int row = 0; row < i.m; ++row) {
    for (int kept = 0; kept < i.kept(); ++kept) {
      const int word = governed[static_cast<std::size_t>(row * i.kept() + kept)];
      const int expected = row * i.groups() + kept / kept_of_group(i);
      if (word != expected)
        wrong.add("the place of the kept value " + element_name("A", row, kept) + " is chosen by " +
                  word_named(i, word) + ", expected " + word_named(i, expected));
    }
  }
  wrong.move_to(all, blamed);
}

}  // namespace

void check_metadata(Machine& machine, const Instruction& i, const std::string& blamed,
                    std::vector<std::string>& all) {
  check_words(machine, i, blamed, all);
  check_governing_words(machine, i, blamed, all);
}

std::string metadata_map(Machine& machine, const Instruction& i) {
  if (i.sparsity == Sparsity::dense) return "";
  const std::vector<int> governed = governing_words(machine, i);
  std::string text;
  for (int word = kGarbled; word < i.m * i.groups(); ++word) {
    std::string reached;
    for (int place = 0; place < i.m * i.kept(); ++place)
      if (governed[static_cast<std::size_t>(place)] == word)
        reached += " " + element_name("A", place / i.kept(), place % i.kept());
    if (word >= 0 && reached.empty()) reached = " nothing";
    if (!reached.empty()) text += word_named(i, word) + " chooses the place of" + reached + "\n";
  }
  return text;
}

}  // namespace numemu::oracle::recording
