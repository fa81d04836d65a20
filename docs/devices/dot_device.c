/* A device for `numemu identify`: bfloat16 products added to C by fused multiply-adds, k ascending. Its argument is K. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float number(unsigned code) { union { unsigned code; float x; } u = {code}; return u.x; }
static unsigned code(float x) { union { float x; unsigned code; } u = {x}; return u.code; }

int main(int argc, char** argv) {
  const int k = argc > 1 ? atoi(argv[1]) : 0;
  static char line[1 << 16];
  static unsigned words[1 << 13];
  while (k > 0 && 2 * k < 1 << 13 && fgets(line, sizeof line, stdin)) {
    if (*line == '#') continue;
    char* at = line;
    for (int i = 0; i <= 2 * k; ++i) words[i] = (unsigned)strtoul(at, &at, 16);
    float sum = number(words[2 * k]);
    for (int i = 0; i < k; ++i) sum = fmaf(number(words[i] << 16), number(words[k + i] << 16), sum);
    printf("%08x\n", code(sum));
    fflush(stdout);
  }
}
