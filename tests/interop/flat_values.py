"""Every flat type of Arrow with the values at its edges, and what each reader makes of them.

Values stand as Arrow stores them: integers for dates, times, timestamps and durations, bits for floats.
So every value can be compared, also the ones that Python's own types cannot hold, and NaN is told from
NaN and -0.0 from 0.0.
"""

import base64
import datetime as dt
import decimal
import struct

import pyarrow as pa

DAY = 86400
YEAR_1, YEAR_9999 = -719162, 2932896  # 0001-01-01 and 9999-12-31, in days since 1970
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
REAL = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), 0.1]
TEXT = ["", "a", "twelve bytes", "thirteen byte", "größe, naïve", "日本語 🐟", "x" * 300, '"quo,ted"', "two\nlines\r\n", "\t\\ \x01", " ", "null", "NA", "NaN"]
BLOBS = [b"", b"\x00", b"\xff" * 13, b"twelve bytes", bytes(range(256)), b"\n,\""]


def bits_of(format, values, *more):
    """Floats as the integers of their bits, and bits as they are."""
    code = {"e": "H", "f": "I", "d": "Q"}[format]
    return [struct.unpack(f"<{code}", struct.pack(f"<{format}", v))[0] for v in values] + list(more)


def integers(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    return [low, low + (1 << bits) - 1, 0, 1, low + 1, 100]


def decimals(precision, scale):
    ends = [10**precision - 1, 1 - 10**precision, 0, 1, -1, 10 ** (precision // 2)]
    return [decimal.Decimal(v).scaleb(-scale, decimal.Context(prec=100)) for v in ends]


def stamps(unit):
    """Within what the unit can hold and the years that texts have four digits for."""
    per = UNITS[unit]
    first, last = YEAR_1 * DAY * per, (YEAR_9999 * DAY + DAY - 1) * per + per - 1
    if unit == "ns":
        first, last = -(2**63) + 10**9, 2**63 - 1 - 10**9
    return [0, 1, -1, per - 1, -per, first, last, 951868799 * per]


def flat_types():
    """name -> (type, values). `_ends` columns hold what no text and few readers can."""
    made = {"bool": (pa.bool_(), [True, False, False, True])}
    for bits in (8, 16, 32, 64):
        made[f"int{bits}"] = (getattr(pa, f"int{bits}")(), integers(bits, True))
        made[f"uint{bits}"] = (getattr(pa, f"uint{bits}")(), integers(bits, False))
    made["float16"] = (pa.float16(), bits_of("e", REAL, 0x7E00, 0x0001, 0x7BFF))
    made["float32"] = (pa.float32(), bits_of("f", REAL, 0x7FC00000, 1, 0x7F7FFFFF))
    made["float64"] = (pa.float64(), bits_of("d", REAL, 0x7FF8 << 48, 1, 0x7FEFFFFFFFFFFFFF))
    for format, kind in (("f", pa.float32()), ("d", pa.float64())):
        made[f"{kind}_finite"] = (kind, bits_of(format, [0.0, -0.0, 1.5, -2.25, 0.1, 1e-30, 12345678]))
    for make, digits in ((pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76)):
        for precision, scale in ((digits, 0), (digits, digits), (digits, 2), (4, 2)):
            made[f"{make.__name__}_{precision}_{scale}"] = (make(precision, scale), decimals(precision, scale))
    days = [0, 1, -1, YEAR_1, YEAR_9999, 11016]
    made["date32"] = (pa.date32(), days)
    made["date64"] = (pa.date64(), [d * DAY * 1000 for d in days])
    made["date32_ends"] = (pa.date32(), [-(2**31), 2**31 - 1])
    for make, units in ((pa.time32, ("s", "ms")), (pa.time64, ("us", "ns"))):
        for unit in units:
            per = UNITS[unit]
            made[f"time_{unit}"] = (make(unit), [0, 1, DAY * per - 1, 43200 * per, per - 1])
    for unit in UNITS:
        made[f"timestamp_{unit}"] = (pa.timestamp(unit), stamps(unit))
        made[f"timestamp_{unit}_utc"] = (pa.timestamp(unit, "UTC"), stamps(unit))
        made[f"timestamp_{unit}_berlin"] = (pa.timestamp(unit, "Europe/Berlin"), stamps(unit))
        far = 2**63 - 1 if unit != "s" else (2**63 - 1) // 1000
        made[f"timestamp_{unit}_ends"] = (pa.timestamp(unit), [-far, far])
        made[f"duration_{unit}"] = (pa.duration(unit), [0, 1, -1, -far, far])
    for name in ("utf8", "large_utf8", "string_view"):
        made[name] = (getattr(pa, name)(), TEXT)
    for name in ("binary", "large_binary", "binary_view"):
        made[name] = (getattr(pa, name)(), BLOBS)
    for width in (1, 5, 16, 33):
        made[f"fixed_size_binary_{width}"] = (pa.binary(width), [b"\x00" * width, b"\xff" * width, bytes(range(width))])
    return made


FLAT = flat_types()
INDEXES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


def storage(kind):
    """The integer type of a value's bits, or None where Python holds the value itself."""
    if pa.types.is_floating(kind):
        return {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width]
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return None


def array(kind, values):
    bits = storage(kind)
    if pa.types.is_decimal(kind):  # pyarrow would look for a precision in all of them
        return pa.concat_arrays([pa.array([v], kind) for v in values]) if values else pa.array([], kind)
    return pa.array(values, bits).view(kind) if bits else pa.array(values, kind)


def stored(column):
    """The values of a column as FLAT has them."""
    if isinstance(column, pa.ChunkedArray):
        return [v for chunk in column.chunks for v in stored(chunk)]
    if pa.types.is_dictionary(column.type):
        known = stored(column.dictionary)
        return [None if i is None else known[i] for i in column.indices.to_pylist()]
    bits = storage(column.type)
    return (column.view(bits) if bits else column).to_pylist()


def cycle(values, n, seed):
    """n values, each of them several times where n allows, with every fifth null."""
    made = [None if (i + seed) % 5 == 4 else i - (i + seed + 1) // 5 for i in range(n)]
    return [k if k is None else values[(k * 11 + seed) % len(values)] for k in made]


def text_of(kind, value):
    """What weir documents as the text of a value in CSV, and within quotes or without in NDJSON."""
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if pa.types.is_decimal(kind):
        return f"{value:f}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_date(kind):
        return (dt.date(1970, 1, 1) + dt.timedelta(value // (DAY * 1000) if kind.bit_width == 64 else value)).isoformat()
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        per, digits = UNITS[kind.unit], {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        at = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=value // per)
        text = at.isoformat() if pa.types.is_timestamp(kind) else at.time().isoformat()
        text += f".{value % per:0{digits}d}" if digits else ""
        return text + ("Z" if pa.types.is_timestamp(kind) and kind.tz else "")
    return str(value)
