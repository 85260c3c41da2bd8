// SPDX-License-Identifier: Apache-2.0
//! The C API of velo as it is. The man pages velo(7), velo-rma(7), velo-mq(7) and velo-bcast(7) say what holds;
//! the crate `velo` has a safe part of it.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]

include!(concat!(env!("OUT_DIR"), "/velo.rs"));
