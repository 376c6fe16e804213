//! What Arrow makes of the schema tree.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, UnionFields, UnionMode};
use pilaster_encoding::Result;

use super::leaf::data_type;
use super::tree::Node;
use super::{bad_schema, key_value_map};
use crate::metadata::{ConvertedType, LogicalType, Repetition, kind};

/// A field of the Arrow schema, at any depth, with where its levels are.
///
/// An entry of a leaf stands for a slot of this field if its repetition level is at most [`Shape::rep`] and its definition
/// level at least [`Shape::slot_def`]; the slot has a value if the definition level is at least [`Shape::def`].
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub field: FieldRef,
    pub kind: Kind,
    pub rep: u8,
    pub slot_def: u8,
    pub def: u8,
    /// The columns of the file below it.
    pub leaves: Range<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// The column of that number.
    Leaf,
    Struct(Vec<Shape>),
    List(ListKind, Box<Shape>),
    /// The shape of the entries, and whether they are sorted.
    Map(Box<Shape>, bool),
    Union(Box<UnionShape>),
    /// The values of a dictionary.
    Dictionary(Box<Shape>),
    /// The values of runs.
    Runs(Box<Shape>),
}

/// A union: one column says which child has the value.
#[derive(Debug, Clone)]
pub(crate) struct UnionShape {
    pub mode: UnionMode,
    pub fields: UnionFields,
    /// The column of type ids.
    pub selector: Shape,
    pub children: Vec<Shape>,
}

/// The lists of Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Small,
    Large,
    View,
    LargeView,
    Fixed(i32),
}

/// The slots a node lies in.
#[derive(Debug, Clone, Copy, Default)]
struct Slots {
    /// Definition level from which a slot exists.
    def: u8,
}

impl Shape {
    /// The shape of a child of the root.
    pub fn of_field(node: &Node) -> Result<Self> {
        Self::of(node, Slots::default())
    }

    /// The shape of a node among the fields of a group.
    fn of(node: &Node, slots: Slots) -> Result<Self> {
        if !node.is(Repetition::Repeated) {
            return Self::of_one(node, slots);
        }
        // Repeated without a list around it: a list that is never null, of elements that never are.
        let element = Self::of_one(node, Slots { def: node.max_def })?;
        let data_type = DataType::List(Arc::clone(&element.field));
        let field = Field::new(&node.element.name, data_type, false);
        Ok(Self {
            field: Arc::new(field),
            kind: Kind::List(ListKind::Small, Box::new(element)),
            rep: node.max_rep.saturating_sub(1),
            slot_def: slots.def,
            // Never null: wherever the slot exists.
            def: slots.def.max(node.max_def.saturating_sub(1)),
            leaves: node.leaves.clone(),
        })
    }

    /// The shape of one occurrence of a node.
    fn of_one(node: &Node, slots: Slots) -> Result<Self> {
        let logical = node.element.logical_type.as_ref();
        let (data_type, kind) = match node.element.physical_type {
            Some(physical) => (data_type(&node.element, physical)?, Kind::Leaf),
            None => Self::of_group(node, slots)?,
        };
        let bare = Self {
            field: Arc::new(Field::new(&node.element.name, data_type, node.is(Repetition::Optional))),
            kind,
            rep: node.max_rep,
            slot_def: slots.def,
            def: node.max_def,
            leaves: node.leaves.clone(),
        };
        let mut shape = match logical {
            Some(logical) => bare.wrapped(logical)?,
            None => bare,
        };
        if let Some(pairs) = &node.element.key_values {
            let field = shape.field.as_ref().clone().with_metadata(key_value_map(pairs));
            shape.field = Arc::new(field);
        }
        Ok(shape)
    }

    /// A dictionary or runs of this, if the logical type says so.
    fn wrapped(self, logical: &LogicalType) -> Result<Self> {
        let is_nullable = self.field.is_nullable();
        let name = self.field.name().clone();
        let (field, kind) = if let Some(width) = logical.dict_index_width {
            let key = match (width, logical.dict_index_signed.unwrap_or(false)) {
                (8, true) => DataType::Int8,
                (8, false) => DataType::UInt8,
                (16, true) => DataType::Int16,
                (16, false) => DataType::UInt16,
                (32, true) => DataType::Int32,
                (32, false) => DataType::UInt32,
                (64, true) => DataType::Int64,
                (64, false) => DataType::UInt64,
                (other, _) => {
                    return Err(bad_schema("a dictionary index of 8, 16, 32 or 64 bits", other.to_string()));
                }
            };
            let data_type = DataType::Dictionary(Box::new(key), Box::new(self.field.data_type().clone()));
            let field = Field::new(name, data_type, is_nullable)
                .with_dict_is_ordered(logical.dict_ordered.unwrap_or(false));
            (field, Kind::Dictionary as fn(Box<Shape>) -> Kind)
        } else if let Some(width) = logical.run_end_width {
            let ends = match width {
                16 => DataType::Int16,
                32 => DataType::Int32,
                64 => DataType::Int64,
                other => return Err(bad_schema("run ends of 16, 32 or 64 bits", other.to_string())),
            };
            let ends = Field::new("run_ends", ends, false);
            let values = Field::new("values", self.field.data_type().clone(), true);
            let data_type = DataType::RunEndEncoded(Arc::new(ends), Arc::new(values));
            (Field::new(name, data_type, is_nullable), Kind::Runs as fn(Box<Shape>) -> Kind)
        } else {
            return Ok(self);
        };
        Ok(Self {
            field: Arc::new(field),
            rep: self.rep,
            slot_def: self.slot_def,
            def: self.def,
            leaves: self.leaves.clone(),
            kind: kind(Box::new(self)),
        })
    }

    fn of_group(node: &Node, slots: Slots) -> Result<(DataType, Kind)> {
        let logical = node.element.logical_type.as_ref();
        if logical.is_some_and(|logical| logical.kind == kind::UNION) {
            return Self::of_union(node, slots, logical.unwrap_or(&LogicalType::default()));
        }
        // A group that is called a list or a map but is not built like one is a plain group.
        let only = match node.children.as_slice() {
            [only] if only.is(Repetition::Repeated) => Some(only),
            _ => None,
        };
        match (node.element.converted_type, only) {
            (Some(ConvertedType::List), Some(repeated)) => Self::of_list(node, repeated),
            (Some(ConvertedType::Map), Some(repeated))
                if repeated.element.converted_type == Some(ConvertedType::MapKeyValue)
                    && repeated.children.len() == 2 =>
            {
                let entries = Self::of_one(repeated, Slots { def: repeated.max_def })?;
                let is_sorted = logical.is_some_and(|l| l.kind == kind::MAP && l.variant == Some(1));
                let data_type = DataType::Map(Arc::clone(&entries.field), is_sorted);
                Ok((data_type, Kind::Map(Box::new(entries), is_sorted)))
            }
            _ => {
                let children =
                    node.children.iter().map(|child| Self::of(child, slots)).collect::<Result<Vec<_>>>()?;
                let fields: Fields = children.iter().map(|child| Arc::clone(&child.field)).collect();
                Ok((DataType::Struct(fields), Kind::Struct(children)))
            }
        }
    }

    fn of_list(node: &Node, repeated: &Node) -> Result<(DataType, Kind)> {
        let is_entry = repeated.element.logical_type.as_ref().is_some_and(|l| l.kind == kind::LIST_ENTRY);
        let slots = Slots { def: repeated.max_def };
        let element = match repeated.children.as_slice() {
            [inner] if is_entry => Self::of(inner, slots)?,
            _ => Self::of_one(repeated, slots)?,
        };
        let item = Arc::clone(&element.field);
        let logical = node.element.logical_type.as_ref().filter(|logical| logical.kind == kind::LIST);
        let (list, data_type) = match logical.and_then(|logical| logical.variant) {
            Some(1) => (ListKind::Large, DataType::LargeList(item)),
            Some(2) => (ListKind::View, DataType::ListView(item)),
            Some(3) => (ListKind::LargeView, DataType::LargeListView(item)),
            Some(4) => {
                let size = logical.and_then(|logical| logical.byte_width).filter(|size| *size >= 0);
                let size = size.ok_or_else(|| bad_schema("the size of a fixed list", "none"))?;
                (ListKind::Fixed(size), DataType::FixedSizeList(item, size))
            }
            _ => (ListKind::Small, DataType::List(item)),
        };
        Ok((data_type, Kind::List(list, Box::new(element))))
    }

    fn of_union(node: &Node, slots: Slots, logical: &LogicalType) -> Result<(DataType, Kind)> {
        let ids = logical.type_ids.as_ref().ok_or_else(|| bad_schema("the type ids of a union", "none"))?;
        let Some((selector, members)) = node.children.split_first() else {
            return Err(bad_schema("a union with a type id", "no children"));
        };
        let is_selector = selector.element.physical_type == Some(crate::metadata::PhysicalType::Int32)
            && selector.is(Repetition::Required);
        let are_members = members.iter().all(|member| member.is(Repetition::Optional));
        if !is_selector || !are_members || members.len() != ids.len() || node.is(Repetition::Optional) {
            return Err(bad_schema(
                "a union of a type id and an optional child for each id",
                "another group",
            ));
        }
        let children = members.iter().map(|member| Self::of(member, slots)).collect::<Result<Vec<_>>>()?;
        let mut seen = [false; 128];
        let mut fields = Vec::with_capacity(children.len());
        for (number, (id, child)) in ids.iter().zip(&children).enumerate() {
            let id = i8::try_from(*id).ok().filter(|id| *id >= 0);
            let slot = id.and_then(|id| seen.get_mut(usize::from(id.cast_unsigned())));
            match (id, slot) {
                (Some(id), Some(slot)) if !*slot => {
                    *slot = true;
                    let nullable = logical.type_nullable.as_ref().and_then(|all| all.get(number)).copied();
                    let field = child.field.as_ref().clone().with_nullable(nullable.unwrap_or(1) != 0);
                    fields.push((id, Arc::new(field)));
                }
                _ => return Err(bad_schema("type ids of 0 to 127, each once", "others")),
            }
        }
        let fields: UnionFields = fields.into_iter().collect();
        let mode = if logical.variant == Some(1) { UnionMode::Dense } else { UnionMode::Sparse };
        let data_type = DataType::Union(fields.clone(), mode);
        let selector = Self::of(selector, slots)?;
        Ok((data_type, Kind::Union(Box::new(UnionShape { mode, fields, selector, children }))))
    }
}
