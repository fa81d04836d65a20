#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

namespace {

bool names_c(Kind kind) { return kind == Kind::mma || kind == Kind::mmasp || kind == Kind::mmabs; }

}  // namespace

bool has(const Instruction& i, int capability) {
  // ptxas of CUDA 13.0 refuses kind::i8 of tcgen05.mma for sm_103a and takes it for sm_100a and
  // sm_110a.
  const bool tensor_memory = i.kind == Kind::tc5 || i.kind == Kind::tc5sp;
  if (tensor_memory && is_integer(i.a) && capability == 103) return false;
  return capability >= i.chips.first && capability <= i.chips.last;
}

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
