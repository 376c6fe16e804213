//! The list of elements as a tree.

use std::ops::Range;

use pilaster_encoding::Result;

use super::bad_schema;
use crate::metadata::{PhysicalType, Repetition, SchemaElement};

/// Deepest nesting of groups.
const MAX_DEPTH: usize = 64;
/// Most elements of a schema.
const MAX_ELEMENTS: usize = 100_000;

/// A node with its levels.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub element: SchemaElement,
    pub children: Vec<Node>,
    /// OPTIONAL and REPEATED nodes on the path, this one included.
    pub max_def: u8,
    /// REPEATED nodes on the path, this one included.
    pub max_rep: u8,
    /// The leaves below, by number.
    pub leaves: Range<usize>,
}

/// A column of the file.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub element: SchemaElement,
    pub physical_type: PhysicalType,
    pub path: Vec<String>,
    pub max_def: u8,
    pub max_rep: u8,
}

impl Leaf {
    /// Whether levels are null bits: 1 for a missing value.
    pub fn is_flat_optional(&self) -> bool {
        self.max_def == 1 && self.max_rep == 0
    }

    /// Its path in one word.
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

impl Node {
    /// Builds the tree of `elements`, of which the first is the root.
    pub fn build(elements: &[SchemaElement]) -> Result<Self> {
        if elements.len() > MAX_ELEMENTS {
            return Err(bad_schema(
                format!("at most {MAX_ELEMENTS} schema elements"),
                elements.len().to_string(),
            ));
        }
        let Some(root) = elements.first() else {
            return Err(bad_schema("a root element", "no schema elements"));
        };
        if root.repetition.is_some() || root.physical_type.is_some() {
            return Err(bad_schema("a root without type and repetition", "one with"));
        }
        let mut builder = Builder { elements, reached: vec![false; elements.len()], leaves: 0 };
        let tree = builder.node(0, 0, 0, 0)?;
        match builder.reached.iter().position(|reached| !reached) {
            Some(number) => Err(bad_schema(
                "every schema element reached from the root",
                format!("element {number} apart"),
            )),
            None => Ok(tree),
        }
    }

    /// Appends the leaves below, in order.
    pub fn collect_leaves(&self, path: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
        if let Some(physical_type) = self.element.physical_type {
            leaves.push(Leaf {
                element: self.element.clone(),
                physical_type,
                path: path.clone(),
                max_def: self.max_def,
                max_rep: self.max_rep,
            });
        }
        for child in &self.children {
            path.push(child.element.name.clone());
            child.collect_leaves(path, leaves);
            path.pop();
        }
    }

    pub fn is(&self, repetition: Repetition) -> bool {
        self.element.repetition == Some(repetition)
    }
}

struct Builder<'a> {
    elements: &'a [SchemaElement],
    reached: Vec<bool>,
    leaves: usize,
}

impl Builder<'_> {
    fn node(&mut self, number: usize, depth: usize, parent_def: u8, parent_rep: u8) -> Result<Node> {
        let out_of_range =
            || bad_schema(format!("a child below {}", self.elements.len()), number.to_string());
        let element = self.elements.get(number).ok_or_else(out_of_range)?;
        match self.reached.get_mut(number) {
            Some(reached) if !*reached => *reached = true,
            _ => {
                return Err(bad_schema(
                    "every schema element reached once",
                    format!("element {number} twice"),
                ));
            }
        }
        if depth > MAX_DEPTH {
            return Err(bad_schema(format!("a schema of at most {MAX_DEPTH} levels"), "a deeper one"));
        }
        let (mut max_def, mut max_rep) = (parent_def, parent_rep);
        match element.repetition {
            Some(Repetition::Optional) => max_def = max_def.saturating_add(1),
            Some(Repetition::Repeated) => {
                max_def = max_def.saturating_add(1);
                max_rep = max_rep.saturating_add(1);
            }
            Some(Repetition::Required) => {}
            None if depth == 0 => {}
            None => return Err(bad_schema("a repetition", format!("none for \"{}\"", element.name))),
        }
        let first_leaf = self.leaves;
        let mut children = Vec::new();
        match (&element.children, element.physical_type) {
            (Some(numbers), None) => {
                if numbers.is_empty() && depth > 0 {
                    return Err(bad_schema("a group with children", format!("none in \"{}\"", element.name)));
                }
                for number in numbers {
                    let number = usize::try_from(*number)
                        .map_err(|_| bad_schema("a child of 0 or more", number.to_string()))?;
                    children.push(self.node(number, depth.saturating_add(1), max_def, max_rep)?);
                }
            }
            (None, Some(_)) if depth > 0 => self.leaves = self.leaves.saturating_add(1),
            // An empty list of children may not be written at all.
            (None, None) if depth == 0 => {}
            _ => {
                return Err(bad_schema(
                    "either a type or children",
                    format!("both or none for \"{}\"", element.name),
                ));
            }
        }
        Ok(Node { element: element.clone(), children, max_def, max_rep, leaves: first_leaf..self.leaves })
    }
}
