"""Values that DuckDB has no type for, or none that orders them as we do: decimals of more than 38 digits, and addresses.

DuckDB gets them as texts that are in their order, so that it compares, sorts, groups and joins them. Answers are brought back to the
values before they are compared.
"""

import ipaddress
from decimal import Decimal

DECIMAL, IPV4, IPV6 = "~decimal ", "~ipv4 ", "~ipv6 "
# More than any number has, of which none is negative then.
OFFSET = 10**80
KINDS = ("wide_decimal", "largeint", "ipv4", "ipv6")


def of(kind, value, scale=0):
    """The text of a value of one of these kinds."""
    if value is None:
        return None
    if kind in ("wide_decimal", "largeint"):
        return f"{DECIMAL}{scale} {int(value.scaleb(scale)) + OFFSET:081}"
    if kind == "ipv4":
        return f"{IPV4}{int(ipaddress.IPv4Address(value)):08x}"
    return f"{IPV6}{int(ipaddress.IPv6Address(value)):032x}"


def value_of(text):
    """The value of such a text; any other text as it is."""
    if text is None or not text.startswith("~"):
        return text
    if text.startswith(DECIMAL):
        scale, digits = text.removeprefix(DECIMAL).split(" ")
        return Decimal(int(digits) - OFFSET).scaleb(-int(scale))
    if text.startswith(IPV4):
        return str(ipaddress.IPv4Address(int(text.removeprefix(IPV4), 16)))
    if text.startswith(IPV6):
        return ipv6_text(int(text.removeprefix(IPV6), 16))
    return text


def ipv6_text(number):
    """The usual text; addresses of version 4 inside of version 6 keep their dots."""
    address = ipaddress.IPv6Address(number)
    return f"::ffff:{address.ipv4_mapped}" if address.ipv4_mapped else str(address)
