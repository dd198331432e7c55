/* SPDX-License-Identifier: Apache-2.0 */
/* Positions of the kafka source. ctest: connector kafka */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/kafka/kafka.h"

static void put(kafka_places *places, const char *topic, int32_t partition,
                kafka_stand at) {
  kafka_place *place = NULL;
  assert_int_equal(kafka_places_add(places, topic, partition, &place, NULL), WEIR_OK);
  place->at = at;
}

static kafka_places some_places(void) {
  kafka_places places = {0};
  put(&places, "orders", 2,
      (kafka_stand){.next = 7, .last = 3, .hash = 0x123456789abcdef});
  put(&places, "orders", 0, (kafka_stand){.next = 0, .last = -1});
  put(&places, "orders", 1,
      (kafka_stand){.next = INT64_MAX, .last = INT64_MAX - 1, .hash = UINT64_MAX});
  put(&places, "a", INT32_MAX, (kafka_stand){.next = 1, .last = 0, .hash = 0});
  put(&places, "orders.x", 0, (kafka_stand){.next = 200, .last = -1});
  return places;
}

static weir_bytes written(const kafka_places *places) {
  weir_bytes bytes = {0};
  assert_int_equal(kafka_position_write(places, &bytes, NULL), WEIR_OK);
  return bytes;
}

static void test_places_are_found_in_order(void **state) {
  (void)state;
  kafka_places places = some_places();
  assert_int_equal(places.n, 5);
  for (size_t i = 0; i < places.n; i++) {
    const kafka_place *place = &places.v[i];
    assert_ptr_equal(kafka_places_find(&places, place->topic, place->partition), place);
  }
  assert_null(kafka_places_find(&places, "orders", 3));
  assert_null(kafka_places_find(&places, "order", 0));
  assert_true(kafka_places_has_topic(&places, "orders.x"));
  assert_false(kafka_places_has_topic(&places, "orders."));
  kafka_places_done(&places);
}

static void test_what_is_written_is_read(void **state) {
  (void)state;
  kafka_places places = some_places(), back = {0};
  weir_bytes bytes = written(&places);
  assert_int_equal(kafka_position_read(&bytes, &back, NULL), WEIR_OK);
  assert_int_equal(back.n, places.n);
  for (size_t i = 0; i < places.n; i++) {
    assert_string_equal(back.v[i].topic, places.v[i].topic);
    assert_int_equal(back.v[i].partition, places.v[i].partition);
    assert_true(back.v[i].at.next == places.v[i].at.next);
    assert_true(back.v[i].at.last == places.v[i].at.last);
    assert_true(back.v[i].at.hash == places.v[i].at.hash);
    assert_memory_equal(&back.v[i].at, &back.v[i].ahead, sizeof(kafka_stand));
  }
  weir_bytes again = written(&back);
  assert_int_equal(again.size, bytes.size);
  assert_memory_equal(again.data, bytes.data, bytes.size);
  weir_bytes_release(&again);
  weir_bytes_release(&bytes);
  kafka_places_done(&places);
  kafka_places_done(&back);
}

static void test_damage_is_refused(void **state) {
  (void)state;
  kafka_places places = some_places(), back = {0};
  weir_bytes bytes = written(&places);
  uint8_t *copy = malloc(bytes.size);
  assert_non_null(copy);
  for (size_t i = 0; i < bytes.size; i++) {
    for (int bit = 0; bit < 8; bit++) {
      weir_bytes flipped = {.data = copy, .size = bytes.size};
      weir_error err = {0};
      memcpy(copy, bytes.data, bytes.size);
      copy[i] ^= (uint8_t)(1 << bit);
      assert_int_equal(kafka_position_read(&flipped, &back, &err), WEIR_E_CORRUPT);
      assert_true(err.message[0] != '\0');
    }
    weir_bytes cut = {.data = bytes.data, .size = i};
    assert_int_equal(kafka_position_read(&cut, &back, NULL), WEIR_E_CORRUPT);
  }
  assert_int_equal(back.n, 0);
  free(copy);
  weir_bytes_release(&bytes);
  kafka_places_done(&places);
}

static void test_described_for_people(void **state) {
  (void)state;
  kafka_places places = some_places(), many = {0};
  weir_bytes bytes = written(&places), text = {0};
  assert_int_equal(kafka_position_describe(&bytes, &text, NULL), WEIR_OK);
  static const char want[] =
      "a/2147483647 at offset 1, orders/0 at offset 0, orders/1 at offset "
      "9223372036854775807, orders/2 at offset 7, orders.x/0 at offset 200";
  assert_int_equal(text.size, strlen(want));
  assert_memory_equal(text.data, want, text.size);
  weir_bytes_release(&text);
  weir_bytes_release(&bytes);
  kafka_places_done(&places);
  for (int32_t i = 0; i < 1000; i++)
    put(&many, "orders", i, (kafka_stand){.next = i, .last = -1});
  bytes = written(&many);
  assert_int_equal(kafka_position_describe(&bytes, &text, NULL), WEIR_OK);
  assert_true(text.size > 4000 && text.size <= WEIR_MAX_POSITION_TEXT);
  assert_memory_equal(text.data + text.size - 4, " ...", 4);
  weir_bytes_release(&text);
  weir_bytes_release(&bytes);
  kafka_places_done(&many);
  weir_bytes junk = {.data = (const uint8_t *)"junk", .size = 4};
  assert_int_equal(kafka_position_describe(&junk, &text, NULL), WEIR_OK);
  assert_null(text.release);
}

static void test_too_many_partitions_say_so(void **state) {
  (void)state;
  kafka_places places = {0};
  weir_bytes bytes = {0};
  weir_error err = {0};
  for (int32_t i = 0; i < 100000; i++)
    put(&places, "orders", i, (kafka_stand){.next = 1000000, .last = 999999});
  assert_int_equal(kafka_position_write(&places, &bytes, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "100000 partitions"));
  assert_null(bytes.release);
  kafka_places_done(&places);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places_are_found_in_order),
      cmocka_unit_test(test_what_is_written_is_read),
      cmocka_unit_test(test_damage_is_refused),
      cmocka_unit_test(test_described_for_people),
      cmocka_unit_test(test_too_many_partitions_say_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
