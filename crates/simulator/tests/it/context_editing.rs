//! context_editing
