//! The protobuf messages of Doris's files.
//!
//! Written by hand: only the fields that mean something to a reader or that writers put there are named, the wire format
//! skips the others. Every field is optional here, also the required ones, because prost reads a missing required field as
//! zero and the format says that is corruption; [`required`] turns absence into an error.

use std::collections::BTreeMap;

pub(crate) use pilaster_core::protobuf::{count_nested, parse, required};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SegmentFooterPb {
    #[prost(uint32, optional, tag = "1")]
    pub version: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub columns: Vec<ColumnMetaPb>,
    #[prost(uint32, optional, tag = "3")]
    pub num_rows: Option<u32>,
    #[prost(message, repeated, tag = "8")]
    pub file_meta_datas: Vec<MetadataPairPb>,
    #[prost(message, optional, tag = "9")]
    pub short_key_index_page: Option<PagePointerPb>,
    #[prost(message, optional, tag = "10")]
    pub primary_key_index_meta: Option<PrimaryKeyIndexPb>,
    #[prost(uint64, optional, tag = "11")]
    pub col_meta_region_start: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub column_meta_entries: Vec<ColumnMetaEntryPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MetadataPairPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub value: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct PagePointerPb {
    #[prost(uint64, optional, tag = "1")]
    pub offset: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub size: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ColumnMetaEntryPb {
    #[prost(int32, optional, tag = "1")]
    pub unique_id: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub length: Option<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PrimaryKeyIndexPb {
    #[prost(message, optional, tag = "1")]
    pub primary_key_index: Option<IndexedColumnPb>,
    #[prost(message, optional, tag = "2")]
    pub bloom_filter_index: Option<ColumnIndexPb>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub min_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub max_key: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ColumnMetaPb {
    #[prost(uint32, optional, tag = "1")]
    pub column_id: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub unique_id: Option<u32>,
    #[prost(int32, optional, tag = "3")]
    pub field_type: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub length: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub encoding: Option<i32>,
    #[prost(int32, optional, tag = "6")]
    pub compression: Option<i32>,
    #[prost(bool, optional, tag = "7")]
    pub is_nullable: Option<bool>,
    #[prost(message, repeated, tag = "8")]
    pub indexes: Vec<ColumnIndexPb>,
    #[prost(message, optional, tag = "9")]
    pub dict_page: Option<PagePointerPb>,
    #[prost(message, repeated, tag = "10")]
    pub children_columns: Vec<ColumnMetaPb>,
    #[prost(uint64, optional, tag = "11")]
    pub num_rows: Option<u64>,
    #[prost(message, optional, tag = "13")]
    pub column_path_info: Option<PathInfoPb>,
    #[prost(bytes = "vec", optional, tag = "14")]
    pub default_value: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "15")]
    pub precision: Option<i32>,
    #[prost(int32, optional, tag = "16")]
    pub frac: Option<i32>,
    #[prost(bool, optional, tag = "18")]
    pub result_is_nullable: Option<bool>,
    #[prost(string, optional, tag = "19")]
    pub function_name: Option<String>,
    #[prost(int32, optional, tag = "20")]
    pub be_exec_version: Option<i32>,
    #[prost(message, optional, tag = "21")]
    pub variant_statistics: Option<VariantStatisticsPb>,
    #[prost(int32, optional, tag = "22")]
    pub variant_max_subcolumns_count: Option<i32>,
    #[prost(uint64, optional, tag = "23")]
    pub none_null_size: Option<u64>,
    #[prost(uint64, optional, tag = "24")]
    pub compressed_data_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "25")]
    pub uncompressed_data_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "26")]
    pub raw_data_bytes: Option<u64>,
    #[prost(bool, optional, tag = "27")]
    pub variant_enable_doc_mode: Option<bool>,
    /// Written by StarRocks alone, as is the next.
    #[prost(bool, optional, tag = "30")]
    pub all_dict_encoded: Option<bool>,
    #[prost(uint64, optional, tag = "31")]
    pub total_mem_footprint: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VariantStatisticsPb {
    #[prost(btree_map = "string, uint32", tag = "2")]
    pub sparse_column_non_null_size: BTreeMap<String, u32>,
    #[prost(btree_map = "string, uint32", tag = "3")]
    pub doc_value_column_non_null_size: BTreeMap<String, u32>,
    #[prost(bool, optional, tag = "4")]
    pub has_nested_group: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PathInfoPb {
    #[prost(string, optional, tag = "1")]
    pub path: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub parts: Vec<PathPartPb>,
    #[prost(bool, optional, tag = "3")]
    pub has_nested: Option<bool>,
    #[prost(uint32, optional, tag = "4")]
    pub parent_unique_id: Option<u32>,
    #[prost(bool, optional, tag = "5")]
    pub is_typed: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PathPartPb {
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    #[prost(bool, optional, tag = "2")]
    pub is_nested: Option<bool>,
    #[prost(uint32, optional, tag = "3")]
    pub anonymous_array_level: Option<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ColumnIndexPb {
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(message, optional, tag = "7")]
    pub ordinal_index: Option<OrdinalIndexPb>,
    #[prost(message, optional, tag = "8")]
    pub zone_map_index: Option<ZoneMapIndexPb>,
    #[prost(message, optional, tag = "9")]
    pub bitmap_index: Option<BitmapIndexPb>,
    #[prost(message, optional, tag = "10")]
    pub bloom_filter_index: Option<BloomFilterIndexPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct OrdinalIndexPb {
    #[prost(message, optional, tag = "1")]
    pub root_page: Option<BTreePb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct BTreePb {
    #[prost(message, optional, tag = "1")]
    pub root_page: Option<PagePointerPb>,
    #[prost(bool, optional, tag = "2")]
    pub is_root_data_page: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct IndexedColumnPb {
    #[prost(int32, optional, tag = "1")]
    pub data_type: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub encoding: Option<i32>,
    #[prost(int64, optional, tag = "3")]
    pub num_values: Option<i64>,
    #[prost(message, optional, tag = "4")]
    pub ordinal_index_meta: Option<BTreePb>,
    #[prost(message, optional, tag = "5")]
    pub value_index_meta: Option<BTreePb>,
    #[prost(int32, optional, tag = "6")]
    pub compression: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ZoneMapIndexPb {
    #[prost(message, optional, tag = "1")]
    pub segment_zone_map: Option<ZoneMapPb>,
    #[prost(message, optional, tag = "2")]
    pub page_zone_maps: Option<IndexedColumnPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ZoneMapPb {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub min: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub max: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "3")]
    pub has_null: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    pub has_not_null: Option<bool>,
    #[prost(bool, optional, tag = "5")]
    pub pass_all: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub has_positive_inf: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    pub has_negative_inf: Option<bool>,
    #[prost(bool, optional, tag = "8")]
    pub has_nan: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BitmapIndexPb {
    #[prost(int32, optional, tag = "1")]
    pub bitmap_type: Option<i32>,
    #[prost(bool, optional, tag = "2")]
    pub has_null: Option<bool>,
    #[prost(message, optional, tag = "3")]
    pub dict_column: Option<IndexedColumnPb>,
    #[prost(message, optional, tag = "4")]
    pub bitmap_column: Option<IndexedColumnPb>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BloomFilterIndexPb {
    #[prost(int32, optional, tag = "1")]
    pub hash_strategy: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub algorithm: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub bloom_filter: Option<IndexedColumnPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct PageFooterPb {
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub uncompressed_size: Option<u32>,
    #[prost(message, optional, tag = "7")]
    pub data_page_footer: Option<DataPageFooterPb>,
    #[prost(message, optional, tag = "8")]
    pub index_page_footer: Option<IndexPageFooterPb>,
    #[prost(message, optional, tag = "9")]
    pub dict_page_footer: Option<DictPageFooterPb>,
    #[prost(message, optional, tag = "10")]
    pub short_key_page_footer: Option<ShortKeyFooterPb>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct DataPageFooterPb {
    #[prost(uint64, optional, tag = "1")]
    pub first_ordinal: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub num_values: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    pub nullmap_size: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub next_array_item_ordinal: Option<u64>,
    /// Written by StarRocks alone.
    #[prost(uint32, optional, tag = "20")]
    pub format_version: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct IndexPageFooterPb {
    #[prost(uint32, optional, tag = "1")]
    pub num_entries: Option<u32>,
    #[prost(int32, optional, tag = "2")]
    pub kind: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct DictPageFooterPb {
    #[prost(int32, optional, tag = "1")]
    pub encoding: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ShortKeyFooterPb {
    #[prost(uint32, optional, tag = "1")]
    pub num_items: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub key_bytes: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub offset_bytes: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub segment_id: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub num_rows_per_block: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub num_segment_rows: Option<u32>,
}
