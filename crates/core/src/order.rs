//! Columns whose values are in another order than their Arrow type.
//!
//! Addresses leave as text, for people and for files of other formats. Whoever compares them must know that they are none: the metadata
//! of their field says so.

use std::collections::HashMap;
use std::net::IpAddr;

use arrow_schema::{Field, Schema, SchemaRef};

/// The key in a field's metadata.
pub const KEY: &str = "pilaster.order";

/// The order of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Texts of IPv4 addresses, as numbers of 32 bits.
    Ipv4,
    /// Texts of IPv6 addresses, as numbers of 128 bits.
    Ipv6,
}

impl Order {
    /// What the metadata of a field says.
    pub fn of(field: &Field) -> Option<Self> {
        match field.metadata().get(KEY)?.as_str() {
            "ipv4" => Some(Self::Ipv4),
            "ipv6" => Some(Self::Ipv6),
            _ => None,
        }
    }

    /// The metadata that says so.
    pub fn metadata(self) -> HashMap<String, String> {
        let value = match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        };
        HashMap::from([(KEY.to_string(), value.to_string())])
    }

    /// The text that a column of this order has for an address: that of IPv4 stands in a column of IPv6 as `::ffff:1.2.3.4`.
    pub fn usual_text(self, address: IpAddr) -> String {
        match (self, address.to_canonical()) {
            (Self::Ipv6, IpAddr::V4(address)) => address.to_ipv6_mapped().to_string(),
            (_, address) => address.to_string(),
        }
    }
}

/// The schema of rows that go into a file of another format, where texts are texts; itself, if all of its columns are in the order
/// of their types.
pub fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| Order::of(field).is_none()) {
        return SchemaRef::clone(schema);
    }
    let fields = schema.fields().iter().map(|field| {
        let mut field = Field::clone(field);
        let mut metadata = field.metadata().clone();
        metadata.remove(KEY);
        field.set_metadata(metadata);
        field
    });
    SchemaRef::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::DataType;

    use super::*;

    #[test]
    fn fields_say_how_they_are_ordered_until_they_leave() {
        let field = Field::new("ip", DataType::Utf8View, true);
        assert_eq!(Order::of(&field), None);
        let schema = Arc::new(Schema::new(vec![field.clone().with_metadata(Order::Ipv6.metadata())]));
        assert_eq!(Order::of(schema.field(0)), Some(Order::Ipv6));
        let plain = plain_schema(&schema);
        assert_eq!(plain.field(0), &field);
        assert!(Arc::ptr_eq(&plain_schema(&plain), &plain));
    }

    #[test]
    fn an_address_has_one_text_in_a_column() {
        for (order, text, expected) in [
            (Order::Ipv4, "1.2.3.4", "1.2.3.4"),
            (Order::Ipv4, "::ffff:1.2.3.4", "1.2.3.4"),
            (Order::Ipv6, "1.2.3.4", "::ffff:1.2.3.4"),
            (Order::Ipv6, "2001:DB8:0:0::1", "2001:db8::1"),
            (Order::Ipv4, "::1", "::1"),
        ] {
            assert_eq!(order.usual_text(text.parse().unwrap()), expected, "{text}");
        }
    }
}
