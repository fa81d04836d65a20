/* A dot product of FP8 numbers as a tensor core computes it, and how the result came about.
 * cc -std=c99 example.c $(pkg-config --cflags --libs numemu) */
#include <numemu.h>
#include <stdio.h>
#include <stdlib.h>

static void check(numemu_status status) {
  if (status == NUMEMU_OK) return;
  fprintf(stderr, "%s\n", numemu_message());
  exit(1);
}

int main(void) {
  /* Numbers to codes, rounded to nearest even, saturating. */
  numemu_format* e4m3 = NULL;
  check(numemu_format_open("e4m3fn", &e4m3));
  float x[2][4] = {{1.0f, 0.3f, -2.5f, 448.0f}, {0.5f, 3.0f, 1.0f, 0.002f}};
  uint8_t codes[2][4];
  const int64_t rows[2] = {2, 4};
  const numemu_array numbers = {x, NUMEMU_FLOAT32, 2, rows, NULL};
  const numemu_array encoded = {codes, NUMEMU_UINT8, 2, rows, NULL};
  check(numemu_encode(e4m3, NULL, NULL, NULL, &numbers, &encoded, NULL, NULL));

  /* One dot: the unit is opened once, the arrays stay where they are. */
  numemu_unit* unit = NULL;
  check(numemu_unit_open("h100.wgmma.e4m3.f32", &unit));
  float sum = 0;
  const int64_t four[1] = {4}, one[1] = {1};
  const numemu_array a = {codes[0], NUMEMU_UINT8, 1, four, NULL};
  const numemu_array b = {codes[1], NUMEMU_UINT8, 1, four, NULL};
  const numemu_array d = {&sum, NUMEMU_FLOAT32, 1, one, NULL};
  numemu_product product = {.size = sizeof product};
  product.a = &a;
  product.b = &b;
  product.d = &d;
  product.dots = 1;
  check(numemu_multiply(unit, &product));
  char text[4096];
  check(numemu_trace_text(unit, &product, 0, text, sizeof text, NULL));
  printf("%g\n%s", (double)sum, text);
  numemu_unit_close(unit);
  numemu_format_close(e4m3);
  return 0;
}
