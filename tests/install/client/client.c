/* Rounds 0.3 to FP8 and prints the code and what it means. */
#include <numemu.h>
#include <stdio.h>

int main(void) {
  numemu_format* format = NULL;
  numemu_rounding* rounding = NULL;
  uint64_t code = 0;
  double value = 0;
  if (numemu_format_open("e4m3fn", &format) != NUMEMU_OK ||
      numemu_rounding_open("rne", "saturate", &rounding) != NUMEMU_OK ||
      numemu_encode_one(format, rounding, 0.3, 0, &code, NULL) != NUMEMU_OK ||
      numemu_decode_one(format, code, &value) != NUMEMU_OK) {
    fprintf(stderr, "%s\n", numemu_message());
    return 1;
  }
  numemu_rounding_close(rounding);
  numemu_format_close(format);
  printf("%s: %02x is %g\n", numemu_version(), (unsigned)code, value);
  return 0;
}
