//! Sessions of tens of megabytes.
