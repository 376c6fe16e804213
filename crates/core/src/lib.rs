//! What all formats share.
