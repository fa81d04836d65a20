#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

namespace {

struct Chip {
  const char* name;
  int first, last;       ///< compute capabilities of its family; the first is its own
  const char* marketed;  ///< in the driver's name; "": the whole family
};

// Within a family the chips with a marketed name come first.
constexpr Chip kChips[] = {
    {"V100", 70, 72, ""},     {"T4", 75, 75, ""},
    {"A100", 80, 80, ""},     {"A2", 86, 88, ""},
    {"L40S", 89, 89, "L40S"}, {"Ada", 89, 89, ""},
    {"H200", 90, 90, "H200"}, {"H100", 90, 90, ""},
    {"B200", 100, 119, ""},   {"RTXBlackwell", 120, 129, ""},
};

}  // namespace

std::string chip_of(const std::string& name, int capability) {
  for (const Chip& chip : kChips) {
    if (capability >= chip.first && capability <= chip.last &&
        name.find(chip.marketed) != std::string::npos)
      return chip.name;
  }
  return "";
}

bool has(const Instruction& i, int capability) {
  // ptxas of CUDA 13.0 refuses kind::i8 of tcgen05.mma for sm_103a and takes it for sm_100a and
  // sm_110a.
  const bool tensor_memory = i.kind == Kind::tc5 || i.kind == Kind::tc5sp;
  if (tensor_memory && is_integer(i.a) && capability == 103) return false;
  return capability >= i.chips.first && capability <= i.chips.last;
}

std::vector<std::string> chips_with(const Instruction& i) {
  std::vector<std::string> chips;
  for (const Chip& chip : kChips)
    if (has(i, chip.first)) chips.push_back(chip.name);
  return chips;
}

int capability_of(const std::string& chip) {
  for (const Chip& row : kChips)
    if (chip == row.name) return row.first;
  return 0;
}

namespace {

bool names_c(Kind kind) { return kind == Kind::mma || kind == Kind::mmasp || kind == Kind::mmabs; }

}  // namespace

const char* name(Kind kind) {
  constexpr const char* kNames[] = {"mma", "mmasp", "mmabs", "wgmma", "wgmmasp",
                                    "tc5", "tc5sp", "tc5bs", "cvt"};
  return kNames[static_cast<int>(kind)];
}

std::string name(const Instruction& i) {
  std::string text =
      "m" + std::to_string(i.m) + "n" + std::to_string(i.n) + "k" + std::to_string(i.k);
  if (i.block != 0) text += ".block" + std::to_string(i.block);
  for (const Element e : {i.d, i.a, i.b}) text += std::string(".") + info(e).name;
  if (names_c(i.kind)) text += std::string(".") + info(i.c).name;
  if (i.block != 0) text += std::string(".") + info(i.scale).name;
  if (i.satfinite) text += ".satfinite";
  return text;
}

std::string full_name(const Instruction& i) { return std::string(name(i.kind)) + " " + name(i); }

std::uint32_t tensor_of(const std::string& text) {
  std::uint32_t hash = 0x811c9dc5;  // RFC 9923
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193U;
  return hash;
}

std::uint32_t tensor_of(const Instruction& i) { return tensor_of(full_name(i)); }

const std::vector<Instruction>& instructions() {
  static const std::vector<Instruction> kTable = {
#define NUMEMU_GPU_INSTRUCTION(kind, m, n, k, d, a, b, c, sparsity, scale, block, satfinite,   \
                               first, last, exact)                                             \
  NUMEMU_GPU_ROW_OF(kind, m, n, k, d, a, b, c, sparsity, scale, block, satfinite, first, last, \
                    exact),
#include "emu/oracle/recording/instructions/instructions.def"
#undef NUMEMU_GPU_INSTRUCTION
  };
  return kTable;
}

int find_instruction(const std::string& kind, const std::string& instruction) {
  const std::vector<Instruction>& table = instructions();
  for (std::size_t i = 0; i < table.size(); ++i)
    if (name(table[i].kind) == kind && name(table[i]) == instruction) return static_cast<int>(i);
  return -1;
}

}  // namespace numemu::oracle::recording
