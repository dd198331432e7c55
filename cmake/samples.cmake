# Writes samples.c: the pipeline files of cli/samples/ as strings, in the order of their names.
# cmake -DFOLDER=... -DOUT=... -P samples.cmake
file(GLOB samples ${FOLDER}/*.yaml)
set(rows)
foreach(sample ${samples})
  get_filename_component(name ${sample} NAME_WE)
  file(READ ${sample} bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(APPEND rows "    {\"${name}\", \"${bytes}\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"cli.h\"\n\nconst cli_sample cli_samples[] = {\n${rows}    {0},\n};\n")
