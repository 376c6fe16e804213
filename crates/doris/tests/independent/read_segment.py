#!/usr/bin/env python3
"""A second reader of Doris segments, written from the format's description alone and as plainly as can be.

    read_segment.py SEGMENT SCHEMA ROWS

Reads every cell of a segment, page after page, compares it with the row of the same number in ROWS (JSON lines in the form of
the expected rows), and prints how many cells were equal. It shares no line with the library: what the library writes must be
read here too. Codecs: none, LZ4, LZ4F, zlib. Columns of VARIANT and AGG_STATE and the row store are passed over.
Exit status: 0 all equal, 1 something differs or cannot be read.
"""
import ipaddress
import json
import struct
import sys
import zlib

BYTES_TYPES = {13: "CHAR", 17: "VARCHAR", 23: "HLL", 25: "BITMAP", 26: "STRING", 27: "QUANTILE_STATE", 34: "JSONB"}
WIDTHS = {1: 1, 3: 2, 5: 4, 7: 8, 9: 16, 2: 1, 4: 2, 6: 4, 8: 8, 10: 4, 11: 8, 14: 3, 15: 8, 16: 12, 24: 1, 28: 4, 29: 8,
          31: 4, 32: 8, 33: 16, 37: 32, 38: 4, 39: 16, 40: 8}
STRUCT, ARRAY, MAP, VARIANT, AGG_STATE = 18, 19, 20, 35, 36
PLAIN, PREFIX, RLE, DICT, SHUFFLED, FRAMES, PLAIN_V2, PLAIN_V3 = 2, 3, 4, 5, 6, 7, 8, 9


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(data):
    """The fields of a protobuf message: number -> list of integers or bytes."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            value, at = data[at:at + 4], at + 4
        fields.setdefault(key >> 3, []).append(value)
    return fields


def one(fields, number, default=None):
    return fields.get(number, [default])[-1]


def lz4_block(data, at, end, out):
    """Appends what a block decompresses to; matches may reach back into `out`."""
    while at < end:
        token = data[at]
        at += 1
        length = token >> 4
        if length == 15:
            while True:
                length += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        out += data[at:at + length]
        at += length
        if at >= end:
            return
        distance = data[at] | data[at + 1] << 8
        at += 2
        length = (token & 15) + 4
        if length == 19:
            while True:
                length += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        start = len(out) - distance
        assert distance and start >= 0, "an LZ4 match from before the beginning"
        for position in range(start, start + length):
            out.append(out[position])


def lz4_frame(data):
    assert u32(data, 0) == 0x184D2204, "no LZ4 frame"
    flags, at = data[4], 7
    if flags & 8:
        at += 8
    out = bytearray()
    while True:
        size = u32(data, at)
        at += 4
        if size == 0:
            return bytes(out)
        length = size & 0x7FFFFFFF
        if size >> 31:
            out += data[at:at + length]
        else:
            lz4_block(data, at, at + length, out)
        at += length + (4 if flags & 16 else 0)


def decompress(codec, data, size):
    if len(data) == size:
        return data
    if codec in (4, 8):
        out = bytearray()
        lz4_block(data, 0, len(data), out)
        out = bytes(out)
    elif codec == 5:
        out = lz4_frame(data)
    elif codec == 6:
        out = zlib.decompress(data)
    else:
        raise ValueError(f"codec {codec}")
    assert len(out) == size, f"{len(out)} bytes instead of {size}"
    return out


def runs(data, at, width, count):
    """Values of the RLE and bit-packed hybrid."""
    values = []
    while len(values) < count:
        head, at = varint(data, at)
        if head & 1:
            packed = int.from_bytes(data[at:at + (head >> 1) * width], "little")
            at += (head >> 1) * width
            values += [packed >> number * width & (1 << width) - 1 for number in range((head >> 1) * 8)]
        else:
            size = (width + 7) // 8
            values += [int.from_bytes(data[at:at + size], "little")] * (head >> 1)
            at += size
    return values[:count]


def shuffled(data, at):
    """Elements of bit-shuffled LZ4 blocks, as bytes each, and where they end."""
    count, total, padded, size = struct.unpack_from("<IIII", data, at)
    end, at, cells = at + total, at + 16, []
    block = max(128, 8192 // size // 8 * 8)
    while len(cells) < padded:
        elements = min(block, padded - len(cells))
        length = struct.unpack_from(">I", data, at)[0]
        out = bytearray()
        lz4_block(data, at + 4, at + 4 + length, out)
        at += 4 + length
        planes = [int.from_bytes(out[plane * elements // 8:(plane + 1) * elements // 8], "little")
                  for plane in range(size * 8)]
        for number in range(elements):
            cell = 0
            for bit, plane in enumerate(planes):
                cell |= (plane >> number & 1) << bit
            cells.append(cell.to_bytes(size, "little"))
    assert at == end, "a shuffled block of another length"
    return cells[:count]


def plain_bytes(encoding, body):
    count = u32(body, len(body) - 4)
    if encoding == PLAIN:
        start = len(body) - 4 - 4 * count
        edges = [u32(body, start + 4 * number) for number in range(count)] + [start]
        return [body[edges[number]:edges[number + 1]] for number in range(count)]
    values, at = [], 0
    if encoding == PLAIN_V2:
        for _ in range(count):
            length, at = varint(body, at)
            values.append(body[at:at + length])
            at += length
        return values
    lengths, place = [], u32(body, len(body) - 8)
    for _ in range(count):
        length, place = varint(body, place)
        lengths.append(length)
    for length in lengths:
        values.append(body[at:at + length])
        at += length
    return values


def prefixed(body):
    restarts = u32(body, len(body) - 4)
    tail = len(body) - 4 - 4 * restarts - 5
    values, last, at = [], b"", 0
    for _ in range(u32(body, tail)):
        shared, at = varint(body, at)
        length, at = varint(body, at)
        last = last[:shared] + body[at:at + length]
        at += length
        values.append(last)
    return values


def framed(body, width):
    count, size = u32(body, len(body) - 4), body[-5]
    frames = (count + size - 1) // size
    kinds = body[len(body) - 5 - 2 * frames:len(body) - 5]
    least_bytes, values, at = (4 if width <= 4 else width), [], 0
    for frame in range(frames):
        rows = min(size, count - frame * size)
        kind, bits = kinds[2 * frame], kinds[2 * frame + 1]
        least = int.from_bytes(body[at:at + least_bytes], "little")
        at += least_bytes
        packed = int.from_bytes(body[at:at + (rows * bits + 7) // 8], "big")
        unused = (rows * bits + 7) // 8 * 8 - rows * bits
        at += (rows * bits + 7) // 8
        value = least
        for number in range(rows):
            delta = packed >> unused + (rows - 1 - number) * bits & (1 << bits) - 1
            value = value + delta if kind == 1 else least + delta
            values.append((value & (1 << 8 * width) - 1).to_bytes(width, "little"))
    return values


class Segment:
    def __init__(self, data):
        self.data = data
        assert data[-4:] == b"D0R1", "no segment"
        length = u32(data, len(data) - 12)
        footer = data[len(data) - 12 - length:len(data) - 12]
        assert crc32c(footer) == u32(data, len(data) - 8), "checksum of the footer"
        footer = message(footer)
        self.rows = one(footer, 3, 0)
        if one(footer, 1, 1) == 2:
            at, self.columns = one(footer, 11), []
            for entry in map(message, footer.get(12, [])):
                self.columns.append(message(data[at:at + one(entry, 2)]))
                at += one(entry, 2)
        else:
            self.columns = [message(column) for column in footer.get(2, [])]

    def page(self, pointer, codec):
        offset, size = one(pointer, 1, 0), one(pointer, 2)
        page = self.data[offset:offset + size]
        assert crc32c(page[:-4]) == u32(page, size - 4), f"checksum of the page at {offset}"
        length = u32(page, size - 8)
        footer = message(page[size - 8 - length:size - 8])
        return decompress(codec, page[:size - 8 - length], one(footer, 2)), footer

    def pages(self, column):
        """Pointers to the data pages of a column."""
        for index in map(message, column.get(8, [])):
            if 7 in index:
                tree = message(one(message(one(index, 7)), 1))
                root = message(one(tree, 1))
                if one(tree, 2, 0):
                    return [root]
                body, footer = self.page(root, 2)
                pointers, at = [], 0
                for _ in range(one(message(one(footer, 8)), 1)):
                    length, at = varint(body, at)
                    at += length
                    offset, at = varint(body, at)
                    size, at = varint(body, at)
                    pointers.append({1: [offset], 2: [size]})
                return pointers
        return []

    def cells(self, column):
        """Every cell of a column with pages, as bytes or None."""
        codec, kind, encoding = one(column, 6, 2), one(column, 3), one(column, 5)
        words, cells = None, []
        if 9 in column:
            body, footer = self.page(message(one(column, 9)), codec)
            words = plain_bytes(one(message(one(footer, 9, b"")), 1, PLAIN), body)
        for pointer in self.pages(column):
            body, footer = self.page(pointer, codec)
            data = message(one(footer, 7))
            assert one(data, 1, 0) == len(cells), "rows of a page that do not follow those before"
            count, map_size = one(data, 2), one(data, 3, 0)
            values = self.values(body[:len(body) - map_size], kind, encoding, words)
            nulls = runs(body, len(body) - map_size, 1, count) if map_size else [0] * count
            assert len(values) >= count - sum(nulls), "fewer values than rows"
            given = iter(values)
            cells += [None if null else next(given) for null in nulls]
        return cells

    @staticmethod
    def values(body, kind, encoding, words):
        width = WIDTHS.get(kind)
        if encoding == DICT:
            inner, body = u32(body, 0), body[4:]
            if inner == DICT:
                return [words[int.from_bytes(code, "little")] for code in shuffled(body, 0)]
            return plain_bytes(inner, body)
        if encoding == PREFIX:
            return prefixed(body)
        if encoding == FRAMES:
            return framed(body, width)
        if width is None:
            return plain_bytes(encoding, body)
        if encoding == SHUFFLED:
            return shuffled(body, 0)
        if encoding == RLE:
            return [value.to_bytes(width, "little") for value in runs(body, 4, 1 if kind == 24 else 8 * width, u32(body, 0))]
        assert encoding == PLAIN, f"encoding {encoding}"
        assert len(body) == 4 + u32(body, 0) * width, "a plain page of another size"
        return [body[4 + number * width:4 + (number + 1) * width] for number in range(u32(body, 0))]

    def column(self, column, schema):
        """Every value of a column, in the form of the expected rows."""
        kind = one(column, 3)
        parts = [message(part) for part in column.get(10, [])]
        children = schema.get("children") or [{}] * len(parts)
        if kind not in (STRUCT, ARRAY, MAP):
            return [None if cell is None else value(kind, cell, column, schema) for cell in self.cells(column)]
        has_nulls = one(column, 7, 0)
        nulls = [cell != b"\0" for cell in self.cells(parts[-1])] if has_nulls else None
        if kind == STRUCT:
            fields = [self.column(part, child) for part, child in zip(parts[:len(parts) - has_nulls], children)]
            rows = [list(row) for row in zip(*fields)]
        else:
            inner = [self.column(part, child) for part, child in zip(parts, children[:1 if kind == ARRAY else 2])]
            items = inner[0] if kind == ARRAY else [list(pair) for pair in zip(*inner)]
            starts = [int.from_bytes(cell, "little") for cell in self.cells(parts[1 if kind == ARRAY else 2])]
            ends = starts[1:] + [len(items)]
            rows = [items[start:end] for start, end in zip(starts, ends)]
        return rows if nulls is None else [None if null else row for row, null in zip(rows, nulls)]


def decimal(number, scale):
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = digits[:len(digits) - scale] + ("." + digits[len(digits) - scale:] if scale else "")
    return ("-" if number < 0 else "") + text


def json_value(data, at):
    kind, at = data[at], at + 1
    if kind < 3:
        return [None, True, False][kind], at
    if kind in (3, 4, 5, 6, 12):
        size = {3: 1, 4: 2, 5: 4, 6: 8, 12: 16}[kind]
        return int.from_bytes(data[at:at + size], "little", signed=True), at + size
    if kind == 7:
        return struct.unpack_from("<d", data, at)[0], at + 8
    if kind == 13:
        return struct.unpack_from("<f", data, at)[0], at + 4
    size, at = u32(data, at), at + 4
    if kind in (8, 9):
        return data[at:at + size].decode(), at + size
    assert kind in (10, 11), f"JSONB type {kind}"
    end, values, keyed = at + size, [], {}
    while at < end:
        if kind == 10:
            length, at = data[at], at + 1
            if length == 0:
                key, at = "", at + 2
            else:
                key, at = data[at:at + length].decode(), at + length
            keyed[key], at = json_value(data, at)
        else:
            item, at = json_value(data, at)
            values.append(item)
    return (keyed if kind == 10 else values), at


def value(kind, cell, column, schema):
    number = int.from_bytes(cell, "little", signed=True)
    if kind in (1, 3, 5, 7):
        return number
    if kind == 9:
        return str(number)
    if kind == 10:
        return struct.unpack("<f", cell)[0]
    if kind == 11:
        return struct.unpack("<d", cell)[0]
    if kind == 24:
        return bool(number)
    if kind in (14, 28):
        return f"{number >> 9:04}-{number >> 5 & 15:02}-{number & 31:02}"
    if kind == 15:
        t = f"{number:014}"
        return f"{t[:4]}-{t[4:6]}-{t[6:8]} {t[8:10]}:{t[10:12]}:{t[12:]}"
    if kind in (29, 40):
        text = (f"{number >> 46:04}-{number >> 42 & 15:02}-{number >> 37 & 31:02} {number >> 32 & 31:02}"
                f":{number >> 26 & 63:02}:{number >> 20 & 63:02}")
        scale = one(column, 16, schema.get("frac", 0))
        micros = f"{number & 0xFFFFF:06}"[:scale]
        return text + ("." + micros if micros else "") + ("+00:00" if kind == 40 else "")
    if kind == 16:
        whole, fraction = struct.unpack("<qi", cell)
        return decimal(whole * 10**9 + fraction, 9)
    if kind in (31, 32, 33, 37):
        return decimal(number, one(column, 16, schema.get("frac", 0)))
    if kind == 38:
        return str(ipaddress.IPv4Address(int.from_bytes(cell, "little")))
    if kind == 39:
        return str(ipaddress.IPv6Address(int.from_bytes(cell, "little")))
    if kind == 34:
        return json_value(cell, 1)[0] if cell else None
    if kind in (23, 25, 27):
        return {"$hex": cell.hex()}
    return cell.rstrip(b"\0").decode() if kind == 13 else cell.decode()


def is_same(found, expected, kind):
    if isinstance(found, float) and isinstance(expected, (int, float)):
        if kind == 10:
            expected = struct.unpack("<f", struct.pack("<f", expected))[0]
        return found == expected or found != found and expected != expected
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(is_same(a, b, None) for a, b in zip(found, expected))
    if kind in (29, 40) and isinstance(found, str) and isinstance(expected, str):
        whole = lambda text: text.replace("+00:00", "").rstrip("0").rstrip(".") if "." in text else text.replace("+00:00", "")
        return whole(found) == whole(expected)
    return found == expected


def main():
    segment = Segment(open(sys.argv[1], "rb").read())
    schema = json.load(open(sys.argv[2]))
    rows = [json.loads(line) for line in open(sys.argv[3], encoding="utf-8")]
    assert segment.rows == len(rows), f"{segment.rows} rows instead of {len(rows)}"
    by_id = {column["unique_id"]: column for column in schema["columns"]}
    cells = passed_over = 0
    for column in segment.columns:
        declared = by_id.get(one(column, 2), None)
        if declared is None or declared["name"] not in (rows[0] if rows else {}) or one(column, 3) in (VARIANT, AGG_STATE) \
                or declared["name"] == "__DORIS_ROW_STORE_COL__":
            passed_over += 1
            continue
        found = segment.column(column, declared)
        assert len(found) == len(rows), f"{len(found)} cells of column {declared['name']} instead of {len(rows)}"
        for number, (row, cell) in enumerate(zip(rows, found)):
            if not is_same(cell, row[declared["name"]], one(column, 3)):
                sys.exit(f"{sys.argv[1]}: row {number}, {declared['name']}: {cell!r} instead of {row[declared['name']]!r}")
        cells += len(found)
    print(cells, passed_over)


if __name__ == "__main__":
    main()
