//! IPv4 and IPv6 addresses: given as text, but sorted and compared as numbers.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use pilaster_core::{Error, Result};

/// The bytes of addresses, most significant first.
pub(super) fn octets(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = texts.as_string_view_opt().ok_or_else(|| Error::internal("addresses that are no texts"))?;
    let mut octets = BinaryViewBuilder::with_capacity(texts.len());
    for text in texts {
        let address = text.map(str::parse::<IpAddr>).transpose();
        match address.map_err(|error| Error::corrupt("an address", error))? {
            None => octets.append_null(),
            Some(IpAddr::V4(address)) => octets.append_value(address.octets()),
            Some(IpAddr::V6(address)) => octets.append_value(address.octets()),
        }
    }
    Ok(Arc::new(octets.finish()))
}
