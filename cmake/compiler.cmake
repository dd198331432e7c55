# Flags of every target of this project, carried by the interface target weir_options.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
# Asserts stay on in release: none of these sets NDEBUG.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")
if(WEIR_SANITIZE)
  set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
else()
  set(CMAKE_C_FLAGS_DEBUG "-Og -g3")
endif()

find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${WEIR_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WEIR_CCACHE})
endif()

add_library(weir_options INTERFACE)
target_compile_definitions(weir_options INTERFACE _GNU_SOURCE)
target_compile_options(weir_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wwrite-strings -Wformat=2 -Wundef -Wvla
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes;-Wold-style-definition>
  -fno-common -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(WEIR_FAULTS)
  target_compile_definitions(weir_options INTERFACE WEIR_FAULTS=1)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(weir_options INTERFACE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(WEIR_SANITIZE)
  target_compile_options(weir_options INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(weir_options INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_FUZZ)
  # gcc is the compiler whose warnings count; clang of whatever version finds others.
  target_compile_options(weir_options INTERFACE -Wno-error)
  # NULL + 0, which clang reports, is an empty buffer's end; gcc's check (preset asan) lets it pass.
  target_compile_options(weir_options INTERFACE -fsanitize=fuzzer-no-link -fno-sanitize=pointer-overflow)
endif()
find_package(Threads REQUIRED)
target_link_libraries(weir_options INTERFACE Threads::Threads)
