//! Which tests are ignored is decided when they are compiled, and must still be right when they run.

use std::collections::BTreeSet;

#[test]
fn no_golden_files_came_since_the_tests_were_compiled() {
    let folder = pilaster_testing::goldens_folder();
    let compiled: BTreeSet<&str> = pilaster_testing::GOLDENS_WHEN_COMPILED.iter().copied().collect();
    for entry in std::fs::read_dir(&folder).into_iter().flatten() {
        let name = entry.unwrap().file_name();
        assert!(
            name.to_str().is_some_and(|name| compiled.contains(name)),
            "{} is there now, and tests that need it may be compiled as ignored: touch crates/testing-macros/src/lib.rs",
            folder.join(&name).display()
        );
    }
}
