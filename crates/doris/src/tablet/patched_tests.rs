//! Tablets whose metadata was changed: what only releases of Doris with a history leave behind.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use pilaster_core::{Dataset, Limits};
use prost::Message;

use super::header::{NEW_HEADER_BYTES, adler32, open_header};
use super::messages::{
    DeletePredicatePb, InPredicatePb, RowsetMetaPb, SubPredicatePb, TabletMetaPb, TabletSchemaPb,
};
use super::schema_message::schema_message;
use super::{TabletOptions, TabletReader, TabletState, TabletWriteOptions, TabletWriter, find_tablets};
use crate::messages;
use crate::schema::{SchemaColumn, TabletSchema};
use crate::{KeysType, TableModel};

fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, array)| (*name, Arc::clone(array), true)),
    )
    .unwrap()
}

fn longs(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// A tablet of one rowset for each batch, in a folder of its own.
struct Written {
    folder: tempfile::TempDir,
}

impl Written {
    fn new(schema: &TabletSchema, loads: &[RecordBatch]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("tablet");
        let mut writer = TabletWriter::create(&target, schema, &TabletWriteOptions::default()).unwrap();
        for load in loads {
            writer.write(load).unwrap();
            writer.finish_rowset().unwrap();
        }
        writer.finish().unwrap();
        Self { folder }
    }

    fn target(&self) -> std::path::PathBuf {
        self.folder.path().join("tablet")
    }

    fn patch(&self, patch: impl FnOnce(&mut TabletMetaPb)) {
        let header = self.target().join("10001/1/10001.hdr");
        let mut message = message_of(&header);
        patch(&mut message);
        std::fs::write(header, header_of(&message)).unwrap();
    }

    fn open(&self, options: &TabletOptions) -> pilaster_core::Result<TabletReader> {
        let found = find_tablets(self.target(), &Limits::default()).unwrap();
        TabletReader::open(&found.tablets[0], options)
    }

    fn rows(&self, as_of: Option<i64>) -> RecordBatch {
        let tablet = self.open(&TabletOptions::default().with_as_of(as_of)).unwrap();
        concat_batches(&tablet.schema(), &pilaster_testing::batches(tablet.scan()).unwrap()).unwrap()
    }

    fn longs(&self, column: &str) -> Vec<Option<i64>> {
        self.rows(None).column_by_name(column).unwrap().as_primitive::<Int64Type>().iter().collect()
    }
}

fn message_of(header: &Path) -> TabletMetaPb {
    let bytes = std::fs::read(header).unwrap();
    messages::parse(open_header(&bytes).unwrap(), "TabletMetaPB").unwrap()
}

fn header_of(message: &TabletMetaPb) -> Vec<u8> {
    let message = message.encode_to_vec();
    let length = message.len() as u64;
    let mut file = [0u64.to_le_bytes().as_slice(), &1u32.to_le_bytes()].concat();
    file.extend((length + NEW_HEADER_BYTES as u64).to_le_bytes());
    file.extend(0u32.to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(adler32(&message).to_le_bytes());
    file.extend(0u32.to_le_bytes());
    file.extend(message);
    file
}

/// A column that was added later, of type BIGINT.
fn added(name: &str, unique_id: i32, default_value: &str) -> SchemaColumn {
    SchemaColumn {
        unique_id,
        name: name.to_string(),
        type_name: "BIGINT".to_string(),
        is_nullable: true,
        default_value: Some(default_value.to_string()),
        length: 8,
        index_length: 8,
        visible: true,
        ..SchemaColumn::default()
    }
}

fn versioned(schema: &TabletSchema, version: i32) -> TabletSchemaPb {
    TabletSchemaPb { schema_version: Some(version), ..schema_message(schema) }
}

#[test]
fn the_newest_schema_of_the_rowsets_is_read() {
    let first = batch(&[("k", longs(&[1])), ("v", longs(&[10]))]);
    let schema = TabletSchema::from_arrow(&first.schema(), &TableModel::duplicate(["k"])).unwrap();
    let tablet = Written::new(&schema, &[first, batch(&[("k", longs(&[2])), ("v", longs(&[20]))])]);
    // A light schema change: "w" is added, "v" renamed. Only what is loaded afterwards knows of it.
    let mut newer = schema.clone();
    newer.columns[1].name = "renamed".to_string();
    newer.columns.push(added("w", 7, "70"));
    tablet.patch(|meta| {
        let last = meta.rs_metas.last_mut().unwrap();
        last.tablet_schema = Some(versioned(&newer, 1));
    });
    assert_eq!(tablet.longs("renamed"), [Some(10), Some(20)]);
    assert_eq!(tablet.longs("w"), [Some(70), Some(70)]);
    // Versions are of rows: an earlier one is seen through the same schema, as Doris answers it.
    let earlier = tablet.rows(Some(2));
    assert_eq!(earlier.num_rows(), 1);
    assert!(earlier.column_by_name("w").is_some());
    let meta = tablet.open(&TabletOptions::default()).unwrap();
    assert_eq!(meta.meta().schema_version, 1);

    // One that is dropped is not shown, though the first rowset still has it.
    let mut without = schema.clone();
    without.columns.remove(1);
    tablet.patch(|meta| meta.rs_metas.last_mut().unwrap().tablet_schema = Some(versioned(&without, 2)));
    assert_eq!(tablet.rows(None).schema().fields().len(), 1);

    // The tablet's own counts where it is the newest.
    tablet.patch(|meta| meta.schema = Some(versioned(&newer, 3)));
    assert!(tablet.rows(None).column_by_name("renamed").is_some());
}

#[test]
fn paths_of_a_variant_in_the_schema_of_a_rowset_are_no_columns() {
    let first = batch(&[("k", longs(&[1])), ("v", longs(&[10]))]);
    let schema = TabletSchema::from_arrow(&first.schema(), &TableModel::duplicate(["k"])).unwrap();
    let tablet = Written::new(&schema, &[first]);
    tablet.patch(|meta| {
        let mut wide = versioned(&schema, 1);
        let mut path = wide.column[1].clone();
        path.unique_id = Some(-1);
        path.name = Some("v.a".to_string());
        path.column_path_info =
            Some(messages::PathInfoPb { parent_unique_id: Some(1), ..Default::default() });
        wide.column.push(path);
        meta.rs_metas.last_mut().unwrap().tablet_schema = Some(wide);
    });
    assert_eq!(tablet.rows(None).schema().fields().len(), 2);
}

#[test]
fn replaced_rowsets_of_a_merge_on_write_table_are_not_gone_back_to() {
    let load = |keys: &[i64]| batch(&[("k", longs(keys)), ("v", longs(keys))]);
    for merge_on_write in [true, false] {
        let model = TableModel::unique(["k"]).with_merge_on_write(merge_on_write);
        let first = load(&[1, 2]);
        let schema = TabletSchema::from_arrow(&first.schema(), &model).unwrap();
        let tablet = Written::new(&schema, &[first, load(&[2, 3])]);
        // Version 2 is on disk only as a rowset that a compaction replaced, without the marks of its replaced rows.
        tablet.patch(|meta| {
            let mut compacted = meta.rs_metas[2].clone();
            compacted.start_version = Some(2);
            let replaced = meta.rs_metas.split_off(1);
            meta.rs_metas.push(compacted);
            meta.stale_rs_metas = replaced;
            meta.delete_bitmap = None;
        });
        let earlier = tablet.open(&TabletOptions::default().with_as_of(Some(2)));
        assert_eq!(earlier.is_ok(), !merge_on_write);
    }
}

#[test]
fn the_state_of_a_tablet_is_read() {
    let first = batch(&[("k", longs(&[1]))]);
    let schema = TabletSchema::from_arrow(&first.schema(), &TableModel::duplicate(["k"])).unwrap();
    let tablet = Written::new(&schema, &[first]);
    for (number, state) in [
        (None, TabletState::Running),
        (Some(0), TabletState::NotReady),
        (Some(1), TabletState::Running),
        (Some(4), TabletState::Shutdown),
    ] {
        tablet.patch(|meta| meta.tablet_state = number);
        assert_eq!(tablet.open(&TabletOptions::default()).unwrap().meta().state, state);
    }
    tablet.patch(|meta| meta.tablet_state = Some(5));
    assert!(tablet.open(&TabletOptions::default()).is_err());
}

#[test]
fn rows_that_are_one_by_key_need_a_key() {
    let load = batch(&[("k", longs(&[1, 2]))]);
    let schema = TabletSchema::from_arrow(&load.schema(), &TableModel::unique(["k"])).unwrap();
    let tablet = Written::new(&schema, &[load.clone(), load]);
    tablet.patch(|meta| {
        let of_rowsets = meta.rs_metas.iter_mut().filter_map(|rowset| rowset.tablet_schema.as_mut());
        for column in of_rowsets.chain(meta.schema.as_mut()).flat_map(|schema| &mut schema.column) {
            column.is_key = Some(false);
        }
    });
    let error = tablet.open(&TabletOptions::default()).unwrap_err().to_string();
    assert!(error.contains("expected a key column in a table of model Unique, found none"), "{error}");
}

/// The rowset of a DELETE statement, newer than all others.
fn delete(meta: &mut TabletMetaPb, predicate: DeletePredicatePb) {
    let last = meta.rs_metas.last().unwrap().clone();
    let version = last.end_version.unwrap() + 1;
    meta.rs_metas.push(RowsetMetaPb {
        start_version: Some(version),
        end_version: Some(version),
        num_segments: Some(0),
        num_rows: Some(0),
        num_segment_rows: Vec::new(),
        segments_key_bounds: Vec::new(),
        rowset_id_v2: Some(format!("02{:046x}", version)),
        delete_predicate: Some(predicate),
        ..last
    });
}

fn condition(column: &str, op: &str, value: &str) -> DeletePredicatePb {
    let condition = SubPredicatePb {
        column_unique_id: None,
        column_name: Some(column.to_string()),
        op: Some(op.to_string()),
        cond_value: Some(value.to_string()),
    };
    DeletePredicatePb { sub_predicates_v2: vec![condition], ..DeletePredicatePb::default() }
}

/// A table of each column type: the key is the number of the row.
fn typed(type_name: &str, precision: i32, frac: i32, values: &[Option<&str>]) -> Written {
    let keys: Vec<i64> = (0..values.len() as i64).collect();
    let column = |name: &str, type_name: &str, is_key: bool| SchemaColumn {
        unique_id: i32::from(!is_key),
        name: name.to_string(),
        type_name: type_name.to_string(),
        is_key,
        is_nullable: !is_key,
        length: 20,
        index_length: 8,
        precision,
        frac,
        visible: true,
        ..SchemaColumn::default()
    };
    let schema = TabletSchema {
        keys_type: KeysType::Duplicate,
        columns: vec![column("k", "BIGINT", true), column("v", type_name, false)],
        num_short_key_columns: 1,
        ..TabletSchema::default()
    };
    let texts: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
    let wanted = crate::segment::schema_type(&schema.columns[1]).unwrap();
    let values = arrow_cast::cast(&texts, &wanted).unwrap();
    assert_eq!(values.null_count(), texts.null_count(), "{type_name}");
    let rows =
        RecordBatch::try_from_iter_with_nullable([("k", longs(&keys), false), ("v", values, true)]).unwrap();
    Written::new(&schema, &[rows])
}

/// A type, values of it, and conditions with the rows that are left.
type Case<'a> = (&'a str, i32, i32, &'a [Option<&'a str>], &'a [Condition<'a>]);
/// Operator, value, and the rows that are left.
type Condition<'a> = (&'a str, &'a str, &'a [i64]);

fn left(tablet: &Written, predicate: DeletePredicatePb) -> Vec<i64> {
    let header = tablet.target().join("10001/1/10001.hdr");
    let before = std::fs::read(&header).unwrap();
    tablet.patch(|meta| delete(meta, predicate));
    let keys = tablet.longs("k").into_iter().flatten().collect();
    std::fs::write(header, before).unwrap();
    keys
}

#[test]
fn conditions_compare_by_the_type_of_their_column() {
    let integers = [Some("-3"), Some("0"), Some("9"), None, Some("10")];
    let addresses = [Some("10.20.30.40"), Some("9.0.0.1"), Some("8.8.8.8"), None];
    let addresses_v6 = [Some("::a"), Some("::9"), Some("2001:db8::1"), None];
    let dates = [Some("0999-12-31"), Some("2024-02-29"), Some("2024-03-01"), None];
    let times = [Some("2024-02-29T10:11:12"), Some("2024-02-29T10:11:13"), None];
    let decimals = [Some("-1.50"), Some("0.01"), Some("2.50"), None];
    let booleans = [Some("true"), Some("false"), None];
    let texts = [Some("a"), Some("ab"), Some("b"), None];
    let cases: &[Case<'_>] = &[
        (
            "TINYINT",
            0,
            0,
            &integers,
            &[("<<", "9", &[2, 3, 4]), ("<<", "99999999999", &[3]), ("=", "300", &[0, 1, 2, 3, 4])],
        ),
        (
            "INT",
            0,
            0,
            &integers,
            &[(">>", "-99999999999", &[3]), ("!=", "9", &[2, 3]), ("!=", "99999999999", &[3])],
        ),
        ("BIGINT", 0, 0, &integers, &[(">=", "10", &[0, 1, 2, 3]), ("<=", "9223372036854775808", &[3])]),
        (
            "LARGEINT",
            0,
            0,
            &integers,
            &[
                ("<<", "9", &[2, 3, 4]),
                (">>", "1000000000000000000000000000000000000000000", &[0, 1, 2, 3, 4]),
            ],
        ),
        (
            "DECIMAL32",
            9,
            2,
            &decimals,
            &[("=", "0.0100", &[0, 2, 3]), ("=", "0.014", &[0, 1, 2, 3]), ("<<", "0.014", &[2, 3])],
        ),
        ("DECIMAL128I", 38, 2, &decimals, &[(">=", "2.5", &[0, 1, 3]), (">>", "-1.505", &[3])]),
        ("DECIMAL256", 76, 2, &decimals, &[("<=", "-1.5", &[1, 2, 3])]),
        ("DECIMALV2", 27, 9, &decimals, &[("=", "0.01", &[0, 2, 3])]),
        (
            "DATEV2",
            0,
            0,
            &dates,
            &[("<<", "2024-02-29", &[1, 2, 3]), ("=", "2024-02-29 10:00:00", &[0, 2, 3])],
        ),
        ("DATE", 0, 0, &dates, &[(">=", "2024-02-29", &[0, 3])]),
        (
            "DATETIMEV2",
            0,
            6,
            &times,
            &[("=", "2024-02-29 10:11:12.000000", &[1, 2]), (">>", "2024-02-29", &[2])],
        ),
        ("DATETIME", 0, 0, &times, &[("<=", "2024-02-29 10:11:12", &[1, 2])]),
        ("BOOLEAN", 0, 0, &booleans, &[("=", "1", &[1, 2]), ("=", "false", &[0, 2])]),
        (
            "VARCHAR",
            0,
            0,
            &texts,
            &[
                ("=", "ab", &[0, 2, 3]),
                (">>", "a", &[0, 3]),
                ("is", "null", &[0, 1, 2]),
                ("IS", "NOT NULL", &[3]),
            ],
        ),
        ("CHAR", 0, 0, &texts, &[("=", "ab\0\0", &[0, 2, 3]), ("<=", "ab", &[2, 3])]),
        (
            "IPV4",
            0,
            0,
            &addresses,
            &[
                ("<<", "9.0.0.0", &[0, 1, 3]),
                (">=", "9.0.0.1", &[2, 3]),
                ("=", "8.8.8.8", &[0, 1, 3]),
                ("!=", "8.8.8.8", &[2, 3]),
            ],
        ),
        ("IPV6", 0, 0, &addresses_v6, &[(">>", "::0009", &[1, 3]), ("=", "0:0:0::a", &[1, 2, 3])]),
    ];
    for (type_name, precision, frac, values, conditions) in cases {
        let tablet = typed(type_name, *precision, *frac, values);
        for (op, value, expected) in *conditions {
            assert_eq!(left(&tablet, condition("v", op, value)), *expected, "{type_name} {op} {value}");
            if *op != "is" && *op != "IS" {
                let text = DeletePredicatePb {
                    sub_predicates: vec![format!("v{op}'{value}'")],
                    ..DeletePredicatePb::default()
                };
                assert_eq!(left(&tablet, text), *expected, "{type_name} {op} {value} as text");
            }
        }
        let listed = |is_not_in: bool| {
            let values = [values[0], values[1]].into_iter().flatten().map(|text| text.replace('T', " "));
            let condition = InPredicatePb {
                column_name: Some("v".to_string()),
                is_not_in: Some(is_not_in),
                values: values.collect(),
                column_unique_id: None,
            };
            DeletePredicatePb { in_predicates: vec![condition], ..DeletePredicatePb::default() }
        };
        let null = values.iter().position(Option::is_none).unwrap() as i64;
        assert_eq!(left(&tablet, listed(true)), [0, 1, null], "{type_name} NOT IN");
        let expected: Vec<_> = (2..values.len() as i64).collect();
        assert_eq!(left(&tablet, listed(false)), expected, "{type_name} IN");
    }
    // Quotes and blanks of a value in parts are its own.
    let quoted = typed("VARCHAR", 0, 0, &[Some("'a'"), Some("a"), Some(" a"), Some("")]);
    for (value, expected) in [("'a'", [1, 2, 3]), ("a", [0, 2, 3]), (" a", [0, 1, 3]), ("", [0, 1, 2])] {
        assert_eq!(left(&quoted, condition("v", "=", value)), expected, "{value:?}");
    }
    let number = typed("INT", 0, 0, &integers);
    number.patch(|meta| delete(meta, condition("v", "=", "nine")));
    let error = number.open(&TabletOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a value of type INT in a delete predicate"), "{error}");
}

#[test]
fn a_condition_names_the_column_of_its_time() {
    let first = batch(&[("k", longs(&[1, 2])), ("v", longs(&[10, 20]))]);
    let schema = TabletSchema::from_arrow(&first.schema(), &TableModel::duplicate(["k"])).unwrap();
    let tablet = Written::new(&schema, &[first]);
    // "v" was dropped after the statement, and another column of the name was added.
    let mut newer = schema.clone();
    newer.columns[1] = added("v", 9, "10");
    tablet.patch(|meta| {
        delete(meta, condition("v", "=", "20"));
        meta.rs_metas.last_mut().unwrap().tablet_schema = Some(versioned(&schema, 0));
        meta.schema = Some(versioned(&newer, 1));
    });
    assert_eq!(tablet.longs("k"), [Some(1)]);
    assert_eq!(tablet.longs("v"), [Some(10)]);
}
