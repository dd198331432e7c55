// SPDX-License-Identifier: Apache-2.0
// The loop of push.c as C++17 has it: handles that free themselves, errors as exceptions.
#include <weir/weir.h>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

extern "C" int next_batch(uint64_t n, ArrowArray *out);  // yours; 0 = no more

struct Free {
  void operator()(weir_config *config) const {
    weir_config_free(config);
  }
  void operator()(weir_pipeline *pipeline) const {
    weir_pipeline_close(pipeline, 0, nullptr);
  }
};
using Config = std::unique_ptr<weir_config, Free>;
using Pipeline = std::unique_ptr<weir_pipeline, Free>;

struct Batch : ArrowArray {
  Batch() : ArrowArray{} {}
  Batch(const Batch &) = delete;
  ~Batch() {
    if (release) release(this);  // not pushed: it is still ours
  }
};

void check(weir_status status, const weir_error &error) {
  if (status != WEIR_OK) throw std::runtime_error(error.message);
}

// Calls a function whose last parameter is the error.
template <class F, class... Args>
void call(F function, Args... args) {
  weir_error error{};
  check(function(args..., &error), error);
}

Pipeline open_pipeline(const char *yaml) {
  weir_config *config = nullptr;
  weir_pipeline *pipeline = nullptr;
  call(weir_config_new, &config);
  Config owned(config);
  call(weir_config_read_file, config, yaml);
  call(weir_pipeline_open, config, nullptr, 0u, &pipeline);
  return Pipeline(pipeline);
}

uint64_t last_decided(weir_input *input) {
  weir_bytes at{};
  uint64_t n = 0;
  call(weir_input_position, input, &at);
  if (at.size == sizeof(n)) std::memcpy(&n, at.data, sizeof(n));
  weir_bytes_release(&at);
  return n;
}

void deliver(weir_pipeline *pipeline) {
  weir_input *input = nullptr;
  call(weir_pipeline_input, pipeline, "readings", 0u, nullptr, &input);
  uint64_t n = last_decided(input);
  bool ended = false;
  weir_event event{};
  event.struct_size = sizeof(event);
  while (true) {
    call(weir_pipeline_next, pipeline, &event, int64_t{ended ? -1 : 0});
    switch (event.type) {
      case WEIR_EVENT_BARRIER:
        weir_input_barrier(input, event.checkpoint, &n, sizeof(n), nullptr);
        break;
      case WEIR_EVENT_REWIND:
        n = last_decided(input);
        ended = false;
        break;
      case WEIR_EVENT_FAILED:
        check(event.error.code, event.error);
        break;
      case WEIR_EVENT_ENDED:
        return;
    }
    if (ended) continue;
    Batch batch;
    if (!next_batch(n, &batch)) {
      ended = weir_input_end(input, &n, sizeof(n), nullptr) == WEIR_OK;
    } else if (weir_input_push(input, &batch, 10'000'000, nullptr) == WEIR_OK) {
      n++;
    }
  }
}

int main() try {
  Pipeline pipeline = open_pipeline("push.yaml");
  deliver(pipeline.get());
  call(weir_pipeline_close, pipeline.release(), int64_t{0});
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
