# Functions that every room's CMakeLists.txt uses. Targets only; nothing here changes global flags
# except the language standard, output folders and the sanitizers of a whole build tree.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
# -g1: line tables only. Full debug information doubles build time and disk on two cores.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

set(BIMETAL_SANITIZE "" CACHE STRING "Sanitizers of the whole tree, e.g. address,undefined")
if(BIMETAL_SANITIZE)
  add_compile_options(-fsanitize=${BIMETAL_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BIMETAL_SANITIZE})
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  # A build tree inside the checkout is named by relative paths, so that another checkout finds
  # the same objects in the cache.
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${CMAKE_BINARY_DIR}" inside)
  if(inside)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
        CCACHE_NOHASHDIR=1 "${CCACHE_PROGRAM}")
  endif()
endif()
find_program(LLD_PROGRAM NAMES ld.lld-19 ld.lld)
if(LLD_PROGRAM)
  add_link_options(-fuse-ld=lld -B${CMAKE_BINARY_DIR}/linker)
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/linker")
  file(CREATE_LINK "${LLD_PROGRAM}" "${CMAKE_BINARY_DIR}/linker/ld.lld" SYMBOLIC)
endif()

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)

add_library(bimetal_warnings INTERFACE)
add_library(bimetal::warnings ALIAS bimetal_warnings)
target_compile_options(bimetal_warnings INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror
  # g++ 12 warns of overlaps inside std::string where there are none (GCC bug 105651).
  $<$<CONFIG:Release>:-Wno-restrict>)

# bimetal_library(NAME SOURCES ... [DEPS ...] [PRIVATE_DEPS ...]): a static library `bimetal::NAME`.
# Without sources it is an interface library.
function(bimetal_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(bimetal_${name} STATIC ${ARG_SOURCES})
    target_include_directories(bimetal_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(bimetal_${name} PUBLIC ${ARG_DEPS}
                          PRIVATE ${ARG_PRIVATE_DEPS} bimetal::warnings)
  else()
    add_library(bimetal_${name} INTERFACE)
    target_include_directories(bimetal_${name} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(bimetal_${name} INTERFACE ${ARG_DEPS})
  endif()
  add_library(bimetal::${name} ALIAS bimetal_${name})
endfunction()

# bimetal_program(NAME SOURCES ... [DEPS ...]): an executable in bin/.
function(bimetal_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} Threads::Threads bimetal::warnings)
endfunction()

# bimetal_test(NAME SOURCES ... [DEPS ...] [LABELS ...]): one GoogleTest program, one ctest entry.
function(bimetal_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT BIMETAL_BUILD_TESTS)
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main Threads::Threads
                        bimetal::warnings)
  # A test's own code gains nothing from the optimiser, and compiles twice as fast without it.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300
    ENVIRONMENT "BIMETAL_SOURCE_DIR=${PROJECT_SOURCE_DIR};BIMETAL_BINARY_DIR=${CMAKE_BINARY_DIR}")
endfunction()

# bimetal_proto(NAME PROTOS ... [GRPC] [DEPS ...]): generated messages (and services) as a library.
# Paths in PROTOS are relative to the repository root; headers are included as "api/x.pb.h".
function(bimetal_proto name)
  cmake_parse_arguments(ARG "GRPC" "" "PROTOS;DEPS" ${ARGN})
  set(out "${CMAKE_BINARY_DIR}/gen")
  file(MAKE_DIRECTORY "${out}")
  set(generated)
  foreach(proto IN LISTS ARG_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    set(files "${out}/${stem}.pb.cc" "${out}/${stem}.pb.h")
    set(grpc_args)
    if(ARG_GRPC)
      list(APPEND files "${out}/${stem}.grpc.pb.cc" "${out}/${stem}.grpc.pb.h")
      set(grpc_args --grpc_out=${out}
          --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
    endif()
    add_custom_command(
      OUTPUT ${files}
      COMMAND protobuf::protoc -I "${PROJECT_SOURCE_DIR}" --cpp_out=${out} ${grpc_args} "${proto}"
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      DEPENDS "${PROJECT_SOURCE_DIR}/${proto}" COMMENT "protoc ${proto}" VERBATIM)
    list(APPEND generated ${files})
  endforeach()
  add_library(bimetal_${name} STATIC ${generated})
  target_include_directories(bimetal_${name} SYSTEM PUBLIC "${out}")
  target_link_libraries(bimetal_${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_GRPC)
    target_link_libraries(bimetal_${name} PUBLIC gRPC::grpc++)
  endif()
  add_library(bimetal::${name} ALIAS bimetal_${name})
endfunction()

# bimetal_embed(OUTPUT NAMESPACE ns HEADERS h... TEXTS Function=data/file.csv...): writes a source in
# which each function returns the text of its file as a string literal, so that no program needs a
# file beside it. The HEADERS declare the functions; a changed file configures the build again.
function(bimetal_embed output)
  cmake_parse_arguments(ARG "" "NAMESPACE" "HEADERS;TEXTS" ${ARGN})
  set(content "")
  foreach(header IN LISTS ARG_HEADERS)
    string(APPEND content "#include \"${header}\"\n")
  endforeach()
  string(APPEND content "\nnamespace ${ARG_NAMESPACE} {\n")
  foreach(text IN LISTS ARG_TEXTS)
    string(REGEX MATCH "^([^=]+)=(.+)$" match "${text}")
    set(function "${CMAKE_MATCH_1}")
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_2}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" literal)
    string(APPEND content
           "std::string_view ${function}() { return R\"csv(${literal})csv\"; }\n")
  endforeach()
  string(APPEND content "}  // namespace ${ARG_NAMESPACE}\n")
  file(CONFIGURE OUTPUT "${output}" CONTENT "@content@" @ONLY)
endfunction()
