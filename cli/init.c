/* SPDX-License-Identifier: Apache-2.0 */
/* Sample pipelines on standard output. Each is a file of cli/samples/, whose first line says what it is. */
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "cli.h"

/* The first line, without "# " and its end. */
static int summary(const cli_sample *sample, const char **out) {
  *out = sample->yaml + 2;
  return (int)strcspn(*out, "\n");
}

static int print_list(void) {
  const char *text = NULL;
  for (const cli_sample *s = cli_samples; s->name; s++) {
    int size = summary(s, &text);
    printf("  %-10s %.*s\n", s->name, size, text);
  }
  fputs("\n`weir init NAME > NAME.yaml` writes one.\n", stdout);
  return EXIT_DONE;
}

/* {"samples": [{"name", "text", "yaml"}]}: all, or the one of that name. */
static int print_document(const char *only) {
  const char *text = NULL;
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = yyjson_mut_obj(doc);
  yyjson_mut_doc_set_root(doc, root);
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "samples");
  for (const cli_sample *s = cli_samples; s->name; s++) {
    if (only && strcmp(only, s->name) != 0) continue;
    int size = summary(s, &text);
    yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, entry, "name", s->name);
    yyjson_mut_obj_add_strn(doc, entry, "text", text, (size_t)size);
    yyjson_mut_obj_add_str(doc, entry, "yaml", s->yaml);
  }
  return cli_print_json(doc) ? EXIT_DONE : EXIT_FAILED;
}

int cli_init(const cli_args *args) {
  const char *names[16] = {0};
  const cli_sample *found = NULL;
  weir_error err = {0};
  for (size_t i = 0; cli_samples[i].name; i++) {
    if (i + 1 < sizeof(names) / sizeof(names[0])) names[i] = cli_samples[i].name;
    if (args->operand && strcmp(cli_samples[i].name, args->operand) == 0)
      found = &cli_samples[i];
  }
  if (args->operand && !found) {
    cli_unknown("sample", args->operand, names, "weir init", &err);
    return cli_fail(args, &err, EXIT_USAGE, false);
  }
  if (args->json) return print_document(args->operand);
  if (!found) return print_list();
  fputs(found->yaml, stdout);
  return EXIT_DONE;
}
