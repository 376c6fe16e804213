//! Commands that tell what files say of themselves.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

#[macro_use]
mod common;

use common::Folder;

snapshots! {
    version: ["--version"];
    help: ["--help"];
    help_of_cat: ["cat", "--help"];
    help_of_sql: ["sql", "--help"];
    help_of_convert: ["convert", "--help"];
    no_command: [] as [&str; 0];
    an_unknown_command: ["frobnicate"];
    ls_lists_what_is_there: ["ls", "."];
    ls_goes_down_and_names_problems: ["ls", "-r", "."];
    ls_as_json: ["ls", "--json", "people.csv"];
    ls_of_nothing: ["ls", "nothing"];
    schema_of_columns: ["schema", "people.parquet"];
    schema_as_json: ["schema", "--json", "people.parquet"];
    meta_of_a_file: ["meta", "people.csv"];
    meta_as_json: ["meta", "--json", "people.csv"];
    stats_of_columns: ["stats", "people.parquet"];
    stats_as_json: ["stats", "--json", "people.csv"];
    tree_of_sizes: ["tree", "people.parquet"];
    pages_of_columns: ["pages", "people.parquet"];
    pages_as_json: ["pages", "--json", "people.parquet"];
    verify_of_sound_files: ["verify", "--depth", "values", "people.parquet", "people.csv"];
    verify_in_silence: ["-q", "verify", "people.parquet"];
    verify_finds_damage: ["verify", "people.parquet", "broken"];
    verify_as_json: ["verify", "--json", "broken/cut.parquet"];
    verify_of_a_missing_file: ["verify", "nobody.parquet"];
    verify_without_checksums: ["verify", "--no-checksums", "people.parquet"];
    schema_of_a_missing_file: ["schema", "nobody.parquet"];
    meta_of_a_missing_file: ["meta", "nobody.parquet"];
    stats_of_a_missing_file: ["stats", "nobody.parquet"];
    tree_of_a_missing_file: ["tree", "nobody.parquet"];
    pages_of_a_missing_file: ["pages", "nobody.parquet"];
    head_of_a_missing_file: ["head", "nobody.parquet"];
    tail_of_a_missing_file: ["tail", "nobody.parquet"];
    sample_of_a_missing_file: ["sample", "nobody.parquet"];
    count_of_a_missing_file: ["count", "nobody.parquet"];
    tree_as_json: ["tree", "--json", "people.parquet"];
    verify_of_the_footer: ["verify", "--depth", "footer", "people.parquet", "broken"];
    salvage_of_a_missing_file: ["salvage", "nobody.parquet", "saved.parquet"];
    completions_for_fish: ["completions", "fish"];
    completions_for_an_unknown_shell: ["completions", "tcsh"];
}

#[test]
fn every_command_ends_with_the_code_of_what_happened() {
    let folder = Folder::new();
    let code = |arguments: &[&str]| folder.run(arguments).output().unwrap().status.code();
    for command in ["schema", "meta", "stats", "tree", "pages", "cat", "head", "tail", "sample", "count"] {
        let refused = folder.run(&[command, "nobody.parquet"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{command}");
        assert!(refused.stdout.is_empty(), "{command}");
        let words = String::from_utf8(refused.stderr).unwrap();
        assert!(words.starts_with("pilaster: nobody.parquet: "), "{command}: {words}");
        assert_eq!(code(&[command, "broken/cut.parquet"]), Some(1), "{command}");
        assert_eq!(code(&[command, "--no-such-option", "people.csv"]), Some(2), "{command}");
        assert_eq!(code(&[command, "people.csv"]), Some(0), "{command}");
    }
    // Behind an address that this build does not reach, nothing is known to be damaged.
    for command in ["ls", "verify", "cat"] {
        assert_eq!(code(&[command, "gopher://host/people.parquet"]), Some(2), "{command}");
    }
}

#[test]
fn completions_name_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = folder.run(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(["ls", "convert", "salvage"].iter().all(|command| script.contains(command)), "{shell}");
    }
}

#[test]
fn a_printed_schema_can_be_given_back() {
    let folder = Folder::new();
    let output = folder.run(&["schema", "--json", "people.parquet"]).output().unwrap();
    folder.write("columns.json", output.stdout);
    let output =
        folder.run(&["schema", "--schema", "columns.json", "--json", "people.csv"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), folder.read("columns.json"));
}
