// Whether a sanitizer stands in for the C library's allocator, so that nobody else may.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GPUC_SANITIZER_OWNS_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GPUC_SANITIZER_OWNS_MALLOC 1
#endif
