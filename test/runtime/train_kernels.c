// A model small enough to be checked by eye, as the compiler would make its kernels: linear regression of
// labels on 16 pixels, by SGD with momentum. Operands are what a kernel reads, then what it writes.
#include <math.h>
#include <stdint.h>

enum { kPixels = 16 };

static float predictLabel(const uint8_t* pixels, const float* weight) {
  float sum = 0;
  for (int i = 0; i < kPixels; ++i) sum += weight[i] * ((float)pixels[i] / 255.0f);
  return sum;
}

// reads  x (B, 16) ui8, labels (B) i32, rows i32, seed i64, step i64, weight (16) f32, momentum (16) f32
// writes weight, momentum, step, loss_sum f32, count f32, lr f32, grad_norm f32
void train_step(void* const* operands, int64_t begin, int64_t end) {
  const uint8_t* x = operands[0];
  const int32_t* labels = operands[1];
  int32_t rows = *(const int32_t*)operands[2];
  int64_t seed = *(const int64_t*)operands[3], step = *(const int64_t*)operands[4];
  float *weight = operands[7], *momentum = operands[8];
  float gradient[kPixels] = {0}, loss = 0, square = 0;
  // Stands for dropout: what a step does depends on seed and step.
  float noise = 1.0f + 0.01f * (float)((seed * 31 + step * 17) % 7);
  float lr = 0.01f / (1.0f + 0.001f * (float)step);
  for (int32_t row = 0; row < rows; ++row) {
    float difference = predictLabel(x + row * kPixels, weight) - (float)labels[row];
    loss += difference * difference;
    for (int i = 0; i < kPixels; ++i)
      gradient[i] += 2.0f * difference * noise * ((float)x[row * kPixels + i] / 255.0f) / (float)rows;
  }
  for (int i = 0; i < kPixels; ++i) {
    square += gradient[i] * gradient[i];
    momentum[i] = 0.9f * momentum[i] + gradient[i];
    weight[i] -= lr * momentum[i];
  }
  *(int64_t*)operands[9] = step + 1;
  *(float*)operands[10] = loss;
  *(float*)operands[11] = (float)rows;
  *(float*)operands[12] = lr;
  *(float*)operands[13] = sqrtf(square);
}

// reads  x, labels, rows, weight
// writes loss_sum f32, count f32, correct f32, correct_count f32
void eval_step(void* const* operands, int64_t begin, int64_t end) {
  const uint8_t* x = operands[0];
  const int32_t* labels = operands[1];
  int32_t rows = *(const int32_t*)operands[2];
  const float* weight = operands[3];
  float loss = 0, correct = 0;
  for (int32_t row = 0; row < rows; ++row) {
    float difference = predictLabel(x + row * kPixels, weight) - (float)labels[row];
    loss += difference * difference;
    correct += fabsf(difference) < 0.5f ? 1.0f : 0.0f;
  }
  *(float*)operands[4] = loss;
  *(float*)operands[5] = (float)rows;
  *(float*)operands[6] = correct;
  *(float*)operands[7] = (float)rows;
}
