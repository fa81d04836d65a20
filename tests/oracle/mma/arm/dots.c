/* dots INSTRUCTION: reads records of 48 bytes, A, B and C of a 128-bit register each, from standard
 * input, and writes the 16 bytes of D for each. Built for aarch64 and run by qemu-user
 * (tests/oracle/mma/arm_qemu_test.cpp). */
#include <arm_neon.h>
#include <stdio.h>
#include <string.h>

typedef void (*Instruction)(const void* a, const void* b, void* d);

#define DOT(name, text)                                             \
  static void name(const void* a, const void* b, void* d) {         \
    uint8x16_t x = vld1q_u8(a), y = vld1q_u8(b), sum = vld1q_u8(d); \
    __asm__(text : "+w"(sum) : "w"(x), "w"(y));                     \
    vst1q_u8(d, sum);                                               \
  }

DOT(run_sdot, "sdot %0.4s, %1.16b, %2.16b")
DOT(run_udot, "udot %0.4s, %1.16b, %2.16b")
DOT(run_usdot, "usdot %0.4s, %1.16b, %2.16b")
DOT(run_smmla, "smmla %0.4s, %1.16b, %2.16b")
DOT(run_ummla, "ummla %0.4s, %1.16b, %2.16b")
DOT(run_usmmla, "usmmla %0.4s, %1.16b, %2.16b")
DOT(run_bfdot, "bfdot %0.4s, %1.8h, %2.8h")
DOT(run_bfmmla, "bfmmla %0.4s, %1.8h, %2.8h")
DOT(run_bfmlalb, "bfmlalb %0.4s, %1.8h, %2.8h")

static const struct {
  const char* name;
  Instruction run;
} kInstructions[] = {{"sdot", run_sdot},   {"udot", run_udot},     {"usdot", run_usdot},
                     {"smmla", run_smmla}, {"ummla", run_ummla},   {"usmmla", run_usmmla},
                     {"bfdot", run_bfdot}, {"bfmmla", run_bfmmla}, {"bfmlalb", run_bfmlalb}};

int main(int argc, char** argv) {
  unsigned char record[48];
  unsigned long fpcr;
  /* Default NaN: bfmlalb is ruled by it, the others give no other. */
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1ul << 25));
  for (unsigned i = 0; argc == 2 && i < sizeof kInstructions / sizeof *kInstructions; ++i) {
    if (strcmp(argv[1], kInstructions[i].name) != 0) continue;
    while (fread(record, sizeof record, 1, stdin) == 1) {
      kInstructions[i].run(record, record + 16, record + 32);
      if (fwrite(record + 32, 16, 1, stdout) != 1) return 1;
    }
    return ferror(stdin) != 0;
  }
  fprintf(stderr, "expected the name of an instruction\n");
  return 2;
}
