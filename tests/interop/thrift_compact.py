"""A decoder of Thrift's compact protocol that knows no schema: structs become {field id: value}."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def zigzag(data, at):
    value, at = varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def read_value(kind, data, at):
    if kind in (1, 2):
        return data[at] == 1, at + 1
    if kind == 3:
        return int.from_bytes(data[at : at + 1], "little", signed=True), at + 1
    if kind in (4, 5, 6):
        return zigzag(data, at)
    if kind == 8:
        size, at = varint(data, at)
        return data[at : at + size], at + size
    if kind == 9:
        head = data[at]
        at += 1
        count = head >> 4
        if count == 15:
            count, at = varint(data, at)
        items = []
        for _ in range(count):
            item, at = read_value(head & 15, data, at)
            items.append(item)
        return items, at
    assert kind == 12, kind
    return read_struct(data, at)


def read_struct(data, at=0):
    """The struct that begins at `at`, and where it ends."""
    fields, last = {}, 0
    while data[at] != 0:
        kind, delta = data[at] & 15, data[at] >> 4
        at += 1
        if delta:
            last += delta
        else:
            last, at = zigzag(data, at)
        if kind in (1, 2):
            fields[last] = kind == 1
        else:
            fields[last], at = read_value(kind, data, at)
    return fields, at + 1
