//! Addresses of Doris leave as text, and are compared as addresses in SQL and in conditions.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

mod common;

use std::sync::Arc;

use common::Table;
use common::sql::{self, answer};
use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use pilaster_core::DatasetRef;
use pilaster_core::order::Order;
use pilaster_datafusion::{RowFilter, SqlSession};

fn table() -> DatasetRef {
    let four = [
        Some("9.0.0.0"),
        Some("10.0.0.1"),
        Some("255.255.255.254"),
        None,
        Some("9.0.0.0"),
        Some("192.168.1.1"),
    ];
    let six = [Some("::1"), Some("2001:db8::1"), Some("fe80::1"), None, Some("::"), Some("::ffff:10.0.0.1")];
    let field =
        |name: &str, order: Order| Field::new(name, DataType::Utf8View, true).with_metadata(order.metadata());
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        field("ip", Order::Ipv4),
        field("six", Order::Ipv6),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(1..=6)),
        Arc::new(StringViewArray::from_iter(four)),
        Arc::new(StringViewArray::from_iter(six)),
    ];
    Arc::new(Table::new("t", RecordBatch::try_new(Arc::new(schema), columns).unwrap(), 2))
}

fn session() -> SqlSession {
    sql::session(vec![("t", table())])
}

#[test]
fn conditions_compare_addresses() {
    let (session, dataset) = (session(), table());
    for (condition, expected) in [
        ("ip > '9.0.0.0'", "2, 3, 6"),
        ("'10.0.0.1' <= ip", "2, 3, 6"),
        ("ip >= '9.0.0.0' AND ip < '10.0.0.1'", "1, 5"),
        ("ip BETWEEN '9.0.0.1' AND '192.168.1.1'", "2, 6"),
        ("ip NOT BETWEEN '9.0.0.1' AND '192.168.1.1'", "1, 3, 5"),
        ("ip = '9.0.0.0'", "1, 5"),
        ("ip <> '9.0.0.0'", "2, 3, 6"),
        ("ip IS DISTINCT FROM '9.0.0.0'", "2, 3, 4, 6"),
        ("ip IN ('9.0.0.0', '255.255.255.254')", "1, 3, 5"),
        ("ip > NULL", ""),
        ("ip LIKE '1%'", "2, 6"),
        ("six = '2001:DB8:0::1'", "2"),
        ("six IN ('0:0::0', 'FE80::1', NULL)", "3, 5"),
        ("six NOT IN ('::')", "1, 2, 3, 6"),
        ("six = '10.0.0.1'", "6"),
        ("six < '2001::'", "1, 5, 6"),
        ("coalesce(ip, '10.0.0.0') < '10.0.0.1'", "1, 4, 5"),
        ("CASE WHEN id < 3 THEN ip END > '9.0.0.0'", "2"),
        ("CASE six WHEN '0::' THEN true ELSE false END", "5"),
        ("six > ip", "2, 3"),
    ] {
        let rows = answer(&session, &format!("SELECT id FROM t WHERE {condition} ORDER BY id")).unwrap();
        assert_eq!(rows, expected, "{condition}");
        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        let count = expected.split(", ").filter(|id| !id.is_empty()).count();
        assert_eq!(found, count, "-w {condition}");
    }
    for condition in ["ip > 'abc'", "ip = ''", "ip IN ('1.2.3')", "greatest(ip, '1.2.3.4') = ip"] {
        let said = answer(&session, &format!("SELECT id FROM t WHERE {condition}")).unwrap_err().to_string();
        assert!(said.contains("address"), "{condition}: {said}");
        assert!(RowFilter::parse(condition, &dataset.schema()).is_err(), "{condition}");
    }
}

#[test]
fn addresses_are_sorted_and_grouped_in_their_order() {
    let session = session();
    for (sql, expected) in [
        ("SELECT id FROM t ORDER BY ip NULLS LAST, id", "1, 5, 2, 6, 3, 4"),
        ("SELECT id FROM t ORDER BY six DESC NULLS LAST", "3, 2, 6, 1, 5, 4"),
        ("SELECT id FROM t ORDER BY ip DESC NULLS LAST LIMIT 2", "3, 6"),
        ("SELECT min(ip), max(ip), min(six), max(six) FROM t", "9.0.0.0 255.255.255.254 :: fe80::1"),
        ("SELECT max(ip) FROM t WHERE id < 3", "10.0.0.1"),
        ("SELECT max(ip) FROM t WHERE id > 9", "NULL"),
        ("SELECT id % 2, max(ip) FROM t GROUP BY 1 ORDER BY 1", "0 192.168.1.1, 1 255.255.255.254"),
        (
            "SELECT ip, count(*) FROM t GROUP BY ip HAVING ip > '10.0.0.0' ORDER BY ip",
            "10.0.0.1 1, 192.168.1.1 1, 255.255.255.254 1",
        ),
        (
            "SELECT g FROM (SELECT id % 2 AS g, min(ip) AS least FROM t GROUP BY 1) WHERE least > '9.9.9.9'",
            "0",
        ),
        (
            "SELECT max(ip) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id",
            "9.0.0.0, 10.0.0.1, 255.255.255.254, 255.255.255.254, 9.0.0.0, 192.168.1.1",
        ),
        ("SELECT rank() OVER (ORDER BY ip) FROM t WHERE ip IS NOT NULL ORDER BY id", "1, 3, 5, 1, 4"),
        ("SELECT first_value(id ORDER BY ip DESC) FROM t WHERE ip IS NOT NULL", "3"),
        ("SELECT id FROM t WHERE ip = (SELECT max(ip) FROM t)", "3"),
        (
            "SELECT id FROM (SELECT id, coalesce(ip, '10.0.0.0') AS x FROM t) ORDER BY x, id",
            "1, 5, 4, 2, 6, 3",
        ),
        ("SELECT DISTINCT ON (id % 2) id FROM t ORDER BY id % 2, ip DESC NULLS LAST, id", "6, 3"),
        ("SELECT DISTINCT ON (ip) id FROM t ORDER BY ip NULLS LAST, id DESC", "5, 2, 6, 3, 4"),
        ("SELECT count(*) FROM t a JOIN t b ON a.ip < b.ip", "9"),
        ("SELECT a.id, b.id FROM t a JOIN t b ON a.ip = b.six", "2 6"),
        ("SELECT count(*) FROM t a JOIN t b ON a.ip = b.ip", "7"),
        (
            "SELECT ip FROM t WHERE id = 1 UNION SELECT ip FROM t WHERE id IN (2, 5) ORDER BY ip",
            "9.0.0.0, 10.0.0.1",
        ),
    ] {
        assert_eq!(answer(&session, sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
    }
}
