// The little of a C++ run-time library that snappy's C interface calls, so that neither libstdc++ nor libc++ is linked.
// Hidden in the module that links it.  Without memory the process ends, as it does with an exception that C code cannot
// catch.
#include <pthread.h>

#include <cstdlib>
#include <new>

void* operator new(std::size_t size) {
  void* memory = std::malloc(size ? size : 1);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" [[noreturn]] void __cxa_pure_virtual() { std::abort(); }

// Static variables of functions: one mutex for all is enough, since none is initialised while another is.
static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

extern "C" int __cxa_guard_acquire(unsigned char* done) {
  pthread_mutex_lock(&beginning);
  if (__atomic_load_n(done, __ATOMIC_ACQUIRE) == 0) return 1;
  pthread_mutex_unlock(&beginning);
  return 0;
}

extern "C" void __cxa_guard_release(unsigned char* done) {
  __atomic_store_n(done, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&beginning);
}
