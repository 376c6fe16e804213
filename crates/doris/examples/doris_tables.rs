//! Writes the tables of `testdata/doris`, a small one of every key model, with the rows they have:
//!
//! ```text
//! cargo run -p pilaster-doris --example doris_tables -- testdata/doris
//! ```
//!
//! The rows come from what is loaded and from the rule of the key model, and not from reading what was written.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a program for developers"
)]

#[path = "../tests/support/key_models.rs"]
mod key_models;

use std::path::PathBuf;
use std::{env, fs};

use key_models::{MODELS, Model, Row};
use pilaster_doris::segment::SegmentWriteOptions;
use pilaster_doris::tablet::TabletWriteOptions;

const KEYS: i64 = 60;

fn lines(model: Model, rows: &[Row], with_hidden: bool) -> String {
    rows.iter().map(|row| format!("{}\n", model.json(row, with_hidden))).collect()
}

fn main() {
    let target = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "testdata/doris".into()));
    for (number, model) in (0..).zip(MODELS) {
        let folder = target.join(model.name());
        fs::create_dir_all(&folder).unwrap();
        let options = TabletWriteOptions::default()
            .with_tablet_id(10_001 + number)
            .with_table(20_001 + number, 30_001)
            .with_schema_hash(1)
            .with_tablet_uid(1, 2 + number)
            .with_creation_time(1_700_000_000)
            .with_segment_options(SegmentWriteOptions::default().with_page_bytes(256));
        model.write(&folder.join("tablet"), KEYS, &options);
        fs::write(folder.join("schema.json"), format!("{:#}\n", model.schema_json())).unwrap();
        fs::write(folder.join("rows.jsonl"), lines(model, &model.answer(KEYS), false)).unwrap();
        for (number, load) in model.loads(KEYS).iter().enumerate() {
            fs::write(folder.join(format!("load-{number}.jsonl")), lines(model, load, true)).unwrap();
        }
    }
}
